package slow

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
)

// words are the names of the resources in sentences.
var words = [numResources]string{cpu: "CPU", memory: "memory", io: "disk I/O"}

// Words returns the name of a resource in sentences: "disk I/O".
func (r Resource) Words() string {
	if i := slices.Index(resources[:], r); i >= 0 {
		return words[i]
	}
	return string(r)
}

// reasons are what follows "waited for CPU 40% of the last 5m, ". LIMIT is the limit that was reached, NODE
// the node, WHO the neighbours.
var reasons = [numResources][numCauses]string{
	cpu: {
		ownLimit: "held back by LIMIT", ownUse: "because it wants more CPU than node NODE has for it", neighbours: "because of WHO",
		system: "because of processes of node NODE outside pods", nodeFull: "because node NODE is full, and nobody uses more than requested",
		nobody: "and nobody is the cause: node NODE was not short of CPU", unknown: "for a reason that is not known",
	},
	memory: {
		ownLimit: "held back by LIMIT", ownUse: "because node NODE is short of memory, and the pod uses more than it requests", neighbours: "because of WHO",
		system: "because of processes of node NODE outside pods", nodeFull: "because node NODE is full, and nobody uses more than requested",
		nobody: "and nobody is the cause: node NODE was not short of memory, and no limit that weir knows was reached", unknown: "for a reason that is not known",
	},
	io: {
		ownLimit: "to read again what LIMIT made the kernel drop", ownUse: "for what it reads and writes itself", neighbours: "because of WHO",
		nobody: "and nobody is the cause: no pod read or wrote much on the disks that it uses", unknown: "for a reason that is not known",
	},
}

// advice is what to do about the largest cause.
var advice = [numResources][numCauses]string{
	cpu: {
		ownLimit:   "Raise limits.cpu of CONTAINER, or remove that limit: `weir resize recommend` shows what fits.",
		ownUse:     "Let it run fewer threads at once, add replicas, or move it to a node with more CPUs.",
		neighbours: "Raise requests.cpu of the pod to what it needs, because the kernel divides CPU by requests. Or give WHO a limit, or move one of them.",
		system:     "`weir top cgroups --node NODE` shows what runs there outside pods. Reserve CPU for it in the kubelet's configuration (systemReserved, kubeReserved).",
		nodeFull:   "Move a pod to another node, or add a node.",
		nobody:     "Change no limit and no neighbour. Look for pinned CPUs (cpuset), and for bursts that are shorter than the time between two readings.",
	},
	memory: {
		ownLimit:   "Raise limits.memory of CONTAINER: at the limit each new page makes the kernel drop another one.",
		ownUse:     "Raise requests.memory of the pod to what it uses, so that it is scheduled where there is that much.",
		neighbours: "Set limits.memory of WHO near what they request, or move one of them.",
		system:     "`weir top cgroups --node NODE` shows what runs there outside pods. Reserve memory for it in the kubelet's configuration (systemReserved, kubeReserved).",
		nodeFull:   "Move a pod to another node, or add a node.",
		nobody:     "Look for a limit that weir does not see: memory.high (the kubelet's MemoryQoS), memory.max of a slice above the pod, or a limit that has been raised since.",
	},
	io: {
		ownLimit:   "Raise limits.memory of CONTAINER, so that what it reads stays in memory.",
		ownUse:     "Use a faster volume, or read and write less.",
		neighbours: "Move one of them to another node or disk: Kubernetes has no limits on disk I/O.",
		nobody:     "Look at the volume itself, and at its network if it has one: the time may be that of single slow requests.",
	},
}

