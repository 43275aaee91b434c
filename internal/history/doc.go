// Package history gets the result of a query from a Prometheus-compatible server, at one time or
// over any span of time. weir has no database of its own; this package gives it the values from
// before its own memory.
//
// A client keeps no state except its connections, and limits the size of an answer. It follows no
// redirects, because they could send credentials to another server. The caller's context sets the
// deadline. Errors have the server's status and message.
//
// Files: client.go has Client and Query; range.go has Range; series.go has Series; answer.go decodes answers; usage.go has
// the queries for the usage of containers.
package history
