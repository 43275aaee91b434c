// Package history asks a Prometheus-compatible server what a query gives, now or over any span of
// time. weir has no database of its own: this is how it looks further back than its memory.
//
// A client keeps no state but its connections, bounds the size of an answer, follows no redirects,
// which could carry credentials elsewhere, and leaves deadlines to its caller's context. Its errors
// say which status the server gave and what it wrote.
package history