// doubts are why a cause is not known.
var doubts = [numDoubts]string{
	cpuNotRead:       "What decides about the wait for CPU was not read: the throttled time of what has a CPU limit, or the use of node NODE. /metrics/cadvisor has both, /stats/summary has no throttled time.",
	cpusOfTheirOwn:   "Pods that request whole CPUs can have them for themselves (the kubelet's cpuManagerPolicy static). If so, the other CPUs of node NODE were short, or else nobody is the cause.",
	memoryNotRead:    "What decides about the wait for memory was not read: the use of node NODE.",
	cacheAtLimit:     "The pod's page cache filled its memory limit, and node NODE was short of memory, too: which of them made the kernel drop pages is not known.",
	disksNotRead:     "What decides about the wait for disk I/O was not read: the bytes of disks, or how long others waited for them. /metrics/cadvisor has both, /stats/summary has no bytes.",
	disksUnplaced:    "Other pods read and wrote much, and whether they did that on a disk that the pod uses is not known: the disks of a pod that has left are not known, and those of a pod that moved no bytes.",
	disksHardlyShort: "Other pods read and wrote much on the disks that the pod uses, and waited for them less than it did: whether they are the cause is not known.",
}

// mostly is the share of the time asked for that must be measured, or else the answer states how much was.
const mostly = 0.9

// conclude writes the answer.
func (d *decision) conclude() {
	s, worst := &d.slow, d.addStalls()
	throttled, still, limited := d.throttledMean()
	if limited {
		s.Stalls[cpu].Throttled = &throttled
	}
	asked := d.To.Sub(d.From)
	window := "the last " + humanize.Duration(asked.Round(time.Second))
	if d.NoStalls == "" && s.MeasuredSeconds < mostly*asked.Seconds() {
		window = "the " + humanize.Seconds(math.Round(s.MeasuredSeconds)) + " that were measured"
	}
	link := " "
	switch {
	case d.NoStalls != "":
		d.withoutStalls(still, limited, window)
	case s.MeasuredSeconds == 0:
		link, s.Message = ": ", "its stalls were not read twice yet, so what it waited for is not known"
	case worst < 0:
		s.Message = fmt.Sprintf("waited for CPU, memory and disk I/O in less than %s of %s", humanize.Percent(least), window)
	default:
		d.explain(worst, window)
	}
	for r := range d.tallies {
		d.describe(r)
	}
	d.addUnknown()
	s.Summary = fmt.Sprintf("Pod %s/%s%s%s.", s.Namespace, s.Pod, link, s.Message)
}

// addStalls adds the stalls of all resources to the answer. It returns the resource for which the pod waited
// most, or -1 if it waited for none.
func (d *decision) addStalls() (worst int) {
	s := &d.slow
	worst = -1
	for r := range d.tallies {
		t := &d.tallies[r]
		s.Stalls = append(s.Stalls, d.stall(r))
		s.MeasuredSeconds = max(s.MeasuredSeconds, t.measured)
		if t.known && t.some >= least*t.measured && (worst < 0 || t.some/t.measured > s.Lost) {
			worst, s.Lost = r, t.some/t.measured
		}
	}
	return worst
}

// addUnknown adds to the answer what would decide and was not read.
func (d *decision) addUnknown() {
	s := &d.slow
	for r := range d.tallies {
		t := &d.tallies[r]
		for i, part := range t.doubts {
			if text := strings.ReplaceAll(doubts[i], "NODE", d.Node); part > 0 && part >= least*t.measured && !slices.Contains(s.NotKnown, text) {
				s.NotKnown = append(s.NotKnown, text)
			}
		}
		for i := range t.others {
			if u := &d.Neighbours[i]; r != io && u.NoRequests && t.isNamed(neighbours) && t.isWorthAName(&t.others[i]) {
				s.NotKnown = append(s.NotKnown, fmt.Sprintf("What %s requested is not known, because it has left: it is the cause of at most what is given.", d.nameable(u).name()))
			}
		}
	}
	if t := &d.tallies[cpu]; t.unclear >= least*t.measured && t.isNamed(ownLimit) {
		s.NotKnown = append(s.NotKnown, fmt.Sprintf("Node %s was short of CPU, too, and several threads may have been held back at once: how much of the wait the pod's CPU limits explain is at most what is given. Raise the limit, then ask again.", d.Node))
	}
	if t := &d.tallies[memory]; t.isNamed(nobody) {
		s.NotKnown = append(s.NotKnown, "Limits that no kubelet reports can be the cause of the wait for memory: memory.high, that of a slice above the pod, and one that was in force earlier.")
	}
}

