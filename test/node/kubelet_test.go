//go:build e2e

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/weir-metrics/weir/api/kubeletapi"
	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/test/differences"
)

// TestAgentBesideKubelet compares what the agent serves with what the kubelet
// serves: all names, and all numbers of a frozen pod. What differs is listed in
// package kubeletapi.
func TestAgentBesideKubelet(t *testing.T) {
	w := sharedCluster
	w.agent(t, "observe")
	namespace := w.namespace(t, "beside")
	p := w.pod("frozen", "", requests(300*mi, mi), "use", "--millicores=50", fmt.Sprintf("--bytes=%d", 40*mi))
	second := *p.Spec.Containers[0].DeepCopy()
	second.Name = "second"
	p.Spec.Containers = append(p.Spec.Containers, second)
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "shm", VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: resource.NewQuantity(5*mi, resource.BinarySI)},
	}})
	pod := w.create(t, namespace, p)["frozen"]
	w.freeze(t, pod)
	t.Run("cadvisor", func(t *testing.T) { w.compareCAdvisor(t, namespace) })
	t.Run("summary", func(t *testing.T) { w.compareSummaries(t, namespace) })
	t.Run("memory", func(t *testing.T) { w.comparePodMemory(t, pod) })
}

// compareCAdvisor compares /metrics/cadvisor of the agent with the kubelet's:
// all names, and all numbers of a namespace whose pods are frozen.
func (w *testCluster) compareCAdvisor(t *testing.T, namespace string) {
	differs := func(name string, kinds ...differences.Kind) bool {
		return slices.ContainsFunc(differences.CAdvisor, func(d differences.Difference) bool {
			return d.Is(name) && slices.Contains(kinds, d.Kind)
		})
	}
	// The kubelet reads a cgroup every 10 to 15 s.
	eventually(t, "the agent says what the kubelet says", 2*time.Minute, func() error {
		kubelet, agent, err := w.askBoth(t.Context(), kubeletapi.CAdvisorPath)
		if err != nil {
			return err
		}
		theirs, err := parseFamilies(kubelet)
		if err != nil {
			return err
		}
		ours, err := parseFamilies(agent)
		if err != nil {
			return err
		}
		var found []string
		for _, name := range slices.Sorted(maps.Keys(theirs)) {
			if ours[name] == nil && !differs(name, differences.NotServed) {
				found = append(found, "the agent lacks "+name)
			}
		}
		same := 0
		for _, name := range slices.Sorted(maps.Keys(ours)) {
			switch {
			case theirs[name] == nil && !differs(name, differences.Since137):
				found = append(found, "the kubelet lacks "+name)
			case theirs[name] == nil || name == "container_last_seen" || differs(name, differences.OtherValue, differences.OtherLabels):
				continue
			}
			a, b := numbersOf(theirs[name], namespace), numbersOf(ours[name], namespace)
			for labels, v := range a {
				got, ok := b[labels]
				// Both take it from times of the cgroup's folder, at different moments while the
				// container is made, which takes seconds on a slow node.
				sameStart := name == "container_creation_time_seconds" && math.Abs(got-v) <= 10
				if !ok || got != v && !sameStart {
					found = append(found, fmt.Sprintf("%s%s is %v, the kubelet's is %v", name, labels, got, v))
				} else {
					same++
				}
			}
			for labels := range b {
				if _, ok := a[labels]; !ok {
					found = append(found, fmt.Sprintf("the kubelet has no %s%s", name, labels))
				}
			}
		}
		// The pod has three cgroups: its own, the sandbox's and the container's.
		if len(found) > 0 || same < 3*20 {
			return fmt.Errorf("%d numbers are equal, %d differences:\n%s", same, len(found), strings.Join(found[:min(40, len(found))], "\n"))
		}
		t.Logf("%d numbers of the frozen pod are equal", same)
		return nil
	})
}

func parseFamilies(body string) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(strings.NewReader(body))
}

// askBoth returns the answers of the kubelet and of the agent at a path.
func (w *testCluster) askBoth(ctx context.Context, path string) (kubelet, agent string, err error) {
	if kubelet, _, err = w.Kubectl(ctx, "get", "--raw", "/api/v1/nodes/"+w.Node()+"/proxy"+path); err != nil {
		return "", "", err
	}
	agent, err = w.askAgent(ctx, path)
	return kubelet, agent, err
}

