//go:build e2e

package apis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/test/cluster/harness"
)

const (
	// duplicateApart is the time between two rounds. It does not divide the
	// resolution, so rounds fall at different times between two reads.
	duplicateApart = 10 * time.Second
	// newContainerGrace is how long a new container may be without metrics. A
	// kubelet reads its cgroup every 10 to 15 s, and weir reads the kubelet every
	// 15 s. The first answer may be from the container's first seconds, which give
	// no rate, and the next may repeat it. On a busy machine a kubelet may skip a
	// reading.
	newContainerGrace = 75 * time.Second
	duplicateRounds   = 14
	// The usage of the container under test, and of the other of its name.
	ownCores, otherCores = 30, 80
	ownBytes, otherBytes = 24 * mebi, 56 * mebi
)

// duplicate is a container with a duplicate: another instance of the same name.
type duplicate struct {
	what                      string // as text
	namespace, pod, container string
	truth                     *kernel
	born                      time.Time
	grace                     time.Duration // time after born in which there may be no metrics
	twice                     int           // in how many rounds, at least, the kubelet reports it twice
	earlier                   *kernel       // of the container's earlier run; nil if there was none
	then                      map[int]func() string
}

// TestSurvivingDuplicate keeps another instance of a container's name beside
// the container, in each way that a kubelet allows. In consecutive rounds, it
// compares what weir and metrics-server report with what the kernel counts in
// the container's own cgroup.
func TestSurvivingDuplicate(t *testing.T) {
	t.Parallel()
	w := sharedCluster
	for name, begins := range map[string]func(*testing.T, string) duplicate{
		"forced":  w.forced,
		"stuck":   w.stuck,
		"burning": w.burning,
		"left":    w.leftBehind,
		"classes": w.twoClasses,
		"paths":   w.twoPaths,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w.compare(t, begins(t, w.namespace(t, "duplicate-"+name)))
		})
	}
}

// forced deletes a StatefulSet's pod by force. Its process ignores SIGTERM and
// uses CPU beside the new pod of the same name, until the kubelet finds that
// the pod no longer exists.
func (w *testCluster) forced(t *testing.T, namespace string) duplicate {
	old := w.statefulSet(t, namespace, "--deaf")
	w.deleteByForce(t, old)
	d := w.successor(t, old)
	d.what, d.twice = "an old pod deleted by force, that ignores SIGTERM", 0 // for a few seconds only
	return d
}

// stuck freezes a StatefulSet's pod, like processes that wait for a disk, and
// deletes it by force. It exists beside the new pod, without any usage, until
// it is thawed.
func (w *testCluster) stuck(t *testing.T, namespace string) duplicate {
	old := w.statefulSet(t, namespace)
	g := w.freeze(t, old)
	w.deleteByForce(t, old)
	d := w.successor(t, old)
	d.what = "an old pod deleted by force, whose process hangs"
	d.then = map[int]func() string{duplicateRounds - 3: func() string {
		if err := g.Thaw(); err != nil {
			t.Error(err)
		}
		return "the old pod is thawed, and ends"
	}}
	return d
}

// burning is like stuck, with a stray process that uses CPU in the old
// container's cgroup.
func (w *testCluster) burning(t *testing.T, namespace string) duplicate {
	old := w.statefulSet(t, namespace)
	g := w.freeze(t, old)
	w.stray(t, "stray-burning", g.Container(old.Status.ContainerStatuses[0].ContainerID))
	w.deleteByForce(t, old)
	d := w.successor(t, old)
	d.what = "an old pod deleted by force, in whose cgroup a stray process burns"
	return d
}

// freeze freezes a pod until the end of the test.
func (w *testCluster) freeze(t *testing.T, p *corev1.Pod) harness.PodCgroup {
	t.Helper()
	g := w.PodCgroup(p.Status.QOSClass, p.UID)
	t.Cleanup(func() { w.killAll(t, g) })
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	return g
}

// leftBehind kills a container's process while a stray process is in its
// cgroup. The container restarts with another ID, and the old cgroup remains.
func (w *testCluster) leftBehind(t *testing.T, namespace string) duplicate {
	w.create(t, namespace, pod("web", container("app", own()...)))
	p := w.runs(t, namespace, "web")
	id := p.Status.ContainerStatuses[0].ContainerID
	g := w.PodCgroup(p.Status.QOSClass, p.UID).Container(id)
	earlier := count(t, g, startOf(p))
	serves(t, "weir", w.weir, namespace, "web/app")
	serves(t, "metrics-server", w.peer, namespace, "web/app")
	itself, err := g.Processes()
	if err != nil {
		t.Fatal(err)
	}
	w.stray(t, "stray-left", g)
	for _, pid := range itself {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the container runs again", time.Minute, func() error {
		p = w.runs(t, namespace, "web")
		if p.Status.ContainerStatuses[0].ContainerID == id {
			return errors.New("it is the first run")
		}
		return nil
	})
	if _, err := g.Use(); err != nil {
		t.Errorf("the old container's cgroup went with it: %v", err)
	}
	d := w.duplicateOf(t, p)
	d.what, d.earlier = "a container that restarted, in whose old cgroup a stray process burns", earlier
	return d
}