// withoutStalls answers where a node does not report stalls of pods. Throttled time is known nevertheless.
func (d *decision) withoutStalls(still float64, limited bool, window string) {
	s := &d.slow
	s.NotKnown = append(s.NotKnown, d.NoStalls)
	if !limited {
		s.Message = "was not measured: what it waited for is not known"
		return
	}
	s.MeasuredSeconds = d.To.Sub(d.From).Seconds()
	s.NotKnown = append(s.NotKnown, "The time that a CPU limit cost is estimated: the kernel adds up throttled time over the CPUs that the threads could use.")
	if still < least {
		s.Message = fmt.Sprintf("was held back by a CPU limit in less than %s of %s; what else it waited for is not known", humanize.Percent(least), window)
		return
	}
	s.Lost, s.Resource, s.Cause = still, CPU, OwnLimit
	s.Message = fmt.Sprintf("was held back by %s for about %s of %s; what else it waited for is not known", d.limitText(cpu), humanize.Percent(s.Lost), window)
	s.Advice = d.fill(advice[cpu][ownLimit], cpu)
}

// explain writes the message about the resource for which the pod waited most.
func (d *decision) explain(r int, window string) {
	s, t := &d.slow, &d.tallies[r]
	s.Resource = resources[r]
	var order []int
	for c := range t.parts {
		order = append(order, c)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(t.parts[b], t.parts[a]) })
	named := 1 // the largest part always is
	for named < len(order) && t.isNamed(order[named]) {
		named++
	}
	order = order[:named]
	s.Message = fmt.Sprintf("waited for %s %s of %s", words[r], humanize.Percent(s.Lost), window)
	s.Cause, s.Advice = causes[order[0]], d.fill(advice[r][order[0]], r)
	if len(order) == 1 {
		s.Message += ", " + d.fill(reasons[r][order[0]], r)
		return
	}
	var parts []string
	for _, c := range order {
		parts = append(parts, humanize.Percent(t.parts[c]/t.measured)+" "+strings.TrimPrefix(d.fill(reasons[r][c], r), "and "))
	}
	s.Message += ": " + strings.Join(parts, ", ")
}

// fill replaces the placeholders of a text.
func (d *decision) fill(text string, r int) string {
	return strings.NewReplacer("LIMIT", d.limitText(r), "CONTAINER", d.limitedText(r), "NODE", d.Node, "WHO", d.neighboursText(r)).Replace(text)
}

// limited returns the one, of the containers and the pod, that its limit held back most; nil if none has a
// limit.
func (d *decision) limited(r int) (most *Use) {
	degree := func(u *Use) float64 {
		if r == cpu {
			return u.Throttled.get(d.From, d.To) + 1e-9*u.CPULimit
		}
		if u.MemoryLimit == 0 {
			return 0
		}
		return max(u.Memory.get(d.From, d.To), u.WorkingSet.get(d.From, d.To)) / u.MemoryLimit
	}
	highest := 0.0
	for _, u := range d.withLimits() {
		if v := degree(u); v > highest {
			most, highest = u, v
		}
	}
	return most
}

func (d *decision) limitText(r int) string {
	text, amount := "its own memory limit", humanize.Bytes
	limit := func(u *Use) float64 { return u.MemoryLimit }
	if r == cpu {
		text, amount, limit = "its own CPU limit", cores, func(u *Use) float64 { return u.CPULimit }
	}
	if u := d.limited(r); u != nil && limit(u) > 0 {
		text += " of " + amount(limit(u))
	}
	return text
}

func (d *decision) limitedText(r int) string {
	if u := d.limited(r); u != nil && u != &d.Pod {
		return "container " + u.Name
	}
	return "the pod"
}

// neighboursText names the neighbours.
func (d *decision) neighboursText(r int) string {
	hidden, names := 0, []string{}
	for _, n := range d.stall(r).Neighbours {
		if n.Pod == "" {
			hidden++
			continue
		}
		names = append(names, n.name())
	}
	switch {
	case hidden == 1:
		names = append(names, hiddenPod)
	case hidden > 1:
		names = append(names, humanize.Count(hidden, "pod")+" of other namespaces")
	}
	if len(names) == 0 {
		return "many neighbours, each of them a little"
	}
	return humanize.List(names, 0)
}

