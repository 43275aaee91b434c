// Package promclient asks a Prometheus-compatible server what a query gives, now or
// over a time.
//
// It is small on purpose: one request, an answer of bounded size, and errors that
// say which status the server gave and what it wrote. It keeps no state but its
// connections, follows no redirects, which could carry credentials elsewhere, and
// leaves deadlines to its caller's context.
package promclient
