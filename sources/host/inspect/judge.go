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
	j := &judge{tree: t, pods: pods, now: now, known: pods.named(), uids: map[metric.PodUID][]*Cgroup{}}
	r := &Report{Time: t.Ended, Cgroups: t.Hierarchies.Mode(), Roots: append([]metric.CgroupPath{}, t.Roots...), Pods: []Pod{}}
	for _, h := range t.Hierarchies {
		r.Looked = append(r.Looked, strings.TrimSuffix(h.Dir+string(t.Under), "/"))
	}
	for _, err := range t.Problems {
		r.Problems = append(r.Problems, err.Error())
	}
	if pods != nil {
		r.Asked, r.AskedAt = pods.From, &pods.At
		if j.doubt = pods.doubt(t, j.known); j.doubt != "" {
			r.Problems = append(r.Problems, j.doubt)
		}
	}
	for _, c := range t.Pods {
		j.uids[c.UID] = append(j.uids[c.UID], c)
	}
	for _, c := range t.Pods {
		r.Pods = append(r.Pods, j.pod(c))
	}
	for _, c := range t.Strays {
		r.Pods = append(r.Pods, j.stray(c))
	}
	return r
}

// judge is one judgement in progress.
type judge struct {
	tree  *Tree
	pods  *Pods // nil: nobody was asked
	now   time.Time
	known named
	doubt string                      // why pods are not believed where they are silent
	uids  map[metric.PodUID][]*Cgroup // the pods' cgroups of each UID
}

// pod judges a pod's cgroup, and those of its containers.
func (j *judge) pod(c *Cgroup) Pod {
	p := Pod{
		Judged: j.judged(c, time.Time{}),
		UID:    c.UID, Driver: c.Driver, PathQoS: c.QoS, cgroup: c,
	}
	facts := j.known[c.UID]
	if facts != nil {
		p.Namespace, p.Name, p.SpecQoS = facts.Namespace, facts.Name, podcgroup.QoS(facts.QoS)
	}
	own, rivals := j.choose(c.UID, p.SpecQoS)
	switch {
	case facts != nil && own == c:
		j.ownCgroup(&p, facts, rivals)
		p.Containers = j.containers(c, facts)
	case facts != nil:
		p.Judgement = Duplicate
		p.Why = append(duplicateOf(c, own, rivals, p.SpecQoS), p.Why...)
		p.Containers = j.duplicateContainers(c, own, facts)
	default:
		j.nameless(&p, own, rivals)
		for _, below := range c.Containers {
			p.Containers = append(p.Containers, j.container(below, time.Time{}, p.Judgement, "as its pod's cgroup"))
		}
	}
	switch p.Judgement {
	case Orphan:
		p.Kept = j.keeps(c)
		p.Removable = p.Kept == ""
	case Duplicate:
		p.Kept = "its pod lives; it can go when the pod is deleted"
		if facts == nil {
			p.Kept = "whether its pod lives is not known"
		}
	}
	return p
}

// choose returns which of the cgroups of one UID is the pod's, and the others. It
// is nil if nothing tells: first the class of the pod's spec, if it is known,
// then whether anything runs.
func (j *judge) choose(uid metric.PodUID, spec podcgroup.QoS) (own *Cgroup, rivals []*Cgroup) {
	rank := func(c *Cgroup) (n int) {
		if spec != "" && c.QoS == spec {
			n = 2
		}
		if !c.Vacant() {
			n++
		}
		return n
	}
	all := slices.Clone(j.uids[uid])
	slices.SortStableFunc(all, func(a, b *Cgroup) int { return cmp.Compare(rank(b), rank(a)) })
	if len(all) > 1 && rank(all[0]) == rank(all[1]) {
		return nil, all
	}
	return all[0], all[1:]
}

// ownCgroup judges the one cgroup that is a known pod's.
func (j *judge) ownCgroup(p *Pod, facts *cluster.Pod, rivals []*Cgroup) {
	if !facts.Started.IsZero() {
		p.Since, p.SinceFrom = facts.Started, FromStatus
	}
	own := p.Why
	switch {
	case p.SpecQoS != "" && p.PathQoS != p.SpecQoS:
		p.Judgement = WrongQoS
		p.Why = []string{fmt.Sprintf("the pod's class is %s, and this is a cgroup for %s pods; there is no other of its UID", p.SpecQoS, p.PathQoS)}
	case p.cgroup.Vacant() && j.straysOf(p.UID) == 0:
		p.Judgement = Empty
		p.Why = []string{whyEmpty(facts)}
	default:
		p.Judgement = Live
		p.Why = []string{fmt.Sprintf("%s names the pod", j.pods.From)}
		if !facts.Deleted.IsZero() {
			p.Why[0] += ", which is being deleted"
		}
		if n := j.straysOf(p.UID); n > 0 {
			own = append(own, fmt.Sprintf("%s of its containers %s outside of it: the kubelet and the runtime use different drivers", plural(n, "cgroup"), isOrAre(n)))
		}
	}
	p.Why = append(p.Why, own...)
	for _, rival := range rivals {
		p.Why = append(p.Why, fmt.Sprintf("%s is a duplicate of it", rival.Path))
	}
}

