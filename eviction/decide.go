package eviction

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// notifierEvery is how often the memory notifiers follow the summary, at most.
const notifierEvery = 10 * time.Second

// limitGraceSeconds is the time to end of a pod that is evicted at once.
const limitGraceSeconds = 1

// Decide returns what to do now. It changes nothing in what it is given, and says the same
// whenever it is given the same.
func Decide(in *Input) *Decision {
	d := &Decision{At: in.Now, Acting: -1, Victim: -1, State: in.State, Conditions: in.State.Conditions, parity: in.Settings.Parity}
	if len(in.Settings.Thresholds) == 0 && !in.Settings.LocalLimits {
		return d
	}
	begins := !in.State.LayoutKnown
	if begins {
		if in.ImageFsErr != nil {
			d.Outcome, d.Err = OutcomeNoLayout, fmt.Errorf("tell whether images have a file system of their own: %w", in.ImageFsErr)
			return d
		}
		layout := in.Layout
		if in.ContainerFsErr != nil {
			layout.DedicatedContainerFs = false
		}
		d.State.Layout, d.State.LayoutKnown = layout, true
	}
	d.Layout = d.State.Layout
	if err := in.SummaryErr; err != nil || in.Summary == nil {
		if err == nil {
			err = errNoSummary
		}
		d.Outcome, d.Err = OutcomeNoSummary, fmt.Errorf("read the summary: %w", err)
		return d
	}
	if in.Now.Sub(in.State.NotifiersAt) > notifierEvery {
		d.RefreshNotifiers, d.State.NotifiersAt = true, in.Now
	}
	d.Observations = stalled(observe(in.Summary, in.Now), in.Settings.Thresholds, &in.Summary.Node, in.Now)
	d.thresholds(in, begins)
	d.conditions(in)
	d.remember()
	d.act(in)
	return d
}

// thresholds compares each with its signal.
func (d *Decision) thresholds(in *Input, begins bool) {
	list, added := withContainerFs(in.Settings.Thresholds, d.Layout)
	d.Thresholds = make([]ThresholdState, 0, len(list))
	for i := range list {
		if slices.ContainsFunc(list[:i], func(t Threshold) bool { return t.same(&list[i]) }) {
			continue // a soft one with no grace period says what the hard one says
		}
		t := ThresholdState{Threshold: list[i], Derived: i >= added}
		t.Waits = t.Derived && begins
		d.Thresholds = append(d.Thresholds, t)
	}
	inOrder(d.Thresholds)
	for i := range d.Thresholds {
		d.Thresholds[i].compare(in, d)
	}
}

func (t *ThresholdState) compare(in *Input, d *Decision) {
	signal := t.Threshold.Signal
	o := find(d.Observations, signal)
	t.Observation = o
	if why := unusable(o); why != "" {
		d.Doubts = doubt(d.Doubts, Doubt{Signal: signal, Why: why})
	}
	if o != nil && !signal.Pressure() {
		t.Limit, t.Goal = t.Threshold.limit(o.Capacity)
	}
	if t.Waits || !usable(o, d.parity) {
		return
	}
	t.Fresh = in.State.newer(o)
	before := in.State.standing(&t.Threshold)
	t.Met = o.beyond(&t.Threshold, false)
	t.Held = !t.Met && before != nil && before.InForce && o.beyond(&t.Threshold, true)
	if !t.Met && !t.Held {
		return
	}
	t.Since = in.Now
	if before != nil {
		t.Since = before.Since
	}
	met := in.Now.Sub(t.Since)
	t.InForce = met >= t.Threshold.Grace
	t.Settles = signal.settles(in.Evicted, in.Now)
	t.Left = max(0, t.Threshold.Grace-met)
}

// doubt adds one, unless two thresholds share it.
func doubt(list []Doubt, d Doubt) []Doubt {
	if slices.Contains(list, d) {
		return list
	}
	return append(list, d)
}

