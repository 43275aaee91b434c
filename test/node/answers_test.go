//go:build e2e

package node

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"
)

// TestAgentScraped runs a weir that reads the agent instead of the kubelet, and
// compares its numbers with the kernel's count.
func TestAgentScraped(t *testing.T) {
	const (
		port       = 18443
		millicores = 150
		allocated  = 120 * mi
	)
	w := sharedCluster
	if w.v2 {
		t.Skip("TestFrozen compares with the kernel's count in a virtual machine")
	}
	namespace := w.namespace(t, "scraped")
	pod := w.create(t, namespace, w.pod("steady", "", requests(300*mi, mi),
		"use", fmt.Sprintf("--millicores=%d", millicores), fmt.Sprintf("--bytes=%d", allocated)))["steady"]
	group := w.PodCgroup(pod.Status.QOSClass, pod.UID).Container(pod.Status.ContainerStatuses[0].ContainerID)

	binary, err := filepath.Abs(filepath.Join(root, "bin", "weir"))
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("https://%s:%d", w.NodeIP(), port)
	args := []string{
		"server", "--kubeconfig=" + w.Kubeconfig(), fmt.Sprintf("--secure-port=%d", port), "--log-format=json",
		"--metric-resolution=5s", "--source=kubelet:?port=10290&insecure-tls=true",
	}
	if err := w.StartProcess(t.Context(), "weir-of-agents", binary, args, address+"/livez"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.StopProcess(context.Background(), "weir-of-agents"); err != nil {
			t.Error(err)
		}
	})
	direct := rest.CopyConfig(w.config)
	direct.Host, direct.Insecure, direct.CAData, direct.CAFile = address, true, nil, ""
	client, err := metricsclient.NewForConfig(direct)
	if err != nil {
		t.Fatal(err)
	}

	// The window of an answer ends before the answer. So each answer is compared
	// with the kernel's count from the first answer on.
	began := time.Now()
	before, err := group.Use()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is served as the kernel counts it", time.Minute, func() error {
		m, err := client.MetricsV1beta1().PodMetricses(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if m.Timestamp.Add(-m.Window.Duration).Before(began) {
			return fmt.Errorf("its window of %v ends at %v, and begins before the counting", m.Window.Duration, m.Timestamp)
		}
		now, err := group.Use()
		if err != nil {
			return err
		}
		cpu := 1000 * float64(now.CPU-before.CPU) / float64(time.Since(began))
		got := m.Containers[0].Usage
		t.Logf("CPU %v m, by the kernel %.1f m; memory %v Ki, by the kernel %d Ki", got.Cpu().MilliValue(), cpu, got.Memory().Value()>>10, now.WorkingSet>>10)
		if off := math.Abs(float64(got.Cpu().MilliValue())-cpu) / cpu; off > 0.15 {
			return fmt.Errorf("CPU is %v, want %.1fm", got.Cpu(), cpu)
		}
		if off := math.Abs(float64(got.Memory().Value()-now.WorkingSet)) / float64(now.WorkingSet); off > 0.02 {
			return fmt.Errorf("memory is %v, want %d", got.Memory(), now.WorkingSet)
		}
		return nil
	})
	if out := w.kubectl(t, "top", "pod", "-n", namespace, "--no-headers"); !strings.HasPrefix(out, "steady") {
		t.Errorf("kubectl top says of the same pod %q", out)
	}
}

// TestAgentMetrics checks with Prometheus' promtool what the agent serves
// instead of the kubelet.
func TestAgentMetrics(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool: apt-get install prometheus")
	}
	w := sharedCluster
	config := rest.CopyConfig(w.config)
	config.Host, config.Insecure, config.CAData = fmt.Sprintf("https://%s:10290", w.KubeletIP()), true, nil
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/metrics", "/metrics/resource", "/metrics/cadvisor"} {
		answer, err := client.Get(config.Host + path)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), promtool, "check", "metrics")
		cmd.Stdin = answer.Body
		out, err := cmd.CombinedOutput()
		answer.Body.Close()
		// With status 3, promtool could parse the metrics, but does not like some
		// names. They are the kubelet's.
		if exit := cmd.ProcessState.ExitCode(); exit != 0 && exit != 3 || answer.StatusCode != 200 {
			t.Errorf("%s (%s): promtool: %v\n%s", path, answer.Status, err, out)
		} else {
			t.Logf("%s: promtool ends with %d\n%s", path, exit, out)
		}
	}
}
