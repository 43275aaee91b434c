package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// Judge compares every cgroup in the tree with the pods of this node and gives each a Judgement.
// pods may be nil; most judgements are then Unknown. now is the time of this machine's clock.
func Judge(t *Tree, pods *Pods, now time.Time) *Report {
	j := &judging{tree: t, pods: pods, now: now, cgroupsByUID: map[metric.PodUID][]*Cgroup{}}
	r := &Report{Time: t.Ended, Cgroups: t.Hierarchies.Mode(), Roots: append([]metric.CgroupPath{}, t.Roots...), Pods: []PodCgroups{}}
	for _, h := range t.Hierarchies {
		r.Directories = append(r.Directories, strings.TrimSuffix(h.Dir+string(t.Under), "/"))
	}
	for _, err := range t.Problems {
		r.Problems = append(r.Problems, err.Error())
	}
	if pods != nil {
		r.PodsFrom, r.PodsAt, j.podsByUID = pods.From, &pods.At, pods.byUID()
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
	for _, c := range t.OutsidePods {
		r.Pods = append(r.Pods, j.judgeOutsidePod(c))
	}
	return r
}

// judging has the state of one call of Judge.
type judging struct {
	tree         *Tree
	pods         *Pods // nil if there is no list of pods
	now          time.Time
	podsByUID    podsByUID
	doubt        string                      // why pods may exist that are not in the list; empty if the list is used
	cgroupsByUID map[metric.PodUID][]*Cgroup // only cgroups of pods, not of containers
}

// judgePod judges the cgroup of a pod, and those of its containers.
func (j *judging) judgePod(c *Cgroup) PodCgroups {
	p := PodCgroups{
		CgroupReport: j.describeCgroup(c),
		UID:          c.UID, Driver: c.Driver, PathQoS: c.QoS, cgroup: c,
	}
	facts := j.podsByUID[c.UID]
	if facts != nil {
		p.Namespace, p.Name, p.SpecQoS = facts.Namespace, facts.Name, podcgroup.QoS(facts.QoS)
	}
	own, others := j.chooseOwn(c.UID, p.SpecQoS)
	switch {
	case facts != nil && own == c:
		j.judgeOwn(&p, facts, others)
		sandbox := findSandbox(c, facts)
		for _, below := range c.Containers {
			p.Containers = append(p.Containers, j.judgeContainer(below, facts, sandbox))
		}
	case facts != nil:
		p.Judgement = Duplicate
		p.Reasons = append([]string{duplicateReason(c, own, others, p.SpecQoS)}, p.Reasons...)
		p.Containers = j.judgeDuplicateContainers(c, own, facts)
	default:
		j.judgeUnlisted(&p, own, others)
		for _, below := range c.Containers {
			p.Containers = append(p.Containers, j.newContainer(below, p.Judgement, "it is judged like its pod's cgroup"))
		}
	}
	switch p.Judgement {
	case NoPod:
		p.KeptBecause = j.keptBecause(c)
		p.Removable = p.KeptBecause == ""
	case Duplicate:
		p.KeptBecause = "its pod exists; it can be removed when the pod is deleted"
		if facts == nil {
			p.KeptBecause = "it is not known whether its pod exists"
		}
	}
	return p
}

// chooseOwn returns which of the cgroups of one UID is the one that the pod uses, and the others.
// It is the one in the QoS class of the spec, or else the one with processes. own is nil if two fit
// equally well.
func (j *judging) chooseOwn(uid metric.PodUID, spec podcgroup.QoS) (own *Cgroup, others []*Cgroup) {
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

// judgeOwn judges the cgroup that a listed pod uses.
func (j *judging) judgeOwn(p *PodCgroups, facts *cluster.Pod, others []*Cgroup) {
	p.setStarted(facts.Started)
	own := p.Reasons
	switch {
	case p.SpecQoS != "" && p.PathQoS != p.SpecQoS:
		p.Judgement = WrongQoS
		p.Reasons = []string{fmt.Sprintf("the pod's QoS class is %s, but this cgroup is in class %s; the UID has no other cgroup", p.SpecQoS, p.PathQoS)}
	case p.cgroup.IsEmpty() && j.countOutsidePod(p.UID) == 0:
		p.Judgement = Empty
		p.Reasons = []string{emptyReason(facts)}
	default:
		p.Judgement = Live
		p.Reasons = []string{j.pods.From + " lists the pod"}
		if !facts.Deleted.IsZero() {
			p.Reasons[0] += ", which is being deleted"
		}
		if n := j.countOutsidePod(p.UID); n > 0 {
			own = append(own, fmt.Sprintf("%s of its containers %s outside of it: the kubelet and the runtime use different cgroup drivers", humanize.Count(n, "cgroup"), humanize.IsAre(n)))
		}
	}
	p.Reasons = append(p.Reasons, own...)
	for _, other := range others {
		p.Reasons = append(p.Reasons, string(other.Path)+" is a duplicate of it")
	}
}

// emptyReason returns why the cgroup of a listed pod has no process.
func emptyReason(facts *cluster.Pod) string {
	switch {
	case !facts.Deleted.IsZero():
		return "nothing runs in it, and the pod is being deleted: the kubelet removes it soon"
	case facts.Phase == cluster.Succeeded || facts.Phase == cluster.Failed:
		return "nothing runs in it: the pod has finished"
	case facts.Phase == cluster.Running:
		return "nothing runs in it, although the pod is running: its sandbox died, or its processes were moved to another cgroup"
	}
	return "nothing runs in it yet: the pod is starting"
}

// duplicateReason returns why c is not the cgroup that the pod uses. own is nil if that one is not
// known.
func duplicateReason(c, own *Cgroup, others []*Cgroup, spec podcgroup.QoS) string {
	if own == nil {
		var paths []string
		for _, other := range others {
			if other != c {
				paths = append(paths, string(other.Path))
			}
		}
		return "the same UID also has " + humanize.List(paths, 0) + ", and it is not known which one the pod uses"
	}
	reason := "the pod's cgroup is " + string(own.Path)
	switch {
	case spec != "" && c.QoS != spec:
		reason += ": the pod's QoS class is " + string(spec)
	case c.IsEmpty():
		reason += ": the pod's processes run there"
	}
	return reason
}

// judgeUnlisted judges the cgroup of a pod that is not in the list of pods.
func (j *judging) judgeUnlisted(p *PodCgroups, own *Cgroup, others []*Cgroup) {
	evidence := p.Reasons
	judgement, reason := j.judgeUnlistedUID(p.cgroup)
	p.Judgement, p.Reasons = judgement, []string{reason}
	several := len(others) > 0
	if p.Judgement == Unknown && several && own != nil && own != p.cgroup {
		p.Judgement = Duplicate
		p.Reasons = []string{duplicateReason(p.cgroup, own, others, "")}
	} else if several {
		for _, other := range j.cgroupsByUID[p.UID] {
			if other != p.cgroup {
				p.Reasons = append(p.Reasons, string(other.Path)+" has the same UID")
			}
		}
	}
	p.Reasons = append(p.Reasons, evidence...)
}

// judgeUnlistedUID decides between Unknown and NoPod for a UID that is not in the list.
func (j *judging) judgeUnlistedUID(c *Cgroup) (Judgement, string) {
	switch {
	case j.pods == nil:
		return Unknown, "there is no list of pods to compare with"
	case j.doubt != "":
		return Unknown, "the list of pods from " + j.pods.From + " is not used: it seems to be of another machine"
	case podcgroup.IsStatic(c.UID) && !j.pods.Static:
		return Unknown, "its UID is a static pod's: the API server may not know such a pod, the kubelet does"
	case c.EarliestModified.Add(SettleTime).After(j.pods.At):
		return Unknown, j.pods.From + " does not list its pod, but the cgroup is newer than the list or less than a minute older: the pod may be starting"
	}
	return NoPod, fmt.Sprintf("%s lists %s, none with this UID", j.pods.From, humanize.Count(len(j.pods.List), "pod"))
}

// keptBecause returns why a cgroup without a pod must not be removed; empty if it may be removed.
func (j *judging) keptBecause(c *Cgroup) string {
	switch {
	case c.Unreadable:
		return "some of its processes could not be read"
	case c.CountProcesses() > 0:
		return processesInside(c.CountProcesses())
	case c.Populated:
		return "the kernel counts processes inside"
	case j.countOutsidePod(c.UID) > 0:
		return "there are cgroups of its containers outside of it"
	case c.LatestModified.Add(SettleTime).After(j.pods.At) || c.LatestModified.Add(SettleTime).After(j.now):
		return "it changed " + humanize.Ago(c.LatestModified, j.now) + ": the list of pods must be at least a minute newer than that"
	}
	return ""
}

// countOutsidePod counts the cgroups of a pod's containers that are outside of the pod's cgroup.
func (j *judging) countOutsidePod(uid metric.PodUID) (n int) {
	for _, c := range j.tree.OutsidePods {
		if c.UID == uid {
			n++
		}
	}
	return n
}

// judgeOutsidePod judges the cgroup of a container outside of its pod's cgroup.
func (j *judging) judgeOutsidePod(c *Cgroup) PodCgroups {
	p := PodCgroups{UID: c.UID, PathQoS: c.QoS, cgroup: c}
	facts := j.podsByUID[c.UID]
	var one ContainerReport
	if facts == nil {
		judgement, reason := j.judgeUnlistedUID(c)
		one = j.newContainer(c, judgement, reason)
	} else {
		p.Namespace, p.Name, p.SpecQoS = facts.Namespace, facts.Name, podcgroup.QoS(facts.QoS)
		one = j.judgeContainer(c, facts, nil)
	}
	p.CgroupReport, p.Containers = one.CgroupReport, []ContainerReport{one}
	p.Reasons = append(p.Reasons, "it is a container's cgroup outside of its pod's: the kubelet and the runtime use different cgroup drivers")
	if p.Judgement == NoPod {
		p.KeptBecause = "it is outside of every kubepods cgroup"
	}
	return p
}

// shownProcesses is the number of processes of a cgroup that a report lists.
const shownProcesses = 3

// describeCgroup returns what is known about c, without a judgement. Its reasons describe only its
// processes.
func (j *judging) describeCgroup(c *Cgroup) CgroupReport {
	d := CgroupReport{
		Path: c.Path, Hierarchies: c.hierarchyNames(),
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
	d.Reasons = j.processEvidence(c)
	return d
}

// setStarted sets the start time from a status, if the status has one.
func (r *CgroupReport) setStarted(at time.Time) {
	if !at.IsZero() {
		r.Since, r.SinceFrom = at, FromStatus
	}
}

// mostHierarchies returns the largest number of hierarchies in which one pod's cgroup is. A runtime
// may omit some hierarchies, the same ones for all pods.
func (j *judging) mostHierarchies() (n int) {
	for _, c := range j.tree.Pods {
		n = max(n, len(c.Locations))
	}
	return n
}
