// Package server is the one HTTPS server through which a weir in a cluster serves its APIs. It is
// built on k8s.io/apiserver, as metrics-server is, and has the same flags, so that every client of
// a Kubernetes API can use it.
//
// The cluster decides who may read. There are three ways to authenticate: a bearer token, which the
// API server reviews; a client certificate of the cluster; or the headers of the aggregating API
// server, which has a certificate of the request-header CA. All other callers get 401, except from
// the health endpoints. Access reviews decide about rights: Kubernetes' own APIs need what their
// paths name, weir's further paths need what their rule names (Server.Handle), and a path without a
// rule needs the right to that path (nonResourceURLs).
//
// Headers, bodies and answers have a deadline. Queries, bodies and the number of requests under way
// have a limit.
//
// Files: server.go has Config, New, Run, the port and authentication, options.go the flags,
// routes.go weir's own paths, access.go the rights that a path needs, discovery.go API groups,
// OpenAPI and /version, claims.go notices who answers these groups in the cluster, health.go /readyz and /livez with reasons and /metrics, limits.go deadlines
// and sizes.
package server