// whyEmpty says why nothing may be running in the cgroup of a known pod.
func whyEmpty(facts *cluster.Pod) string {
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

// duplicateOf says why c is not the cgroup of its pod. Own is nil if nothing tells
// which is.
func duplicateOf(c, own *Cgroup, rivals []*Cgroup, spec podcgroup.QoS) []string {
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
	case c.Vacant():
		return []string{why + ": its processes are there"}
	}
	return []string{why}
}

// nameless judges the cgroup of a pod that nobody names.
func (j *judge) nameless(p *Pod, own *Cgroup, rivals []*Cgroup) {
	evidence := p.Why
	var why string
	p.Judgement, why = j.silence(p.cgroup)
	p.Why = []string{why}
	several := len(rivals) > 0
	if p.Judgement == Unknown && several && own != nil && own != p.cgroup {
		p.Judgement = Duplicate
		p.Why = duplicateOf(p.cgroup, own, rivals, "")
	} else if several {
		for _, rival := range j.uids[p.UID] {
			if rival != p.cgroup {
				p.Why = append(p.Why, fmt.Sprintf("%s has the same UID", rival.Path))
			}
		}
	}
	p.Why = append(p.Why, evidence...)
}

// silence says what it means that no pod of c's UID is known.
func (j *judge) silence(c *Cgroup) (Judgement, string) {
	switch {
	case j.pods == nil:
		return Unknown, "nobody was asked which pods there are"
	case j.doubt != "":
		return Unknown, "what " + j.pods.From + " says is not believed: it seems to be about another machine"
	case isStatic(c.UID) && !j.pods.Static:
		return Unknown, "its UID is that of a static pod, of which an API server need not know: only the kubelet does"
	case c.Made.Add(Settle).After(j.pods.At):
		return Unknown, fmt.Sprintf("%s does not name its pod, but the cgroup was made after that was said, or less than a minute before: the pod may be starting", j.pods.From)
	}
	return Orphan, fmt.Sprintf("%s names %s, and none has this UID", j.pods.From, plural(len(j.pods.List), "pod"))
}

// keeps says why an orphan must not be removed; empty if it may be.
func (j *judge) keeps(c *Cgroup) string {
	switch {
	case c.Unread:
		return "some of its processes could not be read"
	case c.Count() > 0:
		return are(c.Count(), "process", "inside")
	case c.Held:
		return "the kernel counts something that runs inside"
	case j.straysOf(c.UID) > 0:
		return "its containers have cgroups outside of it"
	case c.Touched.Add(Settle).After(j.pods.At) || c.Touched.Add(Settle).After(j.now):
		return fmt.Sprintf("it changed %s ago: pods must be asked for a minute after that", duration.HumanDuration(j.now.Sub(c.Touched)))
	}
	return ""
}

// straysOf counts the containers of a pod whose cgroups are elsewhere.
func (j *judge) straysOf(uid metric.PodUID) (n int) {
	for _, s := range j.tree.Strays {
		if s.UID == uid {
			n++
		}
	}
	return n
}

// stray judges a container's cgroup outside of its pod's.
func (j *judge) stray(c *Cgroup) Pod {
	p := Pod{UID: c.UID, PathQoS: c.QoS, cgroup: c}
	facts := j.known[c.UID]
	var one Container
	if facts == nil {
		judgement, why := j.silence(c)
		one = j.container(c, time.Time{}, judgement, why)
	} else {
		p.Namespace, p.Name, p.SpecQoS = facts.Namespace, facts.Name, podcgroup.QoS(facts.QoS)
		one = j.containerOf(c, facts, nil)
	}
	p.Judged, p.Containers = one.Judged, []Container{one}
	p.Why = append(p.Why, "it is a container's cgroup outside of its pod's: the kubelet and the runtime use different drivers")
	if p.Judgement == Orphan {
		p.Kept = "it is outside of every kubepods cgroup"
	}
	return p
}

// shown is how many processes of a cgroup a report names.
const shown = 3

// judged returns what is found of c, with why its processes are as they are. It
// began at started, if that is known.
func (j *judge) judged(c *Cgroup, started time.Time) Judged {
	d := Judged{
		Path: c.Path, Hierarchies: c.hierarchies(j.tree.Hierarchies),
		Processes: c.Count(), Hidden: c.Unread || c.Unnamed > 0 || c.Held && c.Count() == 0, Frozen: c.Frozen,
		Limits: c.Limits.any(),
		Oldest: c.Processes[:min(shown, len(c.Processes))],
		Since:  c.Made, SinceFrom: FromDirectory,
	}
	if len(c.In) > 0 {
		d.Inode = c.In[0].Inode
	}
	if began := c.began(); began.Before(c.Made) {
		d.Since, d.SinceFrom = began, FromProcess
	}
	if !started.IsZero() {
		d.Since, d.SinceFrom = started, FromStatus
	}
	d.Why = j.within(c)
	return d
}

// widest returns in how many hierarchies the most widely held cgroup is. Runtimes
// leave some of them out, and always the same.
func (j *judge) widest() (n int) {
	for _, c := range j.tree.Pods {
		n = max(n, len(c.In))
	}
	return n
}