// conditions follow from the thresholds that are met, within their grace period or not.
func (d *Decision) conditions(in *Input) {
	list := slices.Clone(in.State.Conditions)
	for i := range d.Thresholds {
		t := &d.Thresholds[i]
		if !t.Met && !t.Held {
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
	slices.SortStableFunc(list, func(a, b Condition) int { return place(a.Type) - place(b.Type) })
	d.Conditions = list
}

func place(c corev1.NodeConditionType) int {
	return slices.Index([]corev1.NodeConditionType{
		corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, NodeCPUPressure, NodeIOPressure,
	}, c)
}

// remember makes the state for the next decision.
func (d *Decision) remember() {
	s := &d.State
	s.Conditions = d.Conditions
	s.Thresholds, s.Seen = nil, nil
	for i := range d.Thresholds {
		if t := &d.Thresholds[i]; t.Met || t.Held {
			s.Thresholds = append(s.Thresholds, Standing{t.Threshold, t.Since, t.InForce})
		}
	}
	for i := range d.Observations {
		if o := &d.Observations[i]; o.Doubt == "" || d.parity {
			s.Seen = append(s.Seen, Seen{o.Signal, o.Time})
		}
	}
}

// act decides who goes: pods over their limits; else one pod, for one threshold.
func (d *Decision) act(in *Input) {
	statsByUID := byUID(in.Summary.Pods)
	if in.Settings.LocalLimits && d.enforce(in, statsByUID) {
		d.Outcome = OutcomeLocalLimit
		return
	}
	d.Outcome = OutcomeCalm
	for i := range d.Thresholds {
		t := &d.Thresholds[i]
		if t.InForce && t.Fresh && t.Settles.IsZero() {
			d.Acting = i
			break
		}
		switch {
		case !t.InForce:
		case !t.Fresh:
			d.Outcome = OutcomeStale
		case d.Outcome == OutcomeCalm:
			d.Outcome = OutcomeSettling
		}
	}
	if d.Acting < 0 {
		return
	}
	t := &d.Thresholds[d.Acting]
	signal := t.Threshold.Signal
	if signal.Resource() == resourceIO {
		d.Outcome = OutcomeWatched
		return
	}
	d.Ranking = in.rank(&t.Threshold, d.Layout, statsByUID)
	d.Victim = slices.IndexFunc(d.Ranking, func(r Ranked) bool { return r.Passed == NotPassed })
	for i := range d.Ranking {
		if r := &d.Ranking[i]; r.Doubt != "" {
			d.Doubts = append(d.Doubts, Doubt{Signal: signal, Pod: r.Pod, Why: r.Doubt})
		}
	}
	if d.Victim >= 0 {
		pod := d.Ranking[d.Victim].pod
		d.planned = kill(pod, statsByUID[string(pod.UID)], t, in.Settings)
	}
	if d.Reclaim = d.Layout.Collections(signal); len(d.Reclaim) > 0 {
		d.Outcome = OutcomeReclaim
		return
	}
	d.choose()
}

// choose evicts whom the ranking named.
func (d *Decision) choose() {
	switch {
	case d.planned != nil:
		d.Outcome, d.Kills = OutcomeEvict, []Kill{*d.planned}
	case len(d.Ranking) == 0:
		d.Outcome = OutcomeNoPods
	default:
		d.Outcome = OutcomeNobody
	}
}

// enforce evicts the pods over their limits, and says whether there were any that may be.
func (d *Decision) enforce(in *Input, statsByUID map[string]*stats.PodStats) bool {
	d.Exceeded = exceeding(in.Pods, statsByUID, d.Layout)
	for i := range d.Exceeded {
		e := &d.Exceeded[i]
		b := in.Blocked[e.pod.UID]
		switch {
		case e.Critical != NotCritical:
		case in.Self != "" && e.pod.UID == in.Self:
			e.Passed = PassSelf
		case b.Hard:
			e.Passed, e.Blocked = PassBlocked, b.Why
		default:
			d.Kills = append(d.Kills, Kill{Pod: e.Pod, Signal: e.Kind, Hard: true, GraceSeconds: limitGraceSeconds, Message: e.message})
		}
	}
	return len(d.Kills) > 0
}

// kill is the eviction of a pod for a threshold.
func kill(pod *corev1.Pod, s *stats.PodStats, t *ThresholdState, settings *Settings) *Kill {
	grace := int64(limitGraceSeconds)
	if !t.Threshold.Hard() {
		grace = settings.MaxPodGraceSeconds
		if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
			grace = min(grace, *own)
		}
	}
	message, annotations := explain(pod, s, t)
	return &Kill{
		Pod: refOf(pod), Signal: string(t.Threshold.Signal), Hard: t.Threshold.Hard(), GraceSeconds: grace, Message: message, Annotations: annotations,
		Condition: &corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation,
			Reason: corev1.PodReasonTerminationByKubelet, Message: message,
		},
	}
}
