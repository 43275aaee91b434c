package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// Judge says of every cgroup in the tree what is to be thought of it, by what
// pods says; pods may be nil. Now is our clock's time.
func Judge(t *Tree, pods *Pods, now time.Time) *Report {
	j := &judging{tree: t, pods: pods, now: now, podsByUID: pods.byUID(), cgroupsByUID: map[metric.PodUID][]*Cgroup{}}
	r := &Report{Time: t.Ended, Cgroups: t.Hierarchies.Mode(), Roots: append([]metric.CgroupPath{}, t.Roots...), Pods: []PodReport{}}
	for _, h := range t.Hierarchies {
		r.Directories = append(r.Directories, strings.TrimSuffix(h.Dir+string(t.Under), "/"))
	}
	for _, err := range t.Problems {
		r.Problems = append(r.Problems, err.Error())
	}
	if pods != nil {
		r.PodsFrom, r.PodsAt = pods.From, &pods.At
		if j.doubt = pods.doubtReason(t, j.podsByUID); j.doubt != "" {
			r.Problems = append(r.Problems, j.doubt)
		}
	}
	for _, c := range t.Pods {
		j.cgroupsByUID[c.UID] = append(j.cgroupsByUID[c.UID], c)
	}
	for _, c := range t.Pods {
		r.Pods = append(r.Pods, j.judgePod(c))
	}
	for _, c := range t.Strays {
		r.Pods = append(r.Pods, j.judgeStray(c))
	}
	return r
}

// judging is one judgement in progress.
type judging struct {
	tree         *Tree
	pods         *Pods // nil: nobody was asked
	now          time.Time
	podsByUID    podsByUID
	doubt        string                      // why pods are not believed where they are silent
	cgroupsByUID map[metric.PodUID][]*Cgroup // the pods' cgroups of each UID
}

// judgePod judges a pod's cgroup, and those of its containers.
func (j *judging) judgePod(c *Cgroup) PodReport {
	p := PodReport{
		CgroupReport: j.describeCgroup(c, time.Time{}),
		UID:          c.UID, Driver: c.Driver, PathQoS: c.QoS, cgroup: c,
	}
	facts := j.podsByUID[c.UID]
	if facts != nil {
		p.Namespace, p.Name, p.SpecQoS = facts.Namespace, facts.Name, podcgroup.QoS(facts.QoS)
	}
	own, rivals := j.chooseOwn(c.UID, p.SpecQoS)
	switch {
	case facts != nil && own == c:
		j.judgeOwn(&p, facts, rivals)
		p.Containers = j.judgeContainers(c, facts)
	case facts != nil:
		p.Judgement = Duplicate
		p.Reasons = append(duplicateReasons(c, own, rivals, p.SpecQoS), p.Reasons...)
		p.Containers = j.judgeDuplicateContainers(c, own, facts)
	default:
		j.judgeUnnamed(&p, own, rivals)
		for _, below := range c.Containers {
			p.Containers = append(p.Containers, j.newContainer(below, time.Time{}, p.Judgement, "as its pod's cgroup"))
		}
	}
	switch p.Judgement {
	case Orphan:
		p.KeptBecause = j.keptBecause(c)
		p.Removable = p.KeptBecause == ""
	case Duplicate:
		p.KeptBecause = "its pod lives; it can go when the pod is deleted"
		if facts == nil {
			p.KeptBecause = "whether its pod lives is not known"
		}
	}
	return p
}

// chooseOwn returns which of the cgroups of one UID is the pod's, and the others. It
// is nil if nothing tells: first the class of the pod's spec, if it is known,
// then whether anything runs.
func (j *judging) chooseOwn(uid metric.PodUID, spec podcgroup.QoS) (own *Cgroup, rivals []*Cgroup) {
	rank := func(c *Cgroup) (n int) {
		if spec != "" && c.QoS == spec {
			n = 2
		}
		if !c.IsEmpty() {
			n++
		}
		return n
	}
	all := slices.Clone(j.cgroupsByUID[uid])
	slices.SortStableFunc(all, func(a, b *Cgroup) int { return cmp.Compare(rank(b), rank(a)) })
	if len(all) > 1 && rank(all[0]) == rank(all[1]) {
		return nil, all
	}
	return all[0], all[1:]
}

