package reportbuilder

import (
	"errors"
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

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/eviction/guard"
	"github.com/weir-metrics/weir/eviction/notify"
)

// scene is a node and its rounds.
type scene struct {
	settings *eviction.Settings
	layout   eviction.DiskLayout
	state    eviction.DecisionState
	last     *guard.Round
	acts     []*guard.Round
}

func newScene(t *testing.T, d *datadriven.TestData) *scene {
	config := &eviction.ThresholdConfig{}
	if err := yaml.UnmarshalStrict([]byte(d.Input), config); err != nil {
		d.Fatalf(t, "%v", err)
	}
	s := &scene{
		settings: &eviction.Settings{TransitionPeriod: 5 * time.Minute, MaxPodGraceSeconds: 60, LocalLimits: d.HasArg("limits")},
		layout:   eviction.DiskLayout{DedicatedImageFs: d.HasArg("split"), DedicatedContainerFs: d.HasArg("split")},
	}
	var err error
	if s.settings.Thresholds, err = eviction.Parse(config); err != nil {
		d.Fatalf(t, "%v", err)
	}
	if d.HasArg("contention") {
		var percent string
		d.ScanArgs(t, "contention", &percent)
		if s.settings.Contention, err = eviction.ParseContention(map[string]string{"memory": percent, "io": percent}); err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	return s
}

// round decides about a node. It carries out the decision as mode observe does.
func (s *scene) round(t *testing.T, d *datadriven.TestData) {
	in := &eviction.Input{Now: noon.Add(-2 * time.Second), Settings: s.settings, Layout: s.layout, State: s.state, Summary: &stats.Summary{}}
	r := &guard.Round{Input: in, Notice: notify.Notice{Sources: []notify.NoticeSource{{}}}}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "at":
			in.Now = noon.Add(length(t, a.Vals[0]))
		case "no-summary":
			in.Summary, in.SummaryErr = nil, errors.New("open /host/sys/fs/cgroup/memory: permission denied")
		case "no-layout":
			in.LayoutErr = errors.New("the runtime does not answer")
		case "capture":
			in.Now = captured(t, a.Vals[0], in)
		default:
			d.Fatalf(t, "unknown argument %s", a.Key)
		}
	}
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		if !circumstance(t, r, words) && (in.Summary == nil || !node(t, in, words)) {
			d.Fatalf(t, "what is %q?", line)
		}
	}
	r.Notice.At, r.ReadAt, r.DecidedAt = in.Now.Add(-1700*time.Microsecond), in.Now, in.Now.Add(200*time.Microsecond)
	r.Decision = eviction.Decide(in)
	s.state = r.Decision.State
	observer, err := execute.New(execute.Options{Mode: execute.Observe})
	if err != nil {
		t.Fatal(err)
	}
	if r.Outcomes == nil {
		r.Outcomes = observer.Execute(t.Context(), r.Decision)
	}
	for i := range r.Outcomes {
		r.Outcomes[i].At = in.Now.Add(time.Second)
	}
	s.last = r
	if len(r.Outcomes) > 0 {
		s.acts = append([]*guard.Round{r}, s.acts...)
	}
}

// watch returns the watch with that name in the transcripts. memory is the watch for the first
// threshold, with the node's memory from the lines above.
func watch(t *testing.T, in *eviction.Input, name string) notify.Watch {
	if name == "stall" {
		return notify.StallTrigger{Path: "/proc/pressure/memory", Stall: 400 * time.Millisecond, Window: 2 * time.Second}
	}
	d, first := eviction.Decide(in), in.Settings.Thresholds[0].String()
	for i := range d.Thresholds {
		if s := &d.Thresholds[i]; s.Threshold.String() == first && s.Observation != nil {
			return notify.NewMemoryPoll(s, "/sys/fs/cgroup/memory/kubepods")
		}
	}
	t.Fatalf("there is no figure for %s", first)
	return nil
}

// circumstance parses a line about the round itself. It returns false if the line is about the
// node.
func circumstance(t *testing.T, r *guard.Round, words []string) bool {
	switch words[0] {
	case "woken":
		source := notify.NoticeSource{Watch: watch(t, r.Input, words[1])}
		if w, ok := source.Watch.(notify.MemoryPoll); ok {
			source.Crossing = &notify.Crossing{WorkingSet: w.Figure + 4096, Figure: w.Figure}
		}
		r.Notice.Sources = []notify.NoticeSource{source}
	case "watch":
		r.Watching = append(r.Watching, watch(t, r.Input, words[1]))
	case "unwatched":
		r.Unwatched = append(r.Unwatched, errors.New(strings.Join(words[1:], " ")))
	case "since":
		r.RepeatedSince = noon.Add(length(t, words[1]))
	case "unread":
		r.ReadErr = errors.New(strings.Join(words[1:], " "))
	case "did":
		namespace, name, _ := strings.Cut(words[2], "/")
		o := execute.ActionOutcome{Result: execute.Result(words[1]), Mode: execute.Kill, Pod: eviction.PodIdentity{Namespace: namespace, Name: name, UID: "uid-" + name}, Signal: "memory.available", Message: strings.Join(words[3:], " ")}
		switch o.Result {
		case execute.Blocked:
			o.Budget, o.NotBefore = "web", noon.Add(8*time.Second)
		case execute.Killed:
			o.Hard, o.GraceSeconds, o.Removed, o.Waited = true, 1, true, 1300*time.Millisecond
		}
		r.Outcomes = append(r.Outcomes, o)
	default:
		return false
	}
	return true
}

