package metric

// Unit is the unit in which weir keeps a metric's values. Whole nanoseconds and nanocores are
// exact in a float64 up to 2^53 (104 days of CPU time). Beyond that the error stays below a
// microsecond.
type Unit uint8

// The units.
const (
	Nanocores Unit = iota
	Nanoseconds
	Bytes
	BytesPerSecond
	Count
	PerSecond
	Ratio // 1 is 100%
)

var units = [...]struct {
	name       string
	prometheus float64 // factor to Prometheus' base unit
	heapster   float64 // factor to what Heapster served
	heapsterIs string
}{
	Nanocores:      {"nanocores", 1e-9, 1e-6, "millicores"},
	Nanoseconds:    {"nanoseconds", 1e-9, 1, "nanoseconds"},
	Bytes:          {"bytes", 1, 1, "bytes"},
	BytesPerSecond: {"bytes per second", 1, 1, "bytes per second"},
	Count:          {"count", 1, 1, "count"},
	PerSecond:      {"per second", 1, 1, "per second"},
	Ratio:          {"ratio", 1, 1, "ratio"},
}

// String returns the unit in words.
func (u Unit) String() string { return units[u].name }

// Prometheus returns the factor from weir's unit to the base unit of Prometheus: cores,
// seconds, bytes, ratios.
func (u Unit) Prometheus() float64 { return units[u].prometheus }

// Heapster returns the factor from weir's unit to the unit of Heapster's APIs: millicores for
// CPU.
func (u Unit) Heapster() float64 { return units[u].heapster }

// HeapsterUnit returns the name of the unit in Heapster's APIs.
func (u Unit) HeapsterUnit() string { return units[u].heapsterIs }

// MetricType is how the values of a metric change over time.
type MetricType uint8

// The metric types.
const (
	Gauge MetricType = iota
	Cumulative
	Rate
)

// String returns "gauge", "cumulative" or "rate".
func (t MetricType) String() string { return [...]string{"gauge", "cumulative", "rate"}[t] }

// KindSet is a set of kinds of entity.
type KindSet uint8

// Has reports whether k is in s.
func (s KindSet) Has(k Kind) bool { return s&(1<<k) != 0 }

// Sets of kinds that several metrics have.
const (
	onCluster   KindSet = 1 << Cluster
	onNamespace KindSet = 1 << Namespaced
	onNode      KindSet = 1 << Node
	onSystem    KindSet = 1 << System
	onPod       KindSet = 1 << Pod
	onContainer KindSet = 1 << Container

	runningKinds = onNode | onSystem | onPod | onContainer // entities with processes
	summedKinds  = onNamespace | onCluster
)
