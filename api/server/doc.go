// Package server is the one HTTPS server through which a weir in a cluster
// serves its APIs. It stands on k8s.io/apiserver as metrics-server does, with
// the same flags, so that whatever talks to a Kubernetes API talks to it.
//
// The cluster decides who may read. A caller is known by a bearer token, which the
// API server reviews, by a client certificate of the cluster's, or by the headers of
// the aggregating API server, which shows a certificate of the request-header CA.
// All others get 401, except from the health endpoints. Rights are asked with access
// reviews: Kubernetes' own APIs need what their paths say, weir's further paths what
// their rule says (Server.Handle), and a path without a rule the right to that very
// path (nonResourceURLs).
//
// Headers, bodies and answers have a deadline; queries, bodies and the number of
// requests under way have a limit.
//
// Files: server.go has Config, New, Run, the port and authentication, options.go the
// flags, routes.go weir's own paths, access.go the rights that a path needs,
// discovery.go API groups, OpenAPI and /version, health.go /readyz and /livez with
// reasons and /metrics, limits.go deadlines and sizes.
package server
