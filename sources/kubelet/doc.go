// Package kubelet reads samples from kubelets. It reads one endpoint of each node
// (/metrics/resource, /stats/summary or /metrics/cadvisor), over one connection that stays open
// between reads. It also reads /metrics of cAdvisors that run on their own.
//
// A Scraper has what all nodes share: the transport (package fetch), credentials and buffers, which
// are bounded together. Targets returns the nodes to read. Open returns a source that reads
// one of them. Every error is a *metric.ReadError; its Reason becomes the verdict on what is
// missing. An error of one node does not affect others.
//
// The package does not judge numbers. Duplicate lines, zeros for values that the kubelet could not
// read, and counters that fall go unchanged to the processors. It does check that the node that
// answers is the node that was asked.
//
//	scraper.go      Scraper: the transport, credentials and buffers
//	bounds.go       how large an answer of a node may be
//	node.go         a read of one node
//	targets.go      which nodes to read, from the API server or a static list
//	options.go      Options; parse.go the text of --source=kubelet:...
//	credentials.go  token, client certificate and CA files
//	errors.go       errors and their reasons; identity.go the check of the certificate
//	buffer.go       the memory of a payload
//	fetch           the HTTP/1.1 client
//	payload         what the parsers share, with the Prometheus text format
//	resource, summary, cadvisor  one parser for each endpoint; they do no I/O
package kubelet