// judgeOwn judges the one cgroup that is a known pod's.
func (j *judging) judgeOwn(p *PodReport, facts *cluster.Pod, rivals []*Cgroup) {
	if !facts.Started.IsZero() {
		p.Since, p.SinceFrom = facts.Started, FromStatus
	}
	own := p.Reasons
	switch {
	case p.SpecQoS != "" && p.PathQoS != p.SpecQoS:
		p.Judgement = WrongQoS
		p.Reasons = []string{fmt.Sprintf("the pod's class is %s, and this is a cgroup for %s pods; there is no other of its UID", p.SpecQoS, p.PathQoS)}
	case p.cgroup.IsEmpty() && j.countStrays(p.UID) == 0:
		p.Judgement = Empty
		p.Reasons = []string{emptyReason(facts)}
	default:
		p.Judgement = Live
		p.Reasons = []string{fmt.Sprintf("%s names the pod", j.pods.From)}
		if !facts.Deleted.IsZero() {
			p.Reasons[0] += ", which is being deleted"
		}
		if n := j.countStrays(p.UID); n > 0 {
			own = append(own, fmt.Sprintf("%s of its containers %s outside of it: the kubelet and the runtime use different drivers", plural(n, "cgroup"), isOrAre(n)))
		}
	}
	p.Reasons = append(p.Reasons, own...)
	for _, rival := range rivals {
		p.Reasons = append(p.Reasons, fmt.Sprintf("%s is a duplicate of it", rival.Path))
	}
}

// emptyReason says why nothing may be running in the cgroup of a known pod.
func emptyReason(facts *cluster.Pod) string {
	switch {
	case !facts.Deleted.IsZero():
		return "nothing runs in it, and the pod is being deleted: the kubelet removes it soon"
	case facts.Phase == cluster.Succeeded || facts.Phase == cluster.Failed:
		return "nothing runs in it: the pod has finished"
	case facts.Phase == cluster.Running:
		return "nothing runs in it, although the pod is running: its sandbox has died, or its processes were moved elsewhere"
	}
	return "nothing runs in it yet: the pod is being started"
}

// duplicateReasons says why c is not the cgroup of its pod. Own is nil if nothing tells
// which is.
func duplicateReasons(c, own *Cgroup, rivals []*Cgroup, spec podcgroup.QoS) []string {
	if own == nil {
		var others []string
		for _, r := range rivals {
			if r != c {
				others = append(others, string(r.Path))
			}
		}
		return []string{"the same UID has " + strings.Join(others, " and ") + ", and nothing tells which is the pod's"}
	}
	why := "the pod's cgroup is " + string(own.Path)
	switch {
	case spec != "" && c.QoS != spec:
		return []string{fmt.Sprintf("%s: its class is %s", why, spec)}
	case c.IsEmpty():
		return []string{why + ": its processes are there"}
	}
	return []string{why}
}

// judgeUnnamed judges the cgroup of a pod that nobody names.
func (j *judging) judgeUnnamed(p *PodReport, own *Cgroup, rivals []*Cgroup) {
	evidence := p.Reasons
	var why string
	p.Judgement, why = j.judgeUnknownPod(p.cgroup)
	p.Reasons = []string{why}
	several := len(rivals) > 0
	if p.Judgement == Unknown && several && own != nil && own != p.cgroup {
		p.Judgement = Duplicate
		p.Reasons = duplicateReasons(p.cgroup, own, rivals, "")
	} else if several {
		for _, rival := range j.cgroupsByUID[p.UID] {
			if rival != p.cgroup {
				p.Reasons = append(p.Reasons, fmt.Sprintf("%s has the same UID", rival.Path))
			}
		}
	}
	p.Reasons = append(p.Reasons, evidence...)
}

