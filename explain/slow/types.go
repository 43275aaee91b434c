package slow

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
)

// Resource is what a pod can wait for.
type Resource string

// The resources.
const (
	CPU    Resource = "cpu"
	Memory Resource = "memory"
	IO     Resource = "io"
)

// resources has them in the order of answers; the arrays of this package are indexed by it.
var resources = [numResources]Resource{cpu: CPU, memory: Memory, io: IO}

const (
	cpu = iota
	memory
	io
	numResources
)

// Cause is why a pod waited.
type Cause string

// The causes. No other is ever given.
const (
	// OwnLimit is a limit of the pod or of its containers.
	OwnLimit Cause = "OwnLimit"
	// OwnUse is the pod itself: it wants more than the node has, or it waits for its own disk I/O.
	OwnUse Cause = "OwnUse"
	// Neighbours are other pods of the node, by what they used above their requests.
	Neighbours Cause = "Neighbours"
	// System is what runs on the node outside pods, above what the node reserves for it.
	System Cause = "System"
	// NodeFull means that the node is short of the resource and nobody uses more than requested.
	NodeFull Cause = "NodeFull"
	// Nobody means that the node is not short of the resource, and no limit that weir knows was reached.
	Nobody Cause = "Nobody"
	// Unknown means that a reading is missing which decides between the others, or that readings disagree.
	Unknown Cause = "Unknown"
)

// causes has them in the order of the README.
var causes = [numCauses]Cause{
	ownLimit: OwnLimit, ownUse: OwnUse, neighbours: Neighbours, system: System, nodeFull: NodeFull, nobody: Nobody, unknown: Unknown,
}

const (
	ownLimit = iota
	ownUse
	neighbours
	system
	nodeFull
	nobody
	unknown
	numCauses
)

// The doubts: why the cause of a part is Unknown.
const (
	cpuNotRead = iota
	cpusOfTheirOwn
	memoryNotRead
	cacheAtLimit
	disksNotRead
	disksUnplaced
	disksHardlyShort
	numDoubts
)

// Causes returns all causes.
func Causes() []Cause { return causes[:] }

// Slow is the answer about one pod. Its fields are the JSON of the API. Shares are of the time measured,
// from 0 to 1.
type Slow struct {
	Namespace string         `json:"namespace"`
	Pod       string         `json:"pod"`
	Node      string         `json:"node"`
	Workload  *cluster.Owner `json:"workload,omitempty"`
	// From and To are the time asked for, by the node's clock. MeasuredSeconds is how much of it was
	// measured.
	From            time.Time `json:"from"`
	To              time.Time `json:"to"`
	MeasuredSeconds float64   `json:"measuredSeconds"`

	// Summary is the answer in a sentence.
	Summary string `json:"summary"`
	// Lost is the largest share of the time in which the pod waited for one resource, Resource, and Cause
	// the largest cause. Both are empty if the pod is not slow.
	Lost     float64  `json:"lost"`
	Resource Resource `json:"resource,omitempty"`
	Cause    Cause    `json:"cause,omitempty"`
	// Message is the summary without its subject.
	Message string `json:"message"`

	Stalls   []Stall  `json:"stalls"`
	Evidence []string `json:"evidence"`
	Advice   string   `json:"advice,omitempty"`
	// NotKnown are sentences about what cannot be known, and why.
	NotKnown []string `json:"notKnown,omitempty"`
}

// Stall is how long a pod waited for a resource. The parts add up to Some.
type Stall struct {
	Resource Resource `json:"resource"`
	// Some is the share of the time in which some thread of the pod waited, and Full that in which all of
	// those that could run did. They are absent if the node does not report them.
	Some *float64 `json:"some,omitempty"`
	Full *float64 `json:"full,omitempty"`
	// Throttled is how many seconds of each second the pod's threads were held back by CPU limits, added
	// up over the node's CPUs: it can be above 1.
	Throttled *float64 `json:"throttled,omitempty"`
	Parts     []Part   `json:"parts,omitempty"`
	// Neighbours are the pods that the part Neighbours is due to, the largest share first, at most five.
	Neighbours []Neighbour `json:"neighbours,omitempty"`
}

// Part is the share of the time that is due to one cause.
type Part struct {
	Cause Cause   `json:"cause"`
	Share float64 `json:"share"`
}

// Neighbour is another pod of the node. Used and Above are means while the explained pod waited, in cores,
// bytes, or bytes per second.
type Neighbour struct {
	// Namespace and Pod are empty if the caller may not list the pods of that namespace.
	Namespace string  `json:"namespace,omitempty"`
	Pod       string  `json:"pod,omitempty"`
	Used      float64 `json:"used"`
	// Above is what it used above its request. Disks have no requests: there it is Used.
	Above float64 `json:"above"`
	// Share is its share of the time.
	Share float64 `json:"share"`
}

// Report is the answer about a pod, or about the pods of a namespace or of the cluster.
type Report struct {
	Namespace string    `json:"namespace,omitempty"`
	Pod       string    `json:"pod,omitempty"`
	At        time.Time `json:"at"`
	// WindowSeconds is how far back the report looks.
	WindowSeconds float64 `json:"windowSeconds"`
	Summary       string  `json:"summary"`
	// Pods has those that waited for more than 1% of the time, the one that lost the most first, or the pod
	// that is named.
	Pods []Slow `json:"pods"`
	// Measured is how many pods' stalls were measured, and NotMeasured how many pods have no stalls.
	Measured    int `json:"measured"`
	NotMeasured int `json:"notMeasured,omitempty"`
	// LeftOut is how many more pods waited.
	LeftOut int `json:"leftOut,omitempty"`
	// NotKnown is a sentence with the reason why pods have no stalls; empty if all have.
	NotKnown string `json:"notKnown,omitempty"`
}
