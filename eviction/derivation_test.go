package eviction

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"sigs.k8s.io/yaml"
)

// TestDerivation prints complete decisions: see testdata/derivation. The commands are:
//
//	node [imagefs] [split] [transition=DURATION] [max-grace=SECONDS] [limits] [parity]
//	decide at=TIME [no-layout] [no-summary]
//	admit CONDITION... [critical] [requests] [tolerates]
//
// node drops all state and uses the configuration below it. The lines of decide describe the node:
// what is available ("memory 90Mi of 1Gi", "memAvailable 100Mi of 1Gi", "swap 1Gi of 2Gi", "nodefs ... inodes 10 of 1000", "pids 3 of 100", each
// optionally with ago=5s or ahead=5s), stalls ("stall memory some 30"), and pods (the name, and
// then what they request and use). Lines that begin with "after" describe the node after the
// collections.
func TestDerivation(t *testing.T) {
	datadriven.Walk(t, "testdata/derivation", func(t *testing.T, path string) {
		var (
			settings *Settings
			layout   DiskLayout
			state    DecisionState
		)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "node":
				state = DecisionState{}
				layout = DiskLayout{DedicatedImageFs: d.HasArg("imagefs") || d.HasArg("split"), DedicatedContainerFs: d.HasArg("split")}
				var err error
				if settings, err = configured(d); err != nil {
					return err.Error() + "\n"
				}
				var b strings.Builder
				for _, t := range settings.Thresholds {
					fmt.Fprintln(&b, t)
				}
				return b.String()
			case "decide":
				in := &Input{Settings: settings, Layout: layout, State: state, Summary: &stats.Summary{}}
				after, err := node(in, d)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				decision := Decide(in)
				var b strings.Builder
				describeDecision(&b, decision)
				if len(decision.Reclaim) > 0 {
					decision = decision.AfterReclaim(after, nil)
					fmt.Fprintf(&b, "after that: ")
					describeOutcome(&b, decision)
				}
				state = decision.State
				return b.String()
			case "admit":
				return admission(d)
			}
			d.Fatalf(t, "unknown command")
			return ""
		})
	})
}

func configured(d *datadriven.TestData) (*Settings, error) {
	config := &ThresholdConfig{}
	if err := yaml.UnmarshalStrict([]byte(d.Input), config); err != nil {
		return nil, err
	}
	s := &Settings{LocalLimits: d.HasArg("limits"), Parity: d.HasArg("parity"), Rules: Rules{IgnoreHugePages: d.HasArg("ignore-huge-pages")}, TransitionPeriod: 5 * time.Minute, MaxPodGraceSeconds: 60}
	for _, a := range d.CmdArgs {
		var err error
		switch a.Key {
		case "transition":
			s.TransitionPeriod, err = time.ParseDuration(a.Vals[0])
		case "max-grace":
			s.MaxPodGraceSeconds, err = strconv.ParseInt(a.Vals[0], 10, 64)
		}
		if err != nil {
			return nil, err
		}
	}
	var err error
	s.Thresholds, err = Parse(config)
	return s, err
}

// node sets the input that a decide command describes, and returns the summary after a collection.
func node(in *Input, d *datadriven.TestData) (*stats.Summary, error) {
	for _, a := range d.CmdArgs {
		if a.Key == "at" {
			offset, err := time.ParseDuration(a.Vals[0])
			if err != nil {
				return nil, err
			}
			in.Now = t0.Add(offset)
		}
	}
	if d.HasArg("no-layout") {
		in.LayoutErr = errors.New("the runtime does not answer")
	}
	later := &stats.Summary{}
	changes := false
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		summaries := []*stats.Summary{in.Summary, later}
		if words[0] == "after" {
			summaries, words, changes = summaries[1:], words[1:], true
		}
		for _, s := range summaries {
			if err := given(in, s, words); err != nil {
				return nil, fmt.Errorf("%s: %w", strings.Join(words, " "), err)
			}
		}
	}
	for i := range in.Pods { // each pod was added for both summaries
		in.Pods[i/2] = in.Pods[i]
	}
	in.Pods = in.Pods[:len(in.Pods)/2]
	if d.HasArg("no-summary") {
		in.Summary, in.SummaryErr = nil, errors.New("the kubelet does not answer")
	}
	if !changes {
		return in.Summary, nil
	}
	return later, nil
}

