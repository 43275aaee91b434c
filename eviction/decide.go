package eviction

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// notifierInterval is the shortest time between two decisions with RefreshNotifiers.
const notifierInterval = 10 * time.Second

// limitGraceSeconds is the termination grace period of a pod that exceeds a limit, and of a hard
// threshold.
const limitGraceSeconds = 1

// Decide returns what to do now. It does not change its input. Equal inputs give equal decisions.
func Decide(in *Input) *Decision {
	d := &Decision{
		At: in.Now, Outcome: OutcomeNoThresholds, Acting: -1, Victim: -1, State: in.State, Conditions: in.State.Conditions, Contention: in.State.Contention, parity: in.Settings.Parity,
	}
	if len(in.Settings.Thresholds) == 0 && !in.Settings.LocalLimits {
		return d
	}
	begins := !in.State.LayoutKnown
	if begins {
		if in.LayoutErr != nil {
			d.Outcome, d.Err = OutcomeNoLayout, fmt.Errorf("find out whether images have their own file system: %w", in.LayoutErr)
			return d
		}
		d.State.Layout, d.State.LayoutKnown = in.Layout, true
	}
	d.Layout = d.State.Layout
	if err := in.SummaryErr; err != nil || in.Summary == nil {
		if err == nil {
			err = errNoSummary
		}
		d.Outcome, d.Err = OutcomeNoSummary, fmt.Errorf("read the summary: %w", err)
		return d
	}
	if in.Now.Sub(in.State.NotifiersAt) > notifierInterval {
		d.RefreshNotifiers, d.State.NotifiersAt = true, in.Now
	}
	if in.MemoryLeft != nil && !in.Settings.Rules.IgnoreHugePages {
		d.hugePages = in.MemoryLeft.HugePages
	}
	d.Observations = observeSummary(in.Summary, in.Now)
	subtractHugePages(d.Observations, d.hugePages)
	d.Observations = observeMemoryLeft(d.Observations, in.MemoryLeft, in.Now)
	d.Observations = observeStalls(d.Observations, in.Settings.Thresholds, &in.Summary.Node, in.Now)
	d.compareThresholds(in, begins)
	d.updateConditions(in)
	d.Contention = compareContention(in.Settings.Contention, in.State.Contention, &in.Summary.Node)
	d.saveState()
	d.chooseAction(in)
	return d
}

// compareThresholds compares each threshold with its signal.
func (d *Decision) compareThresholds(in *Input, begins bool) {
	list, added := withContainerFs(in.Settings.Thresholds, d.Layout)
	d.Thresholds = make([]ThresholdState, 0, len(list))
	for i := range list {
		if slices.ContainsFunc(list[:i], func(t Threshold) bool { return t.equal(&list[i]) }) {
			continue // a soft threshold without a grace period is equal to the hard one
		}
		t := ThresholdState{Threshold: list[i], Derived: i >= added}
		t.Deferred = t.Derived && begins
		d.Thresholds = append(d.Thresholds, t)
	}
	sortThresholds(d.Thresholds)
	for i := range d.Thresholds {
		d.Thresholds[i].compare(in, d)
	}
}

func (t *ThresholdState) compare(in *Input, d *Decision) {
	signal := t.Threshold.Signal
	o := findObservation(d.Observations, signal)
	t.Observation = o
	if o != nil && !signal.Pressure() {
		t.Limit, t.Goal = t.Threshold.limitAndGoal(o.Capacity)
	}
	if t.Deferred || !isUsable(o, d.parity) {
		return
	}
	t.Fresh = in.State.isNewer(o)
	before := in.State.metThreshold(&t.Threshold)
	t.Met = o.crosses(&t.Threshold, false)
	t.Reclaiming = !t.Met && before != nil && before.InForce && o.crosses(&t.Threshold, true)
	if !t.Met && !t.Reclaiming {
		return
	}
	t.Since = in.Now
	if before != nil {
		t.Since = before.Since
	}
	met := in.Now.Sub(t.Since)
	t.InForce = met >= t.Threshold.Grace
	t.SettledAt = signal.settledAt(in.Evicted, in.Now)
	t.Remaining = max(0, t.Threshold.Grace-met)
}

