package reportbuilder

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/internal/humanize"
)

// newSignals returns the signals that have a threshold, in the order in which they are acted on, and
// then weir's own without one.
func newSignals(in *eviction.Input, d *eviction.Decision) []evictionreport.Signal {
	list := []evictionreport.Signal{}
	states := d.Thresholds
	if states == nil { // without a decision, list the configured thresholds
		for _, t := range in.Settings.Thresholds {
			states = append(states, eviction.ThresholdState{Threshold: t})
		}
	}
	read := d.Thresholds != nil
	for i := range states {
		t := &states[i]
		name := string(t.Threshold.Signal)
		at := slices.IndexFunc(list, func(s evictionreport.Signal) bool { return s.Name == name })
		if at < 0 {
			at = len(list)
			list = append(list, newSignal(in, d, t, read))
		}
		threshold := newThreshold(&list[at], t, in.Now)
		threshold.Acting = i == d.Acting
		list[at].Thresholds = append(list[at].Thresholds, threshold)
	}
	for i := range d.Observations {
		o := &d.Observations[i]
		named := func(s evictionreport.Signal) bool { return s.Name == string(o.Signal) }
		if slices.Contains(eviction.OwnSignals(), o.Signal) && !slices.ContainsFunc(list, named) {
			shown := newSignal(in, d, &eviction.ThresholdState{Threshold: eviction.Threshold{Signal: o.Signal}, Observation: o}, read)
			shown.Thresholds = []evictionreport.Threshold{}
			list = append(list, shown)
		}
	}
	if read && in.Summary != nil {
		for i := range list {
			if len(list[i].Thresholds) == 0 {
				continue
			}
			list[i].Ranking = newRanking(rankingThreshold(list[i].Name, d), in, d)
		}
	}
	return list
}

// rankingThreshold returns the threshold of a signal for which a pod is evicted first. The skipped
// pods may depend on it.
func rankingThreshold(name string, d *eviction.Decision) *eviction.Threshold {
	if d.Acting >= 0 && string(d.Thresholds[d.Acting].Threshold.Signal) == name {
		return &d.Thresholds[d.Acting].Threshold
	}
	var first *eviction.Threshold
	for i := range d.Thresholds {
		t := &d.Thresholds[i]
		if string(t.Threshold.Signal) != name {
			continue
		}
		if t.InForce {
			return &t.Threshold
		}
		first = cmp.Or(first, &t.Threshold)
	}
	return first
}

// newSignal returns the signal of a threshold, without its thresholds.
func newSignal(in *eviction.Input, d *eviction.Decision, t *eviction.ThresholdState, read bool) evictionreport.Signal {
	signal := t.Threshold.Signal
	s := evictionreport.Signal{Name: string(signal), Stall: signal.Pressure(), Unit: signalUnit(signal)}
	for _, c := range d.Layout.Collections(signal) {
		s.ReclaimsFirst = append(s.ReclaimsFirst, string(c))
	}
	switch o := t.Observation; {
	case o == nil && read:
		s.Doubt = "there is no figure"
	case o == nil:
	case s.Stall:
		s.Doubt = o.Doubt
		if !math.IsNaN(o.Stall) && !math.IsInf(o.Stall, 0) { // JSON cannot represent these
			s.Value = &o.Stall
		}
	default:
		s.Value, s.Capacity, s.Doubt = floatOf(o.Available), floatOf(o.Capacity), o.Doubt
		if o.HugePages > 0 {
			s.Notes = append(s.Notes, humanize.Bytes(float64(o.HugePages))+" for huge pages are left out of both, because nothing else can use them")
		}
		if m := in.MemoryLeft; signal == eviction.MemoryAvailable && m != nil && m.SwapTotal > m.SwapFree {
			s.Notes = append(s.Notes, humanize.Bytes(float64(m.SwapTotal-m.SwapFree))+" of swap are in use, which this figure and the pods' usage leave out, as the kubelet's do; "+
				string(eviction.SwapAvailable)+" counts them")
		}
	}
	if o := t.Observation; o != nil {
		s.MeasuredAt = o.Time.UTC()
		if o.Time.IsZero() {
			s.MeasuredAt = in.Now.UTC() // the decision makes the same assumption
		}
	}
	return s
}