// given parses one line.
func given(in *Input, s *stats.Summary, words []string) error {
	measured := in.Now
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		if v, ok := strings.CutPrefix(w, "ago="); ok {
			ago, err := time.ParseDuration(v)
			measured = in.Now.Add(-ago)
			return err == nil
		}
		if v, ok := strings.CutPrefix(w, "ahead="); ok {
			ahead, err := time.ParseDuration(v)
			measured = in.Now.Add(ahead)
			return err == nil
		}
		return false
	})
	numbers := func(words []string) (a, b *uint64, err error) {
		if len(words) < 3 || words[1] != "of" {
			return nil, nil, errors.New("want A of B")
		}
		if a, err = amount(words[0]); err == nil {
			b, err = amount(words[2])
		}
		return a, b, err
	}
	switch words[0] {
	case "memory", "allocatable":
		left, all, err := numbers(words[1:])
		if err != nil {
			return err
		}
		m := &stats.MemoryStats{Time: metav1.NewTime(measured), AvailableBytes: left, WorkingSetBytes: new(*all - *left)}
		if words[0] == "memory" {
			if before := s.Node.Memory; before != nil {
				m.PSI = before.PSI
			}
			s.Node.Memory = m
		} else {
			s.Node.SystemContainers = []stats.ContainerStats{{Name: "pods", Memory: m}}
		}
	case "huge-pages":
		n, err := amount(words[1])
		if err != nil {
			return err
		}
		if in.MemoryLeft == nil {
			in.MemoryLeft = &MemoryLeft{}
		}
		in.MemoryLeft.HugePages = *n
	case "memAvailable", "swap":
		left, all, err := numbers(words[1:])
		if err != nil {
			return err
		}
		if in.MemoryLeft == nil {
			in.MemoryLeft = &MemoryLeft{}
		}
		m := in.MemoryLeft
		if m.At = measured; words[0] == "swap" {
			m.SwapFree, m.SwapTotal = *left, *all
		} else {
			m.Available, m.Total = *left, *all
		}
	case "nodefs", "imagefs", "containerfs":
		fs := &stats.FsStats{Time: metav1.NewTime(measured)}
		var err error
		if words[1] != "inodes" {
			if fs.AvailableBytes, fs.CapacityBytes, err = numbers(words[1:]); err != nil {
				return err
			}
		}
		if i := slices.Index(words, "inodes"); i >= 0 {
			if fs.InodesFree, fs.Inodes, err = numbers(words[i+1:]); err != nil {
				return err
			}
		}
		if s.Node.Runtime == nil {
			s.Node.Runtime = &stats.RuntimeStats{}
		}
		switch words[0] {
		case "nodefs":
			s.Node.Fs = fs
		case "imagefs":
			s.Node.Runtime.ImageFs = fs
		default:
			s.Node.Runtime.ContainerFs = fs
		}
	case "pids":
		running, most, err := numbers(words[1:])
		if err != nil {
			return err
		}
		s.Node.Rlimit = &stats.RlimitStats{Time: metav1.NewTime(measured), MaxPID: new(int64(*most)), NumOfRunningProcesses: new(int64(*running))}
	case "stall":
		return stall(s, metav1.NewTime(measured), words[1:])
	default:
		return pod(in, s, words)
	}
	return nil
}

func amount(s string) (*uint64, error) {
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return &n, nil
	}
	q, err := resource.ParseQuantity(s)
	return new(uint64(q.Value())), err
}

func stall(s *stats.Summary, measured metav1.Time, words []string) error {
	f, err := strconv.ParseFloat(words[2], 64)
	if err != nil {
		return err
	}
	psi := &stats.PSIStats{}
	switch n := &s.Node; words[0] {
	case "memory":
		if n.Memory == nil {
			n.Memory = &stats.MemoryStats{Time: measured}
		}
		if n.Memory.PSI == nil {
			n.Memory.PSI = psi
		}
		psi = n.Memory.PSI
	case "cpu":
		if n.CPU == nil {
			n.CPU = &stats.CPUStats{Time: measured, PSI: psi}
		}
		psi = n.CPU.PSI
	case "io":
		if n.IO == nil {
			n.IO = &stats.IOStats{Time: measured, PSI: psi}
		}
		psi = n.IO.PSI
	}
	share := &psi.Some
	if words[1] == "full" {
		share = &psi.Full
	}
	*share = stats.PSIData{Avg10: f, Avg60: f, Avg300: f}
	return nil
}