// twoClasses creates a second cgroup of a pod in another QoS class, as after a
// change of the pod's class. It is empty at first, and later has a process in a
// container's cgroup.
func (w *testCluster) twoClasses(t *testing.T, namespace string) duplicate {
	w.create(t, namespace, pod("web", container("app", own()...)))
	p := w.runs(t, namespace, "web")
	d := w.duplicateOf(t, p)
	serves(t, "weir", w.weir, namespace, "web/app")
	d.what, d.grace = "a pod with a second cgroup under another QoS class", 0
	other := w.PodCgroup(corev1.PodQOSBestEffort, p.UID)
	t.Cleanup(func() {
		w.killAll(t, other)
		if err := other.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	d.then = map[int]func() string{
		0: func() string {
			if err := other.Make(true); err != nil {
				t.Error(err)
			}
			return "an empty cgroup " + other.String()
		},
		8: func() string {
			child := other.Container(strings.Repeat("0123456789abcdef", 4))
			if err := child.Make(false); err != nil {
				t.Error(err)
			}
			w.stray(t, "stray-classes", child)
			return fmt.Sprintf("a process burns %dm in a container's cgroup below it", otherCores)
		},
	}
	return d
}

// twoPaths creates a second cgroup of a running container in another QoS class,
// with the same container ID. Heapster failed with these two paths.
func (w *testCluster) twoPaths(t *testing.T, namespace string) duplicate {
	w.create(t, namespace, pod("web", container("app", own()...)))
	p := w.runs(t, namespace, "web")
	d := w.duplicateOf(t, p)
	serves(t, "weir", w.weir, namespace, "web/app")
	d.what, d.grace = "a container with a second cgroup of its ID under another QoS class", 0
	other := w.PodCgroup(corev1.PodQOSBestEffort, p.UID)
	t.Cleanup(func() {
		if err := other.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	d.then = map[int]func() string{2: func() string {
		path := other.Container(p.Status.ContainerStatuses[0].ContainerID)
		if err := errors.Join(other.Make(true), path.Make(false)); err != nil {
			t.Error(err)
		}
		return "an empty cgroup " + path.String()
	}}
	return d
}

// own returns the arguments of the container under test.
func own() []string { return consumes(ownCores, ownBytes) }

func consumes(millicores, bytes int) []string {
	return []string{"use", fmt.Sprintf("--millicores=%d", millicores), fmt.Sprintf("--bytes=%d", bytes)}
}

// statefulSet creates a StatefulSet of one pod that uses much, and waits until
// both servers serve it. The next pod of the name will use little.
func (w *testCluster) statefulSet(t *testing.T, namespace string, more ...string) (old *corev1.Pod) {
	one, grace := int32(1), int64(600)
	p := pod("db", container("app", append(consumes(otherCores, otherBytes), more...)...))
	p.Spec.TerminationGracePeriodSeconds = &grace
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &one, ServiceName: "db",
			Selector:       &metav1.LabelSelector{MatchLabels: p.Labels},
			Template:       corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels}, Spec: p.Spec},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
		},
	}
	s, err := w.kube.AppsV1().StatefulSets(namespace).Create(t.Context(), s, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	old = w.runs(t, namespace, "db-0")
	eventually(t, "the template is changed", 10*time.Second, func() error {
		if s, err = w.kube.AppsV1().StatefulSets(namespace).Get(t.Context(), "db", metav1.GetOptions{}); err != nil {
			return err
		}
		s.Spec.Template.Spec.Containers[0].Args = own()
		_, err = w.kube.AppsV1().StatefulSets(namespace).Update(t.Context(), s, metav1.UpdateOptions{})
		return err
	})
	serves(t, "weir", w.weir, namespace, "db-0/app")
	serves(t, "metrics-server", w.peer, namespace, "db-0/app")
	return old
}

// deleteByForce deletes a pod from the API server without waiting for its end.
func (w *testCluster) deleteByForce(t *testing.T, p *corev1.Pod) {
	t.Helper()
	w.kubectl(t, "delete", "pod", p.Name, "-n", p.Namespace, "--force", "--grace-period=0")
}

// successor waits until another pod of the same name runs.
func (w *testCluster) successor(t *testing.T, old *corev1.Pod) duplicate {
	var p *corev1.Pod
	eventually(t, "another "+old.Name+" runs", time.Minute, func() error {
		p = w.runs(t, old.Namespace, old.Name)
		if p.UID == old.UID {
			return errors.New("it is the old one")
		}
		return nil
	})
	d := w.duplicateOf(t, p)
	d.twice = duplicateRounds / 3
	return d
}

// runs waits until a pod's only container runs.
func (w *testCluster) runs(t *testing.T, namespace, name string) (p *corev1.Pod) {
	t.Helper()
	eventually(t, name+" runs", 2*time.Minute, func() (err error) {
		if p, err = w.kube.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{}); err == nil && startOf(p).IsZero() {
			err = fmt.Errorf("it is %s", p.Status.Phase)
		}
		return err
	})
	return p
}

// duplicateOf starts to read the kernel's counters of a pod's only container.
func (w *testCluster) duplicateOf(t *testing.T, p *corev1.Pod) duplicate {
	t.Helper()
	status := p.Status.ContainerStatuses[0]
	g := w.PodCgroup(p.Status.QOSClass, p.UID).Container(status.ContainerID)
	return duplicate{
		namespace: p.Namespace, pod: p.Name, container: status.Name,
		truth: count(t, g, startOf(p)), born: startOf(p), grace: newContainerGrace,
	}
}

// stray starts a process that uses CPU in a cgroup that is not its own, until
// the end of the test.
func (w *testCluster) stray(t *testing.T, name string, g harness.PodCgroup) {
	t.Helper()
	if err := w.StartIn(t.Context(), g, name, consumes(otherCores, otherBytes)...); err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(func() {
		if err := w.StopProcess(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
}

func (w *testCluster) killAll(t *testing.T, g harness.PodCgroup) {
	if err := g.Kill(context.Background()); err != nil {
		t.Error(err)
	}
}