// newThreshold returns the description of a threshold of s.
func newThreshold(s *evictionreport.Signal, t *eviction.ThresholdState, now time.Time) evictionreport.Threshold {
	threshold := evictionreport.Threshold{
		Text: t.Threshold.String(), Hard: t.Threshold.Hard(), Derived: t.Derived,
		GraceSeconds: t.Threshold.Grace.Seconds(), RemainingSeconds: t.Remaining.Seconds(),
	}
	if !t.Since.IsZero() {
		threshold.Since = t.Since.UTC()
	}
	switch {
	case s.Stall:
		limit := t.Threshold.Value.Stall
		threshold.Limit, threshold.Goal = &limit, &limit
		if m := t.Threshold.MinReclaim; m != nil {
			threshold.Goal = &m.Stall
		}
	case t.Observation != nil:
		threshold.Limit, threshold.Goal = floatOfQuantity(&t.Limit), floatOfQuantity(&t.Goal)
	case t.Threshold.Value.Quantity != nil: // the limit is known without a figure
		threshold.Limit = floatOfQuantity(t.Threshold.Value.Quantity)
	}
	if distance, ok := t.Distance(); ok && s.Doubt == "" {
		threshold.Distance = &distance
		switch {
		case s.Stall:
			threshold.DistancePercent = &distance
		case *s.Capacity > 0:
			percent := 100 * distance / *s.Capacity
			threshold.DistancePercent = &percent
		}
	}
	threshold.State = thresholdState(s, t)
	threshold.Message = thresholdMessage(s, &threshold, now)
	if t.Deferred {
		threshold.Message += "; it counts from the second reading on"
	}
	if t.InForce && !t.SettledAt.IsZero() {
		threshold.Message += "; no pod is evicted for it before " + humanize.Clock(t.SettledAt, now) + ", when the average no longer includes the time before the last eviction"
	}
	return threshold
}

// thresholdState returns the state of a threshold of s.
func thresholdState(s *evictionreport.Signal, t *eviction.ThresholdState) evictionreport.ThresholdState {
	switch {
	case s.Doubt != "" || t.Observation == nil:
		return evictionreport.Unknown
	case t.InForce && t.Met:
		return evictionreport.InForce
	case t.Met:
		return evictionreport.GracePeriod
	case t.Reclaiming:
		return evictionreport.Reclaiming
	}
	return evictionreport.NotMet
}

// thresholdMessage describes the state of a threshold.
func thresholdMessage(s *evictionreport.Signal, t *evictionreport.Threshold, now time.Time) string {
	var text string
	switch t.State {
	case evictionreport.Unknown:
		text = "unknown: " + s.Doubt
		if s.Doubt == "" {
			text = "not read"
		}
	case evictionreport.InForce:
		text = fmt.Sprintf("met by %s since %s, and in force", distanceText(s, t), humanize.Clock(t.Since, now))
	case evictionreport.GracePeriod:
		text = fmt.Sprintf("met by %s since %s, in force in %s", distanceText(s, t), humanize.Clock(t.Since, now), humanize.Seconds(t.RemainingSeconds))
	case evictionreport.Reclaiming:
		text = fmt.Sprintf("in force since %s, until the figure is back at %s", humanize.Clock(t.Since, now), s.Unit.Format(*t.Goal))
	default:
		text = distanceText(s, t) + " away"
		if t.Distance != nil && *t.Distance < 0 { // the threshold does not count yet
			text = "past it by " + distanceText(s, t)
		}
	}
	if t.Derived {
		text += "; copied from the file system that containers are on"
	}
	return text
}

// distanceText returns the distance of the figure from a threshold, on either side of it.
func distanceText(s *evictionreport.Signal, t *evictionreport.Threshold) string {
	if t.Distance == nil {
		return "an unknown distance"
	}
	distance := math.Abs(*t.Distance)
	if s.Stall {
		return strings.TrimSuffix(evictionreport.Percent.Format(distance), "%") + " points"
	}
	text := s.Unit.Format(distance)
	if t.DistancePercent != nil {
		text += " (" + evictionreport.Percent.Format(math.Abs(*t.DistancePercent)) + ")"
	}
	return text
}

func floatOf(n int64) *float64 {
	return new(float64(n))
}

func floatOfQuantity(q *resource.Quantity) *float64 {
	return new(q.AsApproximateFloat64())
}