// pod adds a pod of one container.
func pod(in *Input, s *stats.Summary, words []string) error {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: words[0], UID: types.UID("uid-" + words[0]), Annotations: map[string]string{}}}
	c := corev1.Container{Name: "app", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}}
	st := stats.PodStats{PodRef: stats.PodReference(refOf(p)), Containers: []stats.ContainerStats{{Name: "app"}}}
	app, has := &st.Containers[0], true
	for _, w := range words[1:] {
		key, val, _ := strings.Cut(w, "=")
		switch key {
		case "static":
			p.Annotations[sourceAnnotation] = "file"
			continue
		case "mirror":
			p.Annotations[mirrorAnnotation] = "x"
			continue
		case "nostats":
			has = false
			continue
		}
		val, limit, _ := strings.Cut(val, "/")
		q, err := resource.ParseQuantity(val)
		if err != nil {
			return err
		}
		n, _ := amount(val)
		switch key {
		case "memory":
			st.Memory = &stats.MemoryStats{WorkingSetBytes: n}
			app.Memory = st.Memory
		case "cpu":
			st.CPU = &stats.CPUStats{UsageNanoCores: new(uint64(q.ScaledValue(resource.Nano)))}
		case "rootfs":
			app.Rootfs = &stats.FsStats{UsedBytes: n}
		case "logs":
			app.Logs = &stats.FsStats{UsedBytes: n}
		case "inodes":
			app.Rootfs = &stats.FsStats{InodesUsed: n}
		case "processes":
			st.ProcessStats = &stats.ProcessStats{ProcessCount: n}
		case "total":
			st.EphemeralStorage = &stats.FsStats{UsedBytes: n}
		case "requests-memory":
			c.Resources.Requests[corev1.ResourceMemory] = q
		case "requests-cpu":
			c.Resources.Requests[corev1.ResourceCPU] = q
		case "requests-storage":
			c.Resources.Requests[corev1.ResourceEphemeralStorage] = q
		case "limits-storage":
			c.Resources.Limits[corev1.ResourceEphemeralStorage] = q
		case "priority":
			p.Spec.Priority = new(int32(q.Value()))
		case "grace":
			p.Spec.TerminationGracePeriodSeconds = new(q.Value())
		case "emptydir":
			size := resource.MustParse(limit)
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &size}}})
			st.VolumeStats = append(st.VolumeStats, stats.VolumeStats{Name: "scratch", FsStats: stats.FsStats{UsedBytes: n}})
		default:
			return fmt.Errorf("what does %s mean", w)
		}
	}
	p.Spec.Containers = []corev1.Container{c}
	in.Pods = append(in.Pods, p)
	if has {
		s.Pods = append(s.Pods, st)
	}
	return nil
}

