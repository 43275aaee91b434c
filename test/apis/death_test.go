//go:build e2e

package apis

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/metric"
)

// witness starts a weir that keeps Events, and returns its client.
func (w *testCluster) witness(t *testing.T) *explainapi.Client {
	t.Helper()
	binary, err := filepath.Abs(filepath.Join(root, "bin", "weir"))
	if err != nil {
		t.Fatal(err)
	}
	const name, port = "weir-witness", anotherWeirPort + 30
	args := []string{"server", "--kubeconfig=" + w.Kubeconfig(), fmt.Sprintf("--secure-port=%d", port), "--log-format=json", "--events",
		"--metric-resolution=5s", "--source=kubelet:?timeout=3s"}
	if err := w.StartProcess(t.Context(), name, binary, args, fmt.Sprintf("https://%s:%d/livez", w.NodeIP(), port)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.StopProcess(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	return w.explainer(t, w.NodeIP().String(), port)
}

// measuredIn reports whether the pod has CPU.
func measuredIn(e *explain.Explanation) bool { reason, _ := reasonIn(e); return reason == "Measured" }

// TestDeaths forces deaths in a real cluster. weir names each of them within a round after the API
// server knows it, and none of a pod that goes on.
func TestDeaths(t *testing.T) {
	w := sharedCluster
	witness := w.witness(t)
	namespace := w.namespace(t, "deaths")
	named := func(pod, container string) (string, error) {
		r, err := witness.Deaths(t.Context(), death.Query{Namespace: metric.Namespace(namespace), Pod: metric.PodName(pod), Container: container})
		switch {
		case err != nil:
			return "", err
		case len(r.Deaths) == 0:
			return "", errors.New(r.Summary)
		}
		d := r.Deaths[len(r.Deaths)-1] // the first one that happened
		return fmt.Sprintf("%s, %s: %s", d.Cause, d.Confidence, d.Message), nil
	}
	runs := func(name string) {
		t.Helper()
		eventually(t, name+" runs", time.Minute, func() error {
			p, err := w.kube.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err == nil && startOf(p).IsZero() {
				err = errors.New("it does not run")
			}
			return err
		})
	}
	greedy := container("app", "hold", "--bytes=200Mi")
	greedy.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("48Mi")}
	sick := container("app", "serve", "--listen=:8080")
	sick.LivenessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 2, InitialDelaySeconds: 2, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(1)}}}
	w.create(t, namespace, pod("calm", container("app", "pause")))
	w.create(t, namespace, pod("greedy", greedy))
	w.create(t, namespace, pod("failing", container("app", "exit", "--after=2s", "--code=3")))
	// A runtime reports a process that SIGTERM ended with this code.
	w.create(t, namespace, pod("asked", container("app", "exit", "--after=2s", "--code=143")))
	w.create(t, namespace, pod("sick", sick))
	w.create(t, namespace, pod("deleted", container("app", "pause")))
	patient := pod("evicted", container("app", "pause"))
	patient.Spec.TerminationGracePeriodSeconds = new(int64(5))
	w.create(t, namespace, patient)
	for _, name := range []string{"calm", "deleted", "evicted"} {
		runs(name)
	}
	for _, name := range []metric.PodName{"deleted", "evicted"} {
		eventually(t, "weir measures "+string(name), 2*resolution, func() error {
			e, err := witness.Pod(t.Context(), metric.PodRef{Namespace: metric.Namespace(namespace), Name: name})
			if err == nil && !measuredIn(e) {
				err = errors.New(e.Summary)
			}
			return err
		})
	}
	if err := w.kube.CoreV1().Pods(namespace).Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.kube.CoreV1().Pods(namespace).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "evicted"}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ pod, container, want string }{
		{"greedy", "app", "ContainerLimit, "},
		{"failing", "app", "Exited, certain: exited with code 3"},
		{"asked", "app", "Signalled, likely: ended by SIGTERM"},
		{"sick", "app", "LivenessProbe, "},
		{"deleted", "", "Deleted, certain"},
		{"evicted", "", "APIEviction, certain"},
	} {
		var last string
		took := eventually(t, c.pod+" is named "+c.want, 40*time.Second, func() (err error) {
			if last, err = named(c.pod, c.container); err == nil && !strings.HasPrefix(last, c.want) {
				err = errors.New(last)
			}
			return err
		})
		t.Logf("%-8s after %4.1fs: %s", c.pod, took.Seconds(), last)
	}
	for _, name := range []metric.PodName{"deleted", "evicted"} {
		r, err := witness.Deaths(t.Context(), death.Query{Namespace: metric.Namespace(namespace), Pod: name})
		if err != nil || len(r.Deaths) != 1 || r.Deaths[0].Before == nil || len(r.Deaths[0].Before.Memory) < 2 || r.Deaths[0].Before.Memory[0].Name != "app" {
			t.Errorf("pod %s is gone, and weir has %+v, %v; want what its container and the node used before", name, r, err)
		}
	}
	if got, err := named("calm", ""); err == nil {
		t.Errorf("nothing happened to pod calm, and weir says %s", got)
	}
	w.deathsNeedRights(t, namespace)
}

// deathsNeedRights asks as a user who may read one namespace, through the API server.
func (w *testCluster) deathsNeedRights(t *testing.T, namespace string) {
	t.Helper()
	user := w.user(t, "mourner", namespace)
	eventually(t, "the user may read the deaths of the namespace", 30*time.Second, func() error {
		out, err := user.run(t.Context(), "explain", "death", "-n", namespace)
		if err == nil {
			t.Log(out)
		}
		return err
	})
	if out, err := user.run(t.Context(), "explain", "death", "-A"); err == nil {
		t.Errorf("a user of one namespace reads the deaths of all of them (want status %d):\n%s", http.StatusForbidden, out)
	}
}
