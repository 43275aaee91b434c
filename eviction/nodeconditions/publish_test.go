package nodeconditions

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/test/cmptest"
)

// machine returns a node with conditions and taints of other components.
func machine() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1"},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoExecute}, {Key: "weir.dev/tried", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory"},
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		}},
	}
}

// decision returns the decision for a node with thresholds for memory and a disk. under are the
// conditions that are true.
func decision(t *testing.T, under ...corev1.NodeConditionType) *eviction.Decision {
	t.Helper()
	list, err := eviction.Parse(&eviction.ThresholdConfig{EvictionHard: map[string]string{"memory.available": "200Mi", "nodefs.available": "12%"}})
	if err != nil {
		t.Fatal(err)
	}
	d := &eviction.Decision{Outcome: eviction.OutcomeNoneInForce}
	for _, threshold := range list {
		d.Thresholds = append(d.Thresholds, eviction.ThresholdState{Threshold: threshold, Observation: &eviction.Observation{}})
	}
	for _, kind := range under {
		d.Conditions = append(d.Conditions, eviction.Condition{Type: kind, Reported: true})
	}
	return d
}

func publisher(t *testing.T, c kubernetes.Interface, change ...func(*Options)) *Publisher {
	t.Helper()
	o := Options{Client: c, Node: "n1", Taint: true}
	for _, f := range change {
		f(&o)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// describeConditions returns a node's conditions, one per line.
func describeConditions(n *corev1.Node) (list []string) {
	for _, c := range n.Status.Conditions {
		list = append(list, strings.TrimSpace(strings.Join([]string{string(c.Type), string(c.Status), c.Reason, c.Message}, " ")))
	}
	slices.Sort(list)
	return list
}

func taints(n *corev1.Node) (list []string) {
	for _, taint := range n.Spec.Taints {
		list = append(list, taint.ToString())
	}
	return list
}

const (
	noDiskPressure   = "weir.dev/DiskPressure False EvictionThresholdNotMet by weir's thresholds: nodefs.available<12%"
	noMemoryPressure = "weir.dev/MemoryPressure False EvictionThresholdNotMet by weir's thresholds: memory.available<200Mi"
	lowMemory        = "weir.dev/MemoryPressure True EvictionThresholdMet by weir's thresholds: memory.available<200Mi"
)

var others = []string{"MemoryPressure False KubeletHasSufficientMemory", "Ready True"}

func TestConditionsAndTaintsComeAndGo(t *testing.T) {
	n, c := serve(t, machine())
	p := publisher(t, c)
	p.Publish(t.Context(), decision(t))
	noPressure := n.now()
	cmptest.Equal(t, "conditions", append(slices.Clone(others), noDiskPressure, noMemoryPressure), describeConditions(noPressure))
	cmptest.Equal(t, "taints", []string{"gpu=yes:NoExecute", "weir.dev/tried:NoSchedule"}, taints(noPressure))

	p.Publish(t.Context(), decision(t, corev1.NodeMemoryPressure))
	low := n.now()
	cmptest.Equal(t, "conditions", append(slices.Clone(others), noDiskPressure, lowMemory), describeConditions(low))
	cmptest.Equal(t, "taints", []string{"gpu=yes:NoExecute", "weir.dev/tried:NoSchedule", "weir.dev/memory-pressure:NoSchedule"}, taints(low))

	writes := n.writes
	p.Publish(t.Context(), decision(t, corev1.NodeMemoryPressure))
	p.Publish(t.Context(), &eviction.Decision{Err: errors.New("no summary"), Outcome: eviction.OutcomeNoSummary})
	if n.writes != writes {
		t.Errorf("%d writes of what was written", n.writes-writes)
	}

	p.Publish(t.Context(), decision(t))
	cmptest.Equal(t, "conditions", describeConditions(noPressure), describeConditions(n.now()))
	cmptest.Equal(t, "taints", taints(noPressure), taints(n.now()))

	p.Publish(t.Context(), decision(t, corev1.NodeMemoryPressure))
	if err := p.Withdraw(t.Context()); err != nil {
		t.Error(err)
	}
	cmptest.Equal(t, "conditions at the end", others, describeConditions(n.now()))
	cmptest.Equal(t, "taints at the end", taints(noPressure), taints(n.now()))
}

func TestATransitionKeepsItsTime(t *testing.T) {
	long := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	m := machine()
	m.Status.Conditions = []corev1.NodeCondition{{Type: "weir.dev/MemoryPressure", Status: corev1.ConditionTrue, LastHeartbeatTime: long, LastTransitionTime: long}}
	n, c := serve(t, m)
	find := func(kind corev1.NodeConditionType) corev1.NodeCondition {
		for _, c := range n.now().Status.Conditions {
			if c.Type == kind {
				return c
			}
		}
		t.Fatalf("no condition %s", kind)
		return corev1.NodeCondition{}
	}
	p := publisher(t, c, func(o *Options) { o.Taint, o.Heartbeat = false, time.Nanosecond })
	for range 2 { // with a heartbeat, and after a restart
		p.Publish(t.Context(), decision(t, corev1.NodeMemoryPressure))
		if got := find("weir.dev/MemoryPressure"); !got.LastTransitionTime.Equal(&long) || !got.LastHeartbeatTime.After(long.Time) {
			t.Errorf("got %+v, want it in place since %v with a new heartbeat", got, long)
		}
	}
	if got := find("weir.dev/DiskPressure"); !got.LastTransitionTime.After(long.Time) {
		t.Errorf("got %+v, want a transition of now", got)
	}
	cmptest.Equal(t, "taints, not asked for", taints(machine()), taints(n.now()))
}

// TestAConflictIsTriedAgain checks that a taint that another client adds in between is not lost.
func TestAConflictIsTriedAgain(t *testing.T) {
	n, c := serve(t, machine())
	n.before = func(to *corev1.Node) error {
		if len(to.Spec.Taints) == 3 { // our taint, on the node as it was read
			n.before = nil
			other := n.node.DeepCopy()
			other.Spec.Taints = append(other.Spec.Taints, corev1.Taint{Key: "drain", Effect: corev1.TaintEffectNoSchedule})
			n.put(other)
		}
		return nil
	}
	publisher(t, c).Publish(t.Context(), decision(t, corev1.NodeMemoryPressure))
	cmptest.Equal(t, "taints", []string{"gpu=yes:NoExecute", "weir.dev/tried:NoSchedule", "drain:NoSchedule", "weir.dev/memory-pressure:NoSchedule"}, taints(n.now()))
}

func TestAFailureIsTriedAgain(t *testing.T) {
	n, c := serve(t, machine())
	n.before = func(*corev1.Node) error {
		return apierrors.NewForbidden(corev1.Resource("nodes"), "n1", errors.New("not yours"))
	}
	var log bytes.Buffer
	p := publisher(t, c, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	p.Publish(t.Context(), decision(t))
	p.Publish(t.Context(), decision(t))
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "patch the conditions of node n1") {
		t.Errorf("logged %q, want the failure once", got)
	}
	n.before = nil
	p.Publish(t.Context(), decision(t))
	cmptest.Equal(t, "conditions", append(slices.Clone(others), noDiskPressure, noMemoryPressure), describeConditions(n.now()))
}

// TestContentionComesAndGoes checks the conditions of KEP-5394, their taints and their Events.
// What was not measured is Unknown, and not False.
func TestConditionsWithoutFigures(t *testing.T) {
	n, c := serve(t, machine())
	p := publisher(t, c, func(o *Options) { o.Contention = true })
	d := decision(t)
	d.Thresholds[1].Observation = nil
	d.Contention = []eviction.Contention{{ContentionThreshold: eviction.ContentionThreshold{Condition: eviction.NodeSystemDiskContention, Percent: 40}, Unknown: true}}
	p.Publish(t.Context(), d)
	cmptest.Equal(t, "conditions", append(slices.Clone(others), "SystemDiskContentionPressure Unknown NotMeasured by weir's threshold of 40% of the time in which tasks stall, for the last minute and the last 10 seconds",
		"weir.dev/DiskPressure Unknown NotMeasured by weir's thresholds: nodefs.available<12%", noMemoryPressure), describeConditions(n.now()))
	cmptest.Equal(t, "taints", taints(machine()), taints(n.now()))
	d.Conditions = append(d.Conditions, eviction.Condition{Type: corev1.NodeDiskPressure, Reported: true}) // in the transition period
	p.Publish(t.Context(), d)
	cmptest.Equal(t, "taints in the transition period", append(taints(machine()), "weir.dev/disk-pressure:NoSchedule"), taints(n.now()))
}

func TestContentionComesAndGoes(t *testing.T) {
	n, c := serve(t, machine())
	events := record.NewFakeRecorder(10)
	p := publisher(t, c, func(o *Options) { o.Contention, o.Recorder = true, events })
	publish := func(avg60, avg10 float64, reported bool) {
		d := decision(t)
		d.Thresholds = nil
		d.Contention = []eviction.Contention{{
			ContentionThreshold: eviction.ContentionThreshold{Condition: eviction.NodeSystemMemoryContention, Percent: 40}, Avg60: avg60, Avg10: avg10, Reported: reported,
		}}
		p.Publish(t.Context(), d)
	}
	const by = " by weir's threshold of 40% of the time in which tasks stall, for the last minute and the last 10 seconds"
	publish(0, 0, false)
	calm := n.now()
	cmptest.Equal(t, "conditions", append(slices.Clone(others), "SystemMemoryContentionPressure False ContentionThresholdNotReached"+by), describeConditions(calm))
	cmptest.Equal(t, "taints", taints(machine()), taints(calm))
	publish(50, 60, true)
	cmptest.Equal(t, "conditions", append(slices.Clone(others), "SystemMemoryContentionPressure True ContentionThresholdReached"+by), describeConditions(n.now()))
	cmptest.Equal(t, "taints", append(taints(machine()), "node.kubernetes.io/memory-contention-pressure:NoSchedule"), taints(n.now()))
	publish(55, 60, true)
	publish(45, 10, true)
	cmptest.Equal(t, "taints while falling", append(taints(machine()), "node.kubernetes.io/memory-contention-pressure:NoSchedule"), taints(n.now()))
	publish(30, 5, false)
	cmptest.Equal(t, "taints", taints(machine()), taints(n.now()))
	var got []string
	for range len(events.Events) {
		got = append(got, <-events.Events)
	}
	cmptest.Equal(t, "events", []string{
		"Warning ContentionThresholdReached SystemMemoryContentionPressure: tasks stalled for 50% of the last minute and 60% of the last 10s; the threshold is 40%",
		"Normal ContentionFalling SystemMemoryContentionPressure: tasks stalled for 45% of the last minute and 10% of the last 10s; the threshold is 40%",
	}, got)

	publish(50, 60, true)
	if err := publisher(t, c).Withdraw(t.Context()); err != nil {
		t.Error(err)
	}
	if len(taints(n.now())) != len(taints(machine()))+1 || len(n.now().Status.Conditions) != len(others)+1 {
		t.Errorf("an agent without thresholds of contention removed what may be the kubelet's: %v", describeConditions(n.now()))
	}
	if err := p.Withdraw(t.Context()); err != nil {
		t.Error(err)
	}
	cmptest.Equal(t, "conditions at the end", others, describeConditions(n.now()))
	cmptest.Equal(t, "taints at the end", taints(machine()), taints(n.now()))
}

func TestTaintKeys(t *testing.T) {
	for kind, want := range map[corev1.NodeConditionType]string{
		corev1.NodeMemoryPressure: "weir.dev/memory-pressure", corev1.NodeDiskPressure: "weir.dev/disk-pressure", corev1.NodePIDPressure: "weir.dev/pid-pressure",
		eviction.NodeCPUPressure: "weir.dev/cpu-pressure", eviction.NodeIOPressure: "weir.dev/io-pressure",
	} {
		cmptest.Equal(t, string(kind), want, taintKey(Prefix+kind))
		if !(&Publisher{}).ownsTaint(&corev1.Taint{Key: want}) {
			t.Errorf("%s is not ours", want)
		}
	}
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	if _, err := New(Options{Node: "n1"}); err == nil || err.Error() != "publish conditions: a client is needed" {
		t.Errorf("got %v", err)
	}
	if _, err := New(Options{Client: fake.NewClientset()}); err == nil || !strings.HasPrefix(err.Error(), "publish conditions: the node's name is needed") {
		t.Errorf("got %v", err)
	}
}