// comparePodMemory compares the memory of a frozen pod wherever it is reported. The
// kubelet and the agent report the kernel's count of the pod's cgroup. The server
// reports the sum of the containers.
func (w *testCluster) comparePodMemory(t *testing.T, p *corev1.Pod) {
	usage := "/apis/weir.dev/v1alpha1/pods"
	eventually(t, "each tells the value that it should", time.Minute, func() error {
		kernel, err := w.workingSet(t, p, "")
		if err != nil {
			return err
		}
		sum := 0.0
		for _, c := range p.Status.ContainerStatuses {
			one, err := w.workingSet(t, p, c.ContainerID)
			if err != nil {
				return err
			}
			sum += one
		}
		if sum >= kernel {
			return fmt.Errorf("the containers have %v, and the pod %v", sum, kernel)
		}
		report, err := w.report(t.Context())
		if err != nil {
			return err
		}
		ranking, err := rankingFor(report, "memory.available")
		if err != nil {
			return err
		}
		told := map[string]float64{}
		for i := range ranking.Pods {
			if r := &ranking.Pods[i]; r.UID == string(p.UID) && r.Usage != nil {
				told["explain eviction"] = *r.Usage
			}
		}
		for _, path := range []string{kubeletapi.ResourcePath, kubeletapi.SummaryPath, usage} {
			var kubelet, agent string
			if path == usage {
				agent, err = w.askAgent(t.Context(), path)
			} else {
				kubelet, agent, err = w.askBoth(t.Context(), path)
			}
			if err != nil {
				return err
			}
			for name, body := range map[string]string{"kubelet's ": kubelet, "agent's ": agent} {
				if body == "" {
					continue
				}
				if told[name+path], err = podWorkingSet(body, p); err != nil {
					return fmt.Errorf("%s%s: %w", name, path, err)
				}
			}
		}
		var wrong []string
		for _, name := range slices.Sorted(maps.Keys(told)) {
			if told[name] != kernel {
				wrong = append(wrong, fmt.Sprintf("%s has %v", name, told[name]))
			}
		}
		if len(told) != 6 || len(wrong) > 0 {
			return fmt.Errorf("the kernel has %v; of %d answers: %s", kernel, len(told), strings.Join(wrong, ", "))
		}
		ofServer, _, err := w.Kubectl(t.Context(), "get", "--raw", usage)
		if err != nil {
			return err
		}
		listed, err := podWorkingSet(ofServer, p)
		if err != nil {
			return err
		}
		// metrics.k8s.io rounds nothing: its quantities are bytes.
		top, _, err := w.Kubectl(t.Context(), "get", "podmetrics", "-n", p.Namespace, p.Name, "-o", "json")
		if err != nil {
			return err
		}
		var m metricsv1beta1.PodMetrics
		if err := json.Unmarshal([]byte(top), &m); err != nil {
			return err
		}
		added := 0.0
		for i := range m.Containers {
			added += float64(m.Containers[i].Usage.Memory().Value())
		}
		if listed != sum || added != sum {
			return fmt.Errorf("the containers' cgroups have %v, the server's pod has %v, and metrics.k8s.io adds up to %v", sum, listed, added)
		}
		t.Logf("%d answers of kubelet and agent have %v bytes, the kernel's; the server's two have %v, the sum of the containers", len(told), kernel, sum)
		return nil
	})
}

// workingSet returns the working set of a pod's cgroup, or of one of its
// containers if id is not empty, by the kernel's files.
func (w *testCluster) workingSet(t *testing.T, p *corev1.Pod, id string) (float64, error) {
	t.Helper()
	dirs := w.cgroups(t, p, id)
	dir, current, inactive := dirs[len(dirs)-1], "memory.usage_in_bytes", "total_inactive_file"
	if w.v2 {
		current, inactive = "memory.current", "inactive_file"
	}
	used, err := w.readFile(t.Context(), dir+"/"+current)
	if err != nil {
		return 0, err
	}
	stat, err := w.readFile(t.Context(), dir+"/memory.stat")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(used), 10, 64)
	return float64(n - fields(stat)[inactive]), err
}

// podWorkingSet returns the working set of a pod in an answer of
// /metrics/resource, of /stats/summary or of weir's own API.
func podWorkingSet(body string, p *corev1.Pod) (float64, error) {
	if !strings.HasPrefix(body, "{") {
		all, err := parseFamilies(body)
		if err != nil {
			return 0, err
		}
		for labels, v := range numbersOf(all["pod_memory_working_set_bytes"], p.Namespace) {
			if strings.Contains(labels, "pod="+p.Name) {
				return v, nil
			}
		}
		return 0, errors.New("it lacks the pod")
	}
	var found struct {
		Items []usage.Item
		Pods  []stats.PodStats
	}
	if err := json.Unmarshal([]byte(body), &found); err != nil {
		return 0, err
	}
	for i := range found.Items {
		if it := &found.Items[i]; string(it.Pod) == p.Name && string(it.Namespace) == p.Namespace && it.Memory != nil {
			return float64(it.Memory.WorkingSetBytes), nil
		}
	}
	for i := range found.Pods {
		if one := &found.Pods[i]; one.PodRef.UID == string(p.UID) && one.Memory != nil && one.Memory.WorkingSetBytes != nil {
			return float64(*one.Memory.WorkingSetBytes), nil
		}
	}
	return 0, errors.New("it lacks the pod, or its memory")
}

// numbersOf returns the values of a family for a namespace, by their labels
// apart from the image, which the agent knows by another name.
func numbersOf(f *dto.MetricFamily, namespace string) map[string]float64 {
	found := map[string]float64{}
	for _, m := range f.GetMetric() {
		var labels []string
		in := false
		for _, l := range m.GetLabel() {
			in = in || l.GetName() == "namespace" && l.GetValue() == namespace
			if l.GetName() != "image" {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
		}
		if in {
			found[fmt.Sprint(labels)] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return found
}