// updateConditions sets the conditions from the thresholds that are met, whether they are in force
// or not.
func (d *Decision) updateConditions(in *Input) {
	list := slices.Clone(in.State.Conditions)
	for i := range d.Thresholds {
		t := &d.Thresholds[i]
		if !t.Met && !t.Reclaiming {
			continue
		}
		kind := t.Threshold.Signal.Condition()
		at := slices.IndexFunc(list, func(c Condition) bool { return c.Type == kind })
		if at < 0 {
			at, list = len(list), append(list, Condition{Type: kind})
		}
		list[at].MetAt = in.Now
	}
	for i := range list {
		list[i].Reported = in.Now.Sub(list[i].MetAt) < in.Settings.TransitionPeriod
	}
	slices.SortStableFunc(list, func(a, b Condition) int { return conditionOrder(a.Type) - conditionOrder(b.Type) })
	d.Conditions = list
}

func conditionOrder(c corev1.NodeConditionType) int {
	return slices.Index([]corev1.NodeConditionType{
		corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, NodeCPUPressure, NodeIOPressure,
	}, c)
}

// saveState sets the state for the next decision.
func (d *Decision) saveState() {
	s := &d.State
	s.Conditions, s.Contention = d.Conditions, d.Contention
	s.Thresholds, s.LastMeasured = nil, nil
	for i := range d.Thresholds {
		if t := &d.Thresholds[i]; t.Met || t.Reclaiming {
			s.Thresholds = append(s.Thresholds, MetThreshold{t.Threshold, t.Since, t.InForce})
		}
	}
	for i := range d.Observations {
		if o := &d.Observations[i]; o.Doubt == "" || d.parity {
			s.LastMeasured = append(s.LastMeasured, SignalTime{o.Signal, o.Time})
		}
	}
}

// chooseAction chooses what to evict: all pods over their limits, or one pod for one threshold.
func (d *Decision) chooseAction(in *Input) {
	statsByUID := byUID(in.Summary.Pods)
	if in.Settings.LocalLimits && d.enforceLimits(in, statsByUID) {
		d.Outcome = OutcomeLocalLimit
		return
	}
	d.Outcome = OutcomeNoneInForce
	for i := range d.Thresholds {
		t := &d.Thresholds[i]
		if t.InForce && t.Fresh && t.SettledAt.IsZero() {
			d.Acting = i
			break
		}
		switch {
		case !t.InForce:
		case !t.Fresh:
			d.Outcome = OutcomeStale
		case d.Outcome == OutcomeNoneInForce:
			d.Outcome = OutcomeSettling
		}
	}
	if d.Acting < 0 {
		return
	}
	t := &d.Thresholds[d.Acting]
	signal := t.Threshold.Signal
	if signal.Resource() == resourceIO {
		d.Outcome = OutcomeConditionOnly
		return
	}
	d.Ranking = in.rank(&t.Threshold, d.Layout, statsByUID)
	d.Victim = slices.IndexFunc(d.Ranking, func(r RankedPod) bool { return r.Skipped == NotSkipped })
	if d.Victim >= 0 {
		pod := d.Ranking[d.Victim].pod
		d.plannedKill = newKill(pod, statsByUID[string(pod.UID)], t, in.Settings)
	}
	if d.Reclaim = d.Layout.Collections(signal); len(d.Reclaim) > 0 {
		d.Outcome = OutcomeReclaim
		return
	}
	d.planKill()
}

// planKill sets the outcome and, if there is a victim, its kill.
func (d *Decision) planKill() {
	switch {
	case d.plannedKill != nil:
		d.Outcome, d.Kills = OutcomeEvict, []Kill{*d.plannedKill}
	case len(d.Ranking) == 0:
		d.Outcome = OutcomeNoPods
	default:
		d.Outcome = OutcomeNoCandidate
	}
}