// describeDecision writes a decision with its derivation to b.
func describeDecision(b *strings.Builder, d *Decision) {
	describeOutcome(b, d)
	for i := range d.Thresholds {
		t := &d.Thresholds[i]
		mark := " "
		if i == d.Acting {
			mark = "*"
		}
		fmt.Fprintf(b, "%s %v: ", mark, t.Threshold)
		switch o := t.Observation; {
		case o == nil:
			b.WriteString("no figure")
		case t.Threshold.Signal.Pressure():
			fmt.Fprintf(b, "%v", o.Stall)
		default:
			fmt.Fprintf(b, "%s of %s, limit %s", o.Quantity(o.Available), o.Quantity(o.Capacity), t.Limit.String())
			if t.Goal.Cmp(t.Limit) != 0 {
				fmt.Fprintf(b, ", ends at %s", t.Goal.String())
			}
		}
		if distance, ok := t.Distance(); ok && !t.Met {
			fmt.Fprintf(b, ", %.4g away", distance)
		}
		for _, word := range []struct {
			is   bool
			says string
		}{
			{t.Met, "met"}, {t.Reclaiming, "held"}, {t.InForce, "in force"}, {t.InForce && !t.Fresh, "not newer"},
			{t.Derived, "derived"}, {t.Deferred, "waits"},
		} {
			if word.is {
				b.WriteString(", " + word.says)
			}
		}
		if !t.Since.IsZero() && !t.Since.Equal(d.At) {
			fmt.Fprintf(b, ", since %v ago", d.At.Sub(t.Since))
		}
		if t.Remaining > 0 {
			fmt.Fprintf(b, ", %v left", t.Remaining)
		}
		b.WriteByte('\n')
	}
	for _, c := range d.Conditions {
		fmt.Fprintf(b, "  %s=%v, met %v ago\n", c.Type, c.Reported, d.At.Sub(c.MetAt))
	}
	for _, e := range d.Exceeded {
		fmt.Fprintf(b, "  %s exceeds %s %s: %s of %s (%s)\n", e.Pod.Name, e.Kind, e.Name, e.Used.String(), e.Limit.String(), e.SkipMessage)
	}
	for i, r := range d.Ranking {
		mark := " "
		if i == d.Victim {
			mark = ">"
		}
		fmt.Fprintf(b, "  %s %s: over %v, priority %d, uses %s of %s, excess %s", mark, r.Pod.Name, r.Over, r.Priority, r.Usage.String(), r.Request.String(), r.Excess.String())
		if r.Skipped != NotSkipped {
			fmt.Fprintf(b, ", passed over: %v", r.Skipped)
		}
		if r.BeforeNextBy != KeyNone {
			fmt.Fprintf(b, "; before the next by %v", r.BeforeNextBy)
		}
		b.WriteByte('\n')
	}
	for _, doubt := range doubts(d) {
		fmt.Fprintf(b, "  doubt about %s", doubt.signal)
		if doubt.pod != (PodIdentity{}) {
			fmt.Fprintf(b, " of %s", doubt.pod.Name)
		}
		fmt.Fprintf(b, ": %s\n", doubt.reason)
	}
}

// doubt is a figure that is missing or cannot be right, of the node or of a pod.
type doubt struct {
	signal Signal
	pod    PodIdentity
	reason string
}

func doubts(d *Decision) (list []doubt) {
	for i := range d.Thresholds {
		t := &d.Thresholds[i]
		n := doubt{signal: t.Threshold.Signal, reason: figureDoubt(t.Observation)}
		if n.reason != "" && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	for i := range d.Ranking {
		if r := &d.Ranking[i]; r.Doubt != "" {
			list = append(list, doubt{d.Thresholds[d.Acting].Threshold.Signal, r.Pod, r.Doubt})
		}
	}
	return list
}

func figureDoubt(o *Observation) string {
	if o == nil {
		return "there is no figure"
	}
	return o.Doubt
}

// describeOutcome writes the outcome of a decision.
func describeOutcome(b *strings.Builder, d *Decision) {
	fmt.Fprint(b, d.Outcome)
	if len(d.Reclaim) > 0 {
		fmt.Fprintf(b, " %v", d.Reclaim)
	}
	if d.Err != nil {
		fmt.Fprintf(b, ": %v", d.Err)
	}
	if d.Reclaimed != nil {
		for _, t := range d.Reclaimed.Open {
			fmt.Fprintf(b, ", still %v", t)
		}
		for i := range d.Thresholds {
			t := &d.Thresholds[i]
			if reason := figureDoubt(findObservation(d.Reclaimed.Observations, t.Threshold.Signal)); reason != "" && d.Reclaimed.Observations != nil {
				fmt.Fprintf(b, ", doubt about %s: %s", t.Threshold.Signal, reason)
			}
		}
	}
	b.WriteByte('\n')
	for _, k := range d.Kills {
		fmt.Fprintf(b, "  kill %s for %s in %ds: %s\n", k.Pod.Name, k.Signal, k.GraceSeconds, k.Message)
	}
}

func admission(d *datadriven.TestData) string {
	var conditions []corev1.NodeConditionType
	pod := &corev1.Pod{}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "critical":
			pod.Spec.Priority = new(int32(criticalPriority))
		case "requests":
			pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
		case "tolerates":
			pod.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists}}
		default:
			conditions = append(conditions, corev1.NodeConditionType(a.Key))
		}
	}
	a := Admit(pod, conditions)
	return fmt.Sprintf("%v %s\n", a.Admit, a.Message)
}
