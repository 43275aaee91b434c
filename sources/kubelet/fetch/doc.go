// Package fetch asks many servers over HTTP/1.1, each of them now and then, as a
// scraper does. It is an http.RoundTripper that keeps one connection to each
// server and nothing else: the goroutine that asks writes the request and reads
// the answer itself.
//
// net/http's Transport gives each connection two goroutines and two buffers. That
// serves many requests at a time on few connections. Of a thousand connections
// that are used one after the other, each request wakes both goroutines, one after
// the other, and the buffers lie idle all but a millisecond of each round. Answers
// are parsed by net/http here too (http.ReadResponse), so that what an answer means
// is not decided twice.
//
// What it leaves out: HTTP/2, proxies, redirects, cookies, pipelining, compression,
// and streaming of a request's body. A resumed TLS session shows no certificate of
// its own, and a caller may want to know which machine it speaks to: sessions are
// not resumed. Of the certificate Peer tells whom it names; answers have no state of
// TLS beside that, which would keep all of it for as long as the connection.
package fetch