// node parses a line about the node. It returns false if the line is not about the node.
func node(t *testing.T, in *eviction.Input, words []string) bool {
	s, at := in.Summary, in.Now
	pair := func(words []string) (a, b *uint64) {
		if len(words) < 3 || words[1] != "of" {
			t.Fatalf("%v: want A of B", words)
		}
		return number(t, words[0]), number(t, words[2])
	}
	switch words[0] {
	case "memory", "allocatable":
		left, all := pair(words[1:])
		m := &stats.MemoryStats{Time: metav1.NewTime(at), AvailableBytes: left, WorkingSetBytes: new(*all - *left), UsageBytes: new(*all - *left)}
		if words[0] == "memory" {
			if before := s.Node.Memory; before != nil {
				m.PSI = before.PSI
			}
			s.Node.Memory = m
		} else {
			s.Node.SystemContainers = []stats.ContainerStats{{Name: "pods", Memory: m}}
		}
	case "huge-pages":
		in.MemoryLeft.HugePages = *number(t, words[1])
	case "memAvailable", "swap":
		left, all := pair(words[1:])
		if in.MemoryLeft == nil {
			in.MemoryLeft = &eviction.MemoryLeft{At: at}
		}
		if m := in.MemoryLeft; words[0] == "swap" {
			m.SwapFree, m.SwapTotal = *left, *all
		} else {
			m.Available, m.Total = *left, *all
		}
	case "nodefs", "imagefs":
		fs := &stats.FsStats{Time: metav1.NewTime(at)}
		fs.AvailableBytes, fs.CapacityBytes = pair(words[1:])
		if i := slices.Index(words, "inodes"); i >= 0 {
			fs.InodesFree, fs.Inodes = pair(words[i+1:])
		}
		if words[0] == "nodefs" {
			s.Node.Fs = fs
		} else {
			s.Node.Runtime = &stats.RuntimeStats{ImageFs: fs, ContainerFs: fs}
		}
	case "pids":
		running, most := pair(words[1:])
		s.Node.Rlimit = &stats.RlimitStats{Time: metav1.NewTime(at), MaxPID: new(int64(*most)), NumOfRunningProcesses: new(int64(*running))}
	case "stall":
		percent, err := strconv.ParseFloat(words[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		psi := &stats.PSIStats{Some: stats.PSIData{Avg10: percent}}
		if len(words) > 3 {
			if psi.Some.Avg60, err = strconv.ParseFloat(words[3], 64); err != nil {
				t.Fatal(err)
			}
		}
		switch words[1] {
		case "memory":
			if s.Node.Memory == nil {
				s.Node.Memory = &stats.MemoryStats{Time: metav1.NewTime(at)}
			}
			s.Node.Memory.PSI = psi
		case "cpu":
			s.Node.CPU = &stats.CPUStats{Time: metav1.NewTime(at), PSI: psi}
		case "io":
			s.Node.IO = &stats.IOStats{Time: metav1.NewTime(at), PSI: psi}
		}
	case "pod":
		pod(t, in, words[1:])
	default:
		return false
	}
	return true
}

// pod adds a pod of one container.
func pod(t *testing.T, in *eviction.Input, words []string) {
	namespace, name, _ := strings.Cut(words[0], "/")
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.UID, p.Annotations = namespace, name, types.UID("uid-"+name), map[string]string{}
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	s := stats.PodStats{PodRef: stats.PodReference{Namespace: namespace, Name: name, UID: string(p.UID)}}
	fs, has := &stats.FsStats{}, true
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "memory":
			s.Memory = &stats.MemoryStats{WorkingSetBytes: number(t, value)}
		case "cpu":
			q := resource.MustParse(value)
			s.CPU = &stats.CPUStats{UsageNanoCores: new(uint64(q.ScaledValue(resource.Nano)))}
		case "disk":
			fs.UsedBytes = number(t, value)
		case "inodes":
			fs.InodesUsed = number(t, value)
		case "processes":
			s.ProcessStats = &stats.ProcessStats{ProcessCount: number(t, value)}
		case "requests":
			for r := range strings.SplitSeq(value, ",") {
				of, amount, _ := strings.Cut(r, ":")
				requests[corev1.ResourceName(of)] = resource.MustParse(amount)
			}
		case "limit":
			limits[corev1.ResourceEphemeralStorage] = resource.MustParse(value)
		case "priority":
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			p.Spec.Priority = new(int32(n))
		case "static":
			p.Annotations["kubernetes.io/config.source"] = "file"
		case "mirror":
			p.Annotations[corev1.MirrorPodAnnotationKey] = "x"
		case "nostats":
			has = false
		case "self":
			in.Self = p.UID
		case "blocked":
			in.Blocked = map[types.UID]eviction.BlockedPod{p.UID: {Reason: "PodDisruptionBudget shop/web does not allow it", Hard: true}}
		default:
			t.Fatalf("what is %q of a pod?", w)
		}
	}
	s.Containers = []stats.ContainerStats{{Name: "app", Memory: s.Memory, Rootfs: fs}}
	s.EphemeralStorage = fs
	p.Spec.Containers = []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}}
	in.Pods = append(in.Pods, p)
	if has {
		s.PodRef.UID = string(p.UID)
		in.Summary.Pods = append(in.Summary.Pods, s)
	}
}

// number parses a quantity in bytes, inodes or processes.
func number(t *testing.T, text string) *uint64 {
	t.Helper()
	q, err := resource.ParseQuantity(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return new(uint64(q.Value()))
}

func length(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