// signalUnit returns the unit of a signal's figure.
func signalUnit(s eviction.Signal) evictionreport.Unit {
	if s.Pressure() {
		return evictionreport.Percent
	}
	return rankingUnit(s)
}

// rankingUnit returns the unit in which pods are ranked for a signal.
func rankingUnit(s eviction.Signal) evictionreport.Unit {
	switch s.Resource() {
	case "inodes":
		return evictionreport.Inodes
	case "pids":
		return evictionreport.Processes
	case string(corev1.ResourceCPU):
		return evictionreport.Cores
	}
	return evictionreport.Bytes
}

// newCondition returns the description of a node condition.
func newCondition(c *eviction.Condition, in *eviction.Input) evictionreport.Condition {
	condition := evictionreport.Condition{Type: string(c.Type), Reported: c.Reported, MetAt: c.MetAt.UTC()}
	if !c.Reported {
		condition.Message = "false; last met at " + humanize.Clock(c.MetAt, in.Now)
		return condition
	}
	condition.Until = c.MetAt.Add(in.Settings.TransitionPeriod).UTC()
	if c.MetAt.Equal(in.Now) {
		condition.Message = fmt.Sprintf("true: a threshold of it is met; it lasts for %s after that ends", humanize.Duration(in.Settings.TransitionPeriod))
	} else {
		condition.Message = fmt.Sprintf("true: last met at %s; it lasts until %s", humanize.Clock(c.MetAt, in.Now), humanize.Clock(condition.Until, in.Now))
	}
	return condition
}

// newContention returns the description of a condition of KEP-5394.
func newContention(c *eviction.Contention) evictionreport.Contention {
	contention := evictionreport.Contention{
		Type: string(c.Condition), Reported: c.Reported, Avg10: c.Avg10, Avg60: c.Avg60, Threshold: c.Percent, Unknown: c.Unknown,
	}
	contention.Message = fmt.Sprintf("%v: tasks stalled for %v%% of the last minute and %v%% of the last 10s; it begins when both reach %v%%, and ends when the first is below that",
		c.Reported, c.Avg60, c.Avg10, c.Percent)
	if c.Unknown {
		contention.Message = fmt.Sprintf("%v: the stalls of this node cannot be read now", c.Reported)
	}
	return contention
}

// newAdmission returns which pods a node with the decision's conditions admits. It tries one pod of
// each class.
func newAdmission(d *eviction.Decision) *evictionreport.Admission {
	conditions := d.Pressures()
	admits := func(pod *corev1.Pod) bool { return eviction.Admit(pod, conditions).Admit }
	tolerating := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists}}}}
	requesting := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(1, resource.BinarySI)}}}}}}
	mirror := &corev1.Pod{}
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "1"}
	a := &evictionreport.Admission{BestEffort: admits(&corev1.Pod{}), Tolerating: admits(tolerating), Requesting: admits(requesting), Critical: admits(mirror)}
	switch {
	case a.BestEffort:
		a.Message = "any would be admitted"
	case a.Requesting:
		a.Message = "those that request or limit nothing would be refused, unless they are critical or tolerate " + corev1.TaintNodeMemoryPressure + "; others would be admitted"
	default:
		a.Message = "all would be refused that are not critical: static, or of a priority class of the system"
	}
	return a
}

// newExceededLimit returns the description of a pod that exceeds a limit of local storage.
func newExceededLimit(e *eviction.ExceededLimit) evictionreport.ExceededLimit {
	exceeded := evictionreport.ExceededLimit{
		Pod: e.Pod.String(), Kind: e.Kind, Name: e.Name, Skipped: string(e.Skipped),
		UsedBytes: e.Used.AsApproximateFloat64(), LimitBytes: e.Limit.AsApproximateFloat64(),
	}
	store := "local storage"
	switch e.Kind {
	case eviction.EmptyDirLimit:
		store = "emptyDir " + e.Name
	case eviction.ContainerLimit:
		store = "container " + e.Name
	}
	exceeded.Message = fmt.Sprintf("%s uses %s of %s, and may use %s", e.Pod, humanize.Bytes(exceeded.UsedBytes), store, humanize.Bytes(exceeded.LimitBytes))
	if e.Skipped != eviction.NotSkipped {
		exceeded.Message += "; it is not evicted: " + e.SkipMessage
	}
	return exceeded
}
