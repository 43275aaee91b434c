//go:build e2e

package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/explain/slow"
)

// TestSlow forces waits for CPU on a node with cgroup version 2: by a pod's own limit, and by a neighbour. weir
// names the cause, and no neighbour where the limit is the cause.
func TestSlow(t *testing.T) {
	w := sharedCluster
	if !w.v2 {
		t.Skip("the kernel has no stalls of pods on cgroup version 1: -node=v2")
	}
	if err := w.install(t.Context(), "slow"); err != nil {
		t.Fatal(err)
	}
	namespace := w.namespace(t, "slow")
	explained := func(pod string) (*slow.Slow, error) {
		out, err := w.weir(t.Context(), "explain", "slow", "-n", namespace, pod, "--window=1m", "-o", "json")
		if err != nil {
			return nil, err
		}
		var r slow.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			return nil, err
		}
		if len(r.Pods) != 1 {
			return nil, errors.New(r.Summary)
		}
		return &r.Pods[0], nil
	}
	await := func(pod string, want slow.Cause, phrase string) {
		t.Helper()
		var last *slow.Slow
		began := time.Now()
		eventually(t, fmt.Sprintf("%s waits by %s", pod, want), 4*time.Minute, func() (err error) {
			if last, err = explained(pod); err != nil {
				return err
			}
			if last.MeasuredSeconds < 25 || last.Resource != slow.CPU || last.Cause != want || !strings.Contains(last.Summary, phrase) {
				return fmt.Errorf("%.0fs are measured: %s", last.MeasuredSeconds, last.Summary)
			}
			return nil
		})
		t.Logf("%s after %.0fs: %s\n  %s", pod, time.Since(began).Seconds(), last.Summary, strings.Join(last.Evidence, "\n  "))
		if named := len(last.Stalls[0].Neighbours); (want == slow.Neighbours) != (named > 0) {
			t.Errorf("%s: %d neighbours are named: %+v", pod, named, last.Stalls[0])
		}
	}
	limited := w.pod("limited", "", requests(mi, mi), "burn", "--millicores=900")
	limited.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}
	w.create(t, namespace, limited)
	await("limited", slow.OwnLimit, "held back by its own CPU limit of 200m")
	t.Log(w.kubectlWeir(t, "explain", "slow", "-n", namespace, "limited"))

	// Both have the same weight, and the node still answers.
	if err := w.kube.CoreV1().Pods(namespace).Delete(t.Context(), "limited", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.create(t, namespace, w.pod("starved", "", requests(mi, mi), "burn", "--millicores=300"), w.pod("hog", "", requests(mi, mi), "burn", "--millicores=1500"))
	await("starved", slow.Neighbours, "because of "+namespace+"/hog")
	t.Log(w.kubectlWeir(t, "explain", "slow", "-n", namespace, "starved"))
	t.Log(w.kubectlWeir(t, "explain", "slow", "-A"))
}