// judgeUnknownPod says what it means that no pod of c's UID is known.
func (j *judging) judgeUnknownPod(c *Cgroup) (Judgement, string) {
	switch {
	case j.pods == nil:
		return Unknown, "nobody was asked which pods there are"
	case j.doubt != "":
		return Unknown, "what " + j.pods.From + " says is not believed: it seems to be about another machine"
	case isStatic(c.UID) && !j.pods.Static:
		return Unknown, "its UID is that of a static pod, of which an API server need not know: only the kubelet does"
	case c.EarliestModified.Add(SettleTime).After(j.pods.At):
		return Unknown, fmt.Sprintf("%s does not name its pod, but the cgroup was made after that was said, or less than a minute before: the pod may be starting", j.pods.From)
	}
	return Orphan, fmt.Sprintf("%s names %s, and none has this UID", j.pods.From, plural(len(j.pods.List), "pod"))
}

// keptBecause says why an orphan must not be removed; empty if it may be.
func (j *judging) keptBecause(c *Cgroup) string {
	switch {
	case c.Unreadable:
		return "some of its processes could not be read"
	case c.CountProcesses() > 0:
		return countAndVerb(c.CountProcesses(), "process", "inside")
	case c.Populated:
		return "the kernel counts something that runs inside"
	case j.countStrays(c.UID) > 0:
		return "its containers have cgroups outside of it"
	case c.LatestModified.Add(SettleTime).After(j.pods.At) || c.LatestModified.Add(SettleTime).After(j.now):
		return fmt.Sprintf("it changed %s ago: pods must be asked for a minute after that", duration.HumanDuration(j.now.Sub(c.LatestModified)))
	}
	return ""
}

// countStrays counts the containers of a pod whose cgroups are elsewhere.
func (j *judging) countStrays(uid metric.PodUID) (n int) {
	for _, s := range j.tree.Strays {
		if s.UID == uid {
			n++
		}
	}
	return n
}

// judgeStray judges a container's cgroup outside of its pod's.
func (j *judging) judgeStray(c *Cgroup) PodReport {
	p := PodReport{UID: c.UID, PathQoS: c.QoS, cgroup: c}
	facts := j.podsByUID[c.UID]
	var one ContainerReport
	if facts == nil {
		judgement, why := j.judgeUnknownPod(c)
		one = j.newContainer(c, time.Time{}, judgement, why)
	} else {
		p.Namespace, p.Name, p.SpecQoS = facts.Namespace, facts.Name, podcgroup.QoS(facts.QoS)
		one = j.judgeContainer(c, facts, nil)
	}
	p.CgroupReport, p.Containers = one.CgroupReport, []ContainerReport{one}
	p.Reasons = append(p.Reasons, "it is a container's cgroup outside of its pod's: the kubelet and the runtime use different drivers")
	if p.Judgement == Orphan {
		p.KeptBecause = "it is outside of every kubepods cgroup"
	}
	return p
}

// shownProcesses is how many processes of a cgroup a report names.
const shownProcesses = 3

// describeCgroup returns what is found of c, with why its processes are as they are. It
// began at started, if that is known.
func (j *judging) describeCgroup(c *Cgroup, started time.Time) CgroupReport {
	d := CgroupReport{
		Path: c.Path, Hierarchies: c.hierarchyNames(j.tree.Hierarchies),
		Processes: c.CountProcesses(), Hidden: c.Unreadable || c.ForeignProcesses > 0 || c.Populated && c.CountProcesses() == 0, Frozen: c.Frozen,
		Limits: c.Limits.orNil(),
		Oldest: c.Processes[:min(shownProcesses, len(c.Processes))],
		Since:  c.EarliestModified, SinceFrom: FromDirectory,
	}
	if len(c.Locations) > 0 {
		d.Inode = c.Locations[0].Inode
	}
	if began := c.startedBy(); began.Before(c.EarliestModified) {
		d.Since, d.SinceFrom = began, FromProcess
	}
	if !started.IsZero() {
		d.Since, d.SinceFrom = started, FromStatus
	}
	d.Reasons = j.processEvidence(c)
	return d
}

// mostHierarchies returns in how many hierarchies the most widely held cgroup is. Runtimes
// leave some of them out, and always the same.
func (j *judging) mostHierarchies() (n int) {
	for _, c := range j.tree.Pods {
		n = max(n, len(c.Locations))
	}
	return n
}
