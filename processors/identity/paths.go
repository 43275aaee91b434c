package identity

import (
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// isSecondPath is the rule two paths, one container: y is a better path of the same container or
// pod. That is the one in the directory of the pod's QoS class, else the one that was chosen before,
// else the first by name.
func (identifier *Identifier) isSecondPath(x, y *candidate) bool {
	if !isSameThing(identifier.sample(x), identifier.sample(y)) {
		return false
	}
	lx, ly := identifier.line(x), identifier.line(y)
	if identifier.pod != nil && identifier.pod.QoS != "" {
		if inX, inY := lx.class == identifier.pod.QoS, ly.class == identifier.pod.QoS; inX != inY {
			return inY
		}
	}
	if lx.id == identifier.t.chosen || ly.id == identifier.t.chosen {
		return ly.id == identifier.t.chosen
	}
	return identifier.sample(y).Instance.Path < identifier.sample(x).Instance.Path
}

// isSameThing reports whether two samples are one container or pod under two paths.
func isSameThing(a, b *metric.Sample) bool {
	x, y := &a.Instance, &b.Instance
	if x.Path == "" || y.Path == "" || x.Path == y.Path {
		return false
	}
	if a.Entity.Kind == metric.Container {
		return x.ID != "" && x.ID == y.ID
	}
	return a.Entity.Kind == metric.Pod && x.UID != "" && x.UID == y.UID
}

// rejectForeignPaths rejects candidates, also lone ones, whose path is not that of the pod: it lies in
// the directory of another QoS class, or the chosen path is only missing from this answer.
func (identifier *Identifier) rejectForeignPaths() {
	for i := range identifier.candidates {
		c := &identifier.candidates[i]
		l := identifier.line(c)
		if c.rejected || l.path == "" {
			continue
		}
		if identifier.isInOtherClass(l) {
			identifier.reject(c, metric.Discontinuous, metric.Evidence{Rule: ruleViews})
		} else if r := identifier.missingPath(c); r != nil && (identifier.pod == nil || l.class != identifier.pod.QoS || r.class == l.class) {
			l.lostTo = r.id
			identifier.reject(c, metric.Ambiguous, metric.Evidence{Rule: ruleViews, Other: metric.CounterReading{Start: r.start, UID: r.uid, ID: r.container, Path: r.path}})
		}
	}
}

// isInOtherClass reports whether a line's path lies in the directory of another QoS class than that of
// its pod, whose class never changes. The class of a static pod is that of its manifest, which the
// API server knows if the hash is the same.
func (identifier *Identifier) isInOtherClass(l *line) bool {
	return identifier.pod != nil && identifier.pod.QoS != "" && l.class != "" && l.class != identifier.pod.QoS && l.uid != "" && l.uid == identifier.pod.ReportedUID()
}

// missingPath returns the line of the chosen path of the container or pod, if c is a path that
// was not seen before and the chosen one is only missing from this answer; else nil.
func (identifier *Identifier) missingPath(c *candidate) *line {
	if !identifier.line(c).isNew() || identifier.batch.Exhaustive {
		return nil
	}
	l, r := identifier.line(c), identifier.t.chosenLine()
	if r == nil || r.path == "" || r.path == l.path || identifier.isTaken(r) || identifier.clock-r.seen > identifier.rememberFor() {
		return nil
	}
	if l.container != "" && r.container == l.container || l.container == "" && l.uid != "" && r.uid == l.uid {
		return r
	}
	return nil
}

// joinPaths finds the paths of one container or pod that show one cgroup: their counters are
// equal. For rate they are one line, so it goes on where the one path is missing. Paths whose
// counters differ are two cgroups, and two lines.
func (identifier *Identifier) joinPaths() {
	for i := range identifier.candidates {
		for j := range identifier.candidates[:i] {
			x, y := &identifier.candidates[j], &identifier.candidates[i]
			if isSameThing(identifier.sample(x), identifier.sample(y)) {
				identifier.joinPair(x, y)
			}
		}
	}
}

// joinPair joins the lines of two paths of one container or pod if their counters are equal, and
// parts them if they differ. The number of the chosen line is kept.
func (identifier *Identifier) joinPair(x, y *candidate) {
	lx, ly := identifier.line(x), identifier.line(y)
	if ly.id == identifier.t.chosen {
		lx, ly = ly, lx
	}
	cpuX, _ := identifier.sample(x).Values.Get(metric.CPUUsage)
	cpuY, _ := identifier.sample(y).Values.Get(metric.CPUUsage)
	joined := lx.number() == ly.number()
	switch {
	case cpuX == 0 || cpuY == 0:
	case cpuX == cpuY && !joined:
		ly.joined = lx.number()
	case cpuX != cpuY && joined:
		identifier.lastID++
		ly.joined = identifier.lastID
	}
}

// number returns the line's number for the later steps.
func (l *line) number() uint32 {
	if l.joined != 0 {
		return l.joined
	}
	return l.id
}

// classOf returns the QoS class in whose directory a pod's cgroup path lies, as the cgroupfs or
// the systemd driver names it. Guaranteed pods lie beside these directories. It returns "" for a
// path outside the kubelet's cgroups.
func classOf(path metric.CgroupPath) string {
	p := string(path)
	switch {
	case strings.Contains(p, "/burstable/") || strings.Contains(p, "-burstable"):
		return "Burstable"
	case strings.Contains(p, "/besteffort/") || strings.Contains(p, "-besteffort"):
		return "BestEffort"
	case strings.Contains(p, "kubepods"):
		return "Guaranteed"
	}
	return ""
}
