package death

import (
	"regexp"
	"strings"
)

// Evicted is the kubelet's message about a pod that it evicted.
type Evicted struct {
	// Resource is what the node was low on: memory, ephemeral-storage, pids, inodes. It is empty if the
	// pod exceeded a limit of its own.
	Resource string
	// Threshold and Available are quantities, such as 100Mi; empty if the message has none.
	Threshold, Available string
	// Above are those that used more than they requested.
	Above []AboveRequest
	// Limit is the limit on local storage that was exceeded, as a sentence of the kubelet's.
	Limit string
}

// AboveRequest is a container, or a pod with a request of its own, that used more than its request.
type AboveRequest struct{ Name, Usage, Request string }

// The kubelet's messages are a row of sentences. Names and quantities have no spaces.
var (
	lowOn     = regexp.MustCompile(`^The node (?:was low on resource|had condition): ([^ ]+?)\.(?: |$)`)
	threshold = regexp.MustCompile(`^Threshold quantity: ([^ ]+), available: ([^ ]+?)\.(?: |$)`)
	above     = regexp.MustCompile(`^(?:Container|Pod) ([^ ]+) was using ([^ ]+), request is ([^ ]+), has larger consumption of [^ ]+\.(?: |$)`)
	exceeded  = regexp.MustCompile(`^((?:Container [^ ]+ exceeded its local ephemeral storage limit|Pod ephemeral local storage usage exceeds the total limit of containers|Usage of EmptyDir volume "[^ ]+" exceeds the limit) "?[^ "]+?"?)\.(?: |$)`)
)

// maxAbove is how many containers are read of one message.
const maxAbove = 10

// ParseEvicted reads the kubelet's message about an eviction. ok is false if it is another message. What
// follows a sentence that is unknown is not read.
func ParseEvicted(message string) (e Evicted, ok bool) {
	rest := message
	next := func(sentence *regexp.Regexp) []string {
		m := sentence.FindStringSubmatch(rest)
		if m != nil {
			rest = strings.TrimLeft(rest[len(m[0]):], " ")
		}
		return m
	}
	if m := next(exceeded); m != nil {
		return Evicted{Limit: m[1]}, true
	}
	m := next(lowOn)
	if m == nil {
		return Evicted{}, false
	}
	e.Resource = m[1]
	if m := next(threshold); m != nil {
		e.Threshold, e.Available = m[1], m[2]
	}
	for m := next(above); m != nil && len(e.Above) < maxAbove; m = next(above) {
		e.Above = append(e.Above, AboveRequest{m[1], m[2], m[3]})
	}
	return e, true
}
