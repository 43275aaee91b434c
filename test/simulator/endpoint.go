package simulator

import (
	"bytes"
	"fmt"
	"time"
)

// An Endpoint is an endpoint of a kubelet.
type Endpoint uint8

// The endpoints.
const (
	Resource         Endpoint = iota // /metrics/resource
	Summary                          // /stats/summary
	SummaryCPUMemory                 // /stats/summary?only_cpu_and_memory=true
	CAdvisor                         // /metrics/cadvisor
	StatsContainer                   // POST /stats/container/, which kubelets had until 1.20
	PodList                          // /pods
	numEndpoints     int      = iota
)

var endpointNames = [numEndpoints]string{
	"/metrics/resource", "/stats/summary", "/stats/summary?only_cpu_and_memory=true", "/metrics/cadvisor", "/stats/container/", "/pods",
}

// String returns the path.
func (e Endpoint) String() string {
	if int(e) < numEndpoints {
		return endpointNames[e]
	}
	return fmt.Sprintf("endpoint %d", uint8(e))
}

// ContentType returns the Content-Type header that a kubelet sends with the
// answer.
func (e Endpoint) ContentType() string {
	if e == Resource || e == CAdvisor {
		return "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
	}
	return "application/json"
}

// Append appends to dst what the node answers at now, and returns it. It is a
// pure function: the same moment gives the same bytes.
func (f *Fleet) Append(dst []byte, n *Node, e Endpoint, now time.Time) []byte {
	s := f.scratch.Get().(*scratch)
	defer f.scratch.Put(s)
	t := now.UnixNano()
	n.advance(t)
	n.mu.RLock()
	defer n.mu.RUnlock()
	begin := len(dst)
	switch {
	case e == PodList:
		return n.appendPods(dst, t)
	case n.Failing(now) && e != StatsContainer:
		return n.appendFailure(dst, e)
	}
	switch e {
	case Resource:
		dst = n.appendResource(dst, s, t)
	case Summary:
		dst = n.appendSummary(dst, s, t, true)
	case SummaryCPUMemory:
		dst = n.appendSummary(dst, s, t, false)
	case CAdvisor:
		dst = n.appendCAdvisor(dst, s, t)
	case StatsContainer:
		dst = n.appendStatsContainer(dst, s, t)
	}
	if e == Resource && holds(n.faults, Bulk, t) != nil {
		dst = multiply(dst, begin)
	}
	if g := holds(n.faults, Garbage, t); g != nil {
		dst = spoil(dst, begin, g.Style, n.key.num(t))
	}
	return dst
}

// appendFailure appends what a kubelet answers if its container runtime does
// not answer.
func (n *Node) appendFailure(dst []byte, e Endpoint) []byte {
	switch e {
	case Resource:
		dst = appendHeader(dst, "resource_scrape_error", scrapeErrorHelp, "gauge")
		return append(dst, "resource_scrape_error 1\n"...)
	case CAdvisor:
		return n.appendMachine(dst)
	default:
		return append(dst, "Internal Error: failed to get imageFs stats: rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused\"\n"...)
	}
}

// Payload is like Append, with the node's name and without a buffer. It returns
// nil if the node does not exist.
func (f *Fleet) Payload(node string, e Endpoint, now time.Time) []byte {
	n := f.Node(node)
	if n == nil {
		return nil
	}
	return f.Append(nil, n, e, now)
}

// multiply adds nine lines after each line of a pod in dst[begin:]. They name pods that do not exist.
func multiply(dst []byte, begin int) []byte {
	answer := bytes.Clone(dst[begin:])
	dst = dst[:begin]
	for line := range bytes.Lines(answer) {
		dst = append(dst, line...)
		const label = `pod="`
		at := bytes.Index(line, []byte(label)) + len(label)
		if line[0] == '#' || at < len(label) {
			continue
		}
		for i := byte('1'); i <= '9'; i++ {
			dst = append(dst, line[:at]...)
			dst = append(dst, "copy-"...)
			dst = append(dst, i, '-')
			dst = append(dst, line[at:]...)
		}
	}
	return dst
}

// spoil makes garbage of the answer in dst[begin:].
func spoil(dst []byte, begin int, style Style, k key) []byte {
	answer := dst[begin:]
	switch style {
	case HTML:
		return append(dst[:begin], "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n"...)
	case Truncated:
		return dst[:begin+len(answer)/2]
	}
	// Every 16th byte or so of the second half is noise.
	for i := len(answer) / 2; i < len(answer); i += 1 + int(k.num(int64(i)).between("stride", 0, 32)) {
		answer[i] = byte(k.num(int64(i)))
	}
	return append(dst, 0, 0xff, 0xfe)
}
