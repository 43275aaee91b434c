package guard

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/eviction/notify"
)

const (
	gib = 1 << 30
	mib = 1 << 20
)

// node is a node with 8 GiB of memory and a disk of 100 GiB. Its pods have the usage in the field
// usage.
type node struct {
	t               *testing.T
	mu              sync.Mutex // other goroutines read while a pod terminates
	free, freeDisk  uint64
	stall           float64
	pods            []*corev1.Pod
	usage           map[string]uint64 // working set and disk, by name
	change          int64             // of the free memory, at the start and at the end of each read of the node
	readErr         error
	podsErr         error
	layoutErr       error
	reads, layouts  int
	refreshed       func() // called by Refresh; may be nil
	refreshes       int
	budget, lingers string // the pod that a budget protects, and the pod that takes a long time to end
	linger          time.Duration
	answer          error       // the answer to an eviction of the pod app; nil for the usual answer
	live            *corev1.Pod // the current pod app, if it differs from the list; else nil
	client          *fake.Clientset
	notifier        *notify.Notifier
}

func newNode(t *testing.T) *node {
	n := &node{t: t, free: 4 * gib, freeDisk: 50 * gib, usage: map[string]uint64{}, linger: 10 * time.Second, client: fake.NewClientset()}
	n.client.PrependReactor("*", "pods", n.react)
	var err error
	if n.notifier, err = notify.New(notify.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.notifier.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func (n *node) pod(name string, usage uint64) {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "app"}}},
	}
	n.pods = append(n.pods, p)
	n.usage[name] = usage
}

// read returns a new summary.
func (n *node) read(context.Context) (*stats.Summary, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reads++
	n.free += uint64(n.change)
	defer func() { n.free += uint64(n.change) }()
	if n.readErr != nil {
		return nil, n.readErr
	}
	at := metav1.Now()
	used := 8*gib - n.free
	s := &stats.Summary{Node: stats.NodeStats{
		Memory: &stats.MemoryStats{Time: at, AvailableBytes: &n.free, WorkingSetBytes: &used, UsageBytes: &used, PSI: &stats.PSIStats{Some: stats.PSIData{Avg10: n.stall}}},
		Fs:     &stats.FsStats{Time: at, AvailableBytes: new(n.freeDisk), CapacityBytes: new(uint64(100 * gib))},
	}}
	for _, p := range n.pods {
		usage := n.usage[p.Name]
		s.Pods = append(s.Pods, stats.PodStats{
			PodRef:     stats.PodReference{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)},
			Memory:     &stats.MemoryStats{Time: at, WorkingSetBytes: &usage},
			Containers: []stats.ContainerStats{{Name: "app", Memory: &stats.MemoryStats{WorkingSetBytes: &usage}, Rootfs: &stats.FsStats{UsedBytes: &usage}, Logs: &stats.FsStats{UsedBytes: new(uint64(0))}}},
		})
	}
	free := n.free // the summary must not share a figure with the node, which changes
	s.Node.Memory.AvailableBytes = &free
	return s, nil
}

// react is the part of an API server that an Executor needs. An evicted pod is gone at once, unless
// it is the one in lingers.
func (n *node) react(a clienttesting.Action) (bool, runtime.Object, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	find := func(name string) (int, error) {
		for i, p := range n.pods {
			if p.Name == name && (p.DeletionTimestamp == nil || name != n.lingers || time.Since(p.DeletionTimestamp.Time) < n.linger) {
				return i, nil
			}
		}
		return 0, apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	leave := func(name string) (bool, runtime.Object, error) {
		i, err := find(name)
		switch {
		case err != nil:
			return true, nil, err
		case name == "app" && n.answer != nil:
			return true, nil, n.answer
		case name == n.budget:
			err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
			err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget front needs 2 healthy pods and has 1 currently"}}
			return true, nil, err
		case name == n.lingers:
			n.pods[i] = n.pods[i].DeepCopy()
			n.pods[i].DeletionTimestamp, n.pods[i].DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(1))
			return true, nil, nil
		}
		n.free += n.usage[name]
		n.pods = append(n.pods[:i:i], n.pods[i+1:]...)
		return true, nil, nil
	}
	switch a := a.(type) {
	case clienttesting.GetActionImpl:
		i, err := find(a.Name)
		if err != nil {
			return true, nil, err
		}
		if a.Name == "app" && n.live != nil {
			return true, n.live, nil
		}
		return true, n.pods[i], nil
	case clienttesting.PatchActionImpl:
		i, err := find(a.Name)
		return true, n.pods[i], err
	case clienttesting.DeleteActionImpl:
		return leave(a.Name)
	case clienttesting.CreateActionImpl:
		e, ok := a.Object.(*policyv1.Eviction)
		if !ok {
			return true, nil, errors.New("not an eviction")
		}
		return leave(e.Name)
	}
	return true, nil, errors.New("not known here")
}

// guard returns a Guard of the node, with the thresholds of config.
func (n *node) guard(mode execute.Mode, config eviction.ThresholdConfig, change ...func(*Options)) *Guard {
	n.t.Helper()
	thresholds, err := eviction.Parse(&config)
	if err != nil {
		n.t.Fatal(err)
	}
	x, err := execute.New(execute.Options{Mode: mode, Client: n.client, Node: "n1", Self: "uid-weir"})
	if err != nil {
		n.t.Fatal(err)
	}
	opts := Options{
		Node: "n1", Executor: x, Self: "uid-weir",
		Settings: &eviction.Settings{Thresholds: thresholds, TransitionPeriod: 5 * time.Minute, MaxPodGraceSeconds: 60},
		Pods:     func() ([]*corev1.Pod, error) { return n.pods, n.podsErr },
		NodeReader: NodeReader{
			Read: n.read,
			Layout: func(context.Context) (bool, bool, error) {
				n.layouts++
				return false, false, n.layoutErr
			},
			Refresh: func(context.Context) {
				n.refreshes++
				if n.refreshed != nil {
					n.refreshed()
				}
			},
		},
	}
	for _, f := range change {
		f(&opts)
	}
	g, err := New(opts)
	if err != nil {
		n.t.Fatal(err)
	}
	return g
}

// timer runs a round as MaxInterval does.
func (n *node) timer(g *Guard) *Round {
	n.t.Helper()
	g.runRound(n.t.Context(), n.notifier, notify.Notice{At: time.Now(), Sources: []notify.NoticeSource{{}}})
	return g.Last()
}

var (
	hardMemory = eviction.ThresholdConfig{EvictionHard: map[string]string{"memory.available": "1Gi"}}
	softMemory = eviction.ThresholdConfig{EvictionSoft: map[string]string{"memory.available": "1Gi"}, EvictionSoftGracePeriod: map[string]string{"memory.available": "30s"}}
	hardDisk   = eviction.ThresholdConfig{EvictionHard: map[string]string{"nodefs.available": "10%"}}
)
