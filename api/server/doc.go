// Package server is the one HTTPS server through which a weir in a cluster
// serves its APIs. It stands on k8s.io/apiserver as metrics-server does, with
// the same flags, so that whatever talks to a Kubernetes API talks to it.
//
// # Who may read
//
// The cluster decides. A caller is known by a bearer token, which the API server
// reviews, by a client certificate of the cluster's, or by the headers of the
// aggregating API server, which shows a certificate of the request-header CA.
// Who is none of these gets 401, except from the health endpoints.
//
// What a caller may read is asked with access reviews. Kubernetes' own APIs
// (metrics.k8s.io and its like) need what their paths say. Weir's further paths
// are mapped to the same rights by a rule given to Server.Handle: who may list
// pods.metrics.k8s.io in a namespace may read that namespace in Heapster's
// model as well, and who may not gets 403 with the right that is missing. A
// path without a rule needs the right to that very path (nonResourceURLs).
//
// # What nobody can do to it
//
// Headers, bodies and answers all have a deadline; queries, bodies and the number
// of requests under way have a limit. A client that stalls holds its connection until
// then and nothing else.
//
// # Several replicas
//
// Package leader elects one replica, package forward forwards requests of the others to it,
// and package peer authenticates replicas to each other. Without them a Server answers by
// itself.
//
// # Files
//
//   - server.go: Config, New, Run, the port, authentication. options.go: flags and defaults.
//   - routes.go: weir's own paths. access.go: the rights that a path needs.
//   - discovery.go: API groups in discovery, OpenAPI, /version.
//   - health.go: /readyz and /livez with reasons, /metrics.
//   - limits.go: deadlines and sizes of requests, and connections cut off at shutdown.
package server