// hiddenPod names a neighbour that the caller may not see.
const hiddenPod = "a pod of another namespace"

func (n Neighbour) name() string {
	if n.Pod == "" {
		return hiddenPod
	}
	return n.Namespace + "/" + n.Pod
}

func cores(n float64) string { return humanize.Cores(n * 1e9) }

// fact adds evidence.
func (d *decision) fact(format string, args ...any) {
	d.slow.Evidence = append(d.slow.Evidence, fmt.Sprintf(format, args...))
}

// describe adds the evidence about one resource.
func (d *decision) describe(r int) {
	t := &d.tallies[r]
	if t.known && t.some >= least*t.measured {
		full := ""
		if t.fullKnown {
			full = ", and all that could run at once " + humanize.Percent(t.full/t.measured)
		}
		d.fact("%s: some thread waited %s of the time%s", words[r], humanize.Percent(t.some/t.measured), full)
	}
	switch {
	case r == cpu:
		d.describeThrottling()
	case r == memory && t.parts[ownLimit]+t.doubts[cacheAtLimit] > 0:
		d.describeMemoryLimit()
	}
	if !t.known || t.some < least*t.measured {
		return
	}
	format := [numResources]func(float64) string{cpu: cores, memory: humanize.Bytes, io: humanize.BytesPerSecond}[r]
	if t.node > 0 && r != io {
		capacity := [numResources]float64{cpu: d.Whole.CPULimit, memory: d.Whole.MemoryLimit}[r]
		d.fact("node %s used %s of %s while the pod waited, the pod %s", d.Node, format(t.node/t.some), format(capacity), format(t.own/t.some))
		if together := d.memoryForPods(); r == memory && t.pods() >= atLimit*together*t.some {
			d.fact("the pods together used %s of the %s that the node does not reserve", format(t.pods()/t.some), format(together))
		}
	} else if r == io {
		d.fact("the pod read and wrote %s while it waited", format(t.own/t.some))
	}
	d.describeNeighbours(r, format)
}

// describeNeighbours adds what the neighbours that are named used of a resource.
func (d *decision) describeNeighbours(r int, format func(float64) string) {
	for _, n := range d.stall(r).Neighbours {
		above := ""
		if r != io {
			above = fmt.Sprintf(", %s above its request", format(n.Above))
		}
		d.fact("%s used %s%s: %s of the time", n.name(), format(n.Used), above, humanize.Percent(n.Share))
	}
}

// describeThrottling adds which limits on CPU held threads back.
func (d *decision) describeThrottling() {
	for _, u := range d.withLimits() {
		if held, ok := u.Throttled.over(d.From, d.To); ok && held >= least {
			d.fact("%s of %s: threads were held back for %s of each second, added up over CPUs, and used %s", limitOf(u, &d.Pod, "CPU"), cores(u.CPULimit), humanize.Seconds(held), cores(u.CPU.get(d.From, d.To)))
		}
	}
}

// describeMemoryLimit adds which limits on memory were reached.
func (d *decision) describeMemoryLimit() {
	for _, u := range d.withLimits() {
		if used, reached := u.memoryAtLimit(d.From, d.To); reached {
			d.fact("%s of %s: %s were in use, the page cache included", limitOf(u, &d.Pod, "memory"), humanize.Bytes(u.MemoryLimit), humanize.Bytes(used))
			if u.LimitHits > 0 {
				d.fact("the kernel's counter: use hit that limit %s times since the cgroup was made", humanize.Number(int(u.LimitHits)))
			}
		}
	}
	if faults := d.Pod.MajorFaults.get(d.From, d.To); faults >= 1 {
		d.fact("%s page faults a second had to read from disk", humanize.Decimal(faults, 0))
	}
}

// withLimits returns the containers and the pod.
func (d *decision) withLimits() (all []*Use) {
	for i := range d.Containers {
		all = append(all, &d.Containers[i])
	}
	return append(all, &d.Pod)
}

func limitOf(u, pod *Use, resource string) string {
	if u == pod {
		return "the pod has a " + resource + " limit"
	}
	return fmt.Sprintf("container %s has a %s limit", u.Name, resource)
}
