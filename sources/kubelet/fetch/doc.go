// Package fetch is an http.RoundTripper that asks many servers over HTTP/1.1, each of them
// every few seconds, as a scraper does. It keeps one idle connection to each server. The
// goroutine that calls RoundTrip writes the request and reads the answer itself.
//
// net/http's Transport gives each connection two goroutines and two buffers, which suits many requests on few
// connections. A scraper has a thousand connections that are used one after the other:
// each request would wake both goroutines, and the buffers would be idle nearly all of the
// time. BenchmarkCost of sources/kubelet compares the two. Answers are parsed by
// net/http here too (http.ReadResponse).
//
// It leaves out HTTP/2, proxies, redirects, cookies, pipelining, compression, request bodies and
// resumed TLS sessions. PeerCommonName says what name the certificate of a server has; answers have no other
// TLS state, because it would be kept as long as the connection.
//
//	transport.go  Transport: RoundTrip and the idle connections
//	conn.go       one connection: dial, send a request, read the answer
//	request.go    a request as bytes
//	readable_*.go wait until a connection has something to read
//	tlsmemory     frees what idle TLS connections keep
package fetch