// enforceLimits evicts the pods that exceed their limits. It reports whether there is a pod to
// evict.
func (d *Decision) enforceLimits(in *Input, statsByUID map[string]*stats.PodStats) bool {
	d.Exceeded = exceededLimits(in.Pods, statsByUID, d.Layout, in.Settings.Rules)
	for i := range d.Exceeded {
		e := &d.Exceeded[i]
		if e.Skipped, e.SkipMessage = in.skip(e.pod, true); e.Skipped == NotSkipped {
			d.Kills = append(d.Kills, Kill{Pod: e.Pod, Signal: e.Kind, Hard: true, GraceSeconds: limitGraceSeconds, Message: e.message})
		}
	}
	return len(d.Kills) > 0
}

// newKill returns the eviction of a pod for a threshold.
func newKill(pod *corev1.Pod, s *stats.PodStats, t *ThresholdState, settings *Settings) *Kill {
	grace := int64(limitGraceSeconds)
	if !t.Threshold.Hard() {
		grace = settings.MaxPodGraceSeconds
		if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
			grace = min(grace, *own)
		}
	}
	message, annotations := evictionMessage(pod, s, t)
	return &Kill{
		Pod: refOf(pod), Signal: string(t.Threshold.Signal), Hard: t.Threshold.Hard(), GraceSeconds: grace, Message: message, Annotations: annotations,
		Condition: &corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation,
			Reason: corev1.PodReasonTerminationByKubelet, Message: message,
		},
	}
}

// Collection is a kind of unused object that a node removes before it evicts a pod.
type Collection string

// The collections.
const (
	UnusedContainers Collection = "container" // containers that have ended, also of pods that are not deleted
	UnusedImages     Collection = "image"     // images that no container uses
)

// Collections returns what is removed for a signal before a pod is evicted, in order. Nothing can
// be removed for memory and process ids. The same holds for nodefs if images have their own file
// system.
func (l DiskLayout) Collections(s Signal) []Collection {
	node := s == NodeFsAvailable || s == NodeFsInodesFree
	image := s == ImageFsAvailable || s == ImageFsInodesFree
	switch {
	case s.Condition() != corev1.NodeDiskPressure, l.separate() && node:
		return nil
	case l.split() && image:
		return []Collection{UnusedImages}
	case l.split():
		return []Collection{UnusedContainers}
	}
	return []Collection{UnusedContainers, UnusedImages}
}

// Reclaimed is the result of the collections, by the summary after them. It has no observations if
// there is no summary.
type Reclaimed struct {
	Observations []Observation
	// Open are the thresholds that are still met if their minimum reclaim is added to the threshold.
	// If there is none, no pod is evicted.
	Open []Threshold
}

// AfterReclaim returns the decision after the collections of Reclaim. s is the summary that was
// read after them; err is the error of that read. Errors of the collections do not matter, because
// the figures decide. No pod is evicted if no threshold is met any more with its minimum reclaim
// added. This includes all signals, hard and soft thresholds, in force or not. Pressure signals do
// not count here, because their averages include the time before the collections. A figure that is
// missing or in doubt counts as not met. Without a summary the pod is evicted, because the earlier
// figures were valid. AfterReclaim does not change the receiver, and returns it if it asked for no
// collection.
func (d *Decision) AfterReclaim(s *stats.Summary, err error) *Decision {
	if d.Outcome != OutcomeReclaim {
		return d
	}
	after := *d
	r := &Reclaimed{}
	after.Reclaim, after.Reclaimed = nil, r
	if err == nil && s != nil {
		r.Observations = observeSummary(s, time.Time{}) // the summary is later than d.At by an unknown time
		subtractHugePages(r.Observations, d.hugePages)
		for i := range d.Thresholds {
			t := &d.Thresholds[i].Threshold
			o := findObservation(r.Observations, t.Signal)
			if !t.Signal.Pressure() && isUsable(o, d.parity) && o.crosses(t, true) {
				r.Open = append(r.Open, *t)
			}
		}
		if len(r.Open) == 0 {
			after.Outcome = OutcomeReclaimed
			return &after
		}
	}
	after.planKill()
	return &after
}
