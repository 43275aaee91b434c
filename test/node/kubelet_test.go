//go:build e2e

package node

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/api/kubeletapi"
)

// TestAgentBesideKubelet compares /metrics/cadvisor of the agent with that of
// the kubelet: all names, and all numbers of a frozen pod. What differs is
// listed in kubeletapi.CAdvisorDifferences.
func TestAgentBesideKubelet(t *testing.T) {
	w := sharedCluster
	namespace := w.namespace(t, "beside")
	pod := w.create(t, namespace, w.pod("frozen", "", requests(300*mi, mi), "use", "--millicores=50", fmt.Sprintf("--bytes=%d", 40*mi)))["frozen"]
	group := w.PodCgroup(pod.Status.QOSClass, pod.UID)
	if err := group.Freeze(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := group.Thaw(); err != nil {
			t.Error(err)
		}
	})
	config := rest.CopyConfig(w.config)
	config.Host, config.Insecure, config.CAData = fmt.Sprintf("https://%s:10290", w.NodeIP()), true, nil
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	differs := func(name string, kinds ...kubeletapi.DifferenceKind) bool {
		return slices.ContainsFunc(kubeletapi.CAdvisorDifferences, func(d kubeletapi.Difference) bool {
			begin, all := strings.CutSuffix(d.Name, "*")
			return (d.Name == name || all && strings.HasPrefix(name, begin)) && slices.Contains(kinds, d.Kind)
		})
	}
	// The kubelet reads a cgroup every 10 to 15 s.
	eventually(t, "the agent says what the kubelet says", 2*time.Minute, func() error {
		kubelet, _, err := w.Kubectl(t.Context(), "get", "--raw", "/api/v1/nodes/"+w.Node()+"/proxy/metrics/cadvisor")
		if err != nil {
			return err
		}
		theirs, err := parseFamilies(kubelet)
		if err != nil {
			return err
		}
		ours, err := agentFamilies(t.Context(), client, config.Host)
		if err != nil {
			return err
		}
		var found []string
		for _, name := range slices.Sorted(maps.Keys(theirs)) {
			if ours[name] == nil && !differs(name, kubeletapi.NotServed) {
				found = append(found, "the agent lacks "+name)
			}
		}
		same := 0
		for _, name := range slices.Sorted(maps.Keys(ours)) {
			switch {
			case theirs[name] == nil && !differs(name, kubeletapi.Since137):
				found = append(found, "the kubelet lacks "+name)
			case theirs[name] == nil || name == "container_last_seen" || differs(name, kubeletapi.OtherValue, kubeletapi.OtherLabels):
				continue
			}
			a, b := numbersOf(theirs[name], namespace), numbersOf(ours[name], namespace)
			for labels, v := range a {
				got, ok := b[labels]
				// Both cut it to the second, of times that they take from different places.
				sameSecond := name == "container_creation_time_seconds" && math.Abs(got-v) <= 1
				if !ok || got != v && !sameSecond {
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

func agentFamilies(ctx context.Context, client *http.Client, host string) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host+kubeletapi.CAdvisorPath, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", kubeletapi.CAdvisorPath, answer.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(answer.Body)
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
