// Package fetch has an http.RoundTripper for scrapers: it asks many servers over HTTP/1.1, each of
// them every few seconds. It keeps one idle connection to each server. The goroutine that calls
// RoundTrip writes the request and reads the answer itself.
//
// net/http's Transport gives each connection two goroutines and two buffers. That suits many
// requests on few connections. A scraper has a thousand connections and uses one after the other:
// each request would wake both goroutines, and the buffers would be unused nearly all of the time.
// BenchmarkCost of sources/kubelet compares the two. Answers are parsed with net/http here too
// (http.ReadResponse).
//
// The package does not support HTTP/2, proxies, redirects, cookies, pipelining, compression,
// request bodies and resumed TLS sessions. PeerCommonName returns the name in the certificate of a
// server. Answers have no other TLS state, because the connection would keep it in memory.
//
//	transport.go  Transport: RoundTrip and the idle connections
//	conn.go       one connection: dial, send a request, read the answer
//	request.go    a request as bytes
//	readable_*.go wait until a connection has something to read
//	tlsmemory     frees what idle TLS connections keep
package fetch
