package custommetrics_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/discovery"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	generated "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/custommetrics"

	"github.com/weir-metrics/weir/api/custommetrics"
	"github.com/weir-metrics/weir/api/externalmetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/test/apitest"
	"github.com/weir-metrics/weir/test/background"
)

// growing returns the options of a server that read one pod, shop/web-0, every 15 s for six minutes. Its
// memory was 1 MiB in the first read and grew by 1 MiB a read, to 24 MiB.
func growing(t *testing.T) custommetrics.Options {
	t.Helper()
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	web := metric.PodRef{Namespace: "shop", Name: "web-0"}
	var facts *cluster.Facts
	facts = facts.With(cluster.FactsChange{
		Synced: true, At: now, Nodes: []*cluster.Node{{Name: "n1", Ready: true}},
		Pods: []*cluster.Pod{{
			PodRef: web, UID: "a", Node: "n1", Phase: cluster.Running, Started: now.Add(-time.Hour),
			Containers: []cluster.Container{{Name: "app", State: cluster.StateRunning}},
		}},
	})
	sink := memory.New(memory.Options{})
	for read := 1; read <= 24; read++ {
		at := now.Add(time.Duration(read-24) * 15 * time.Second)
		b := &metric.Batch{Source: "kubelet:summary", Node: "n1", Interval: 15 * time.Second, Resolution: time.Second, Began: at, Ended: at}
		s := b.Add(metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: web.Namespace, Pod: web.Name})
		s.Values.Set(metric.MemoryWorkingSet, float64(read<<20))
		s.Times[metric.Memory], s.Reasons[metric.Memory] = at.UnixNano(), metric.Measured
		if err := sink.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	return custommetrics.Options{
		View:    func() custommetrics.SampleReader { return sink.Snapshot() },
		Facts:   func() *cluster.Facts { return facts },
		Sources: func() []explain.SourceState { return nil },
		Now:     func() time.Time { return now.Add(time.Second) },
	}
}

// TestOverTimeReloads edits the file of rules over time while the server runs, and reads discovery and
// answers after each change.
func TestOverTimeReloads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(rules ...string) {
		t.Helper()
		content := []byte("metrics:\n- {name: node_peak, for: node, overTime: {metric: memory_working_set_bytes, function: max, window: 5m}}\n" + strings.Join(rules, ""))
		if err := errors.Join(os.WriteFile(file+".new", content, 0o600), os.Rename(file+".new", file)); err != nil {
			t.Fatal(err)
		}
	}
	rule := func(name, function, window string) string {
		return fmt.Sprintf("- {name: web_%s, for: pod, overTime: {metric: memory_working_set_bytes, function: %s, window: %s}}\n", name, function, window)
	}
	write(rule("peak", "max", "5m"))
	rules, err := externalmetrics.New(externalmetrics.Options{File: file, Reread: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	o := growing(t)
	o.Rules = rules
	client, err := discovery.NewDiscoveryClientForConfig(apitest.Serve(t, apiserver.Scheme, generated.GetOpenAPIDefinitions, func(s *genericserver.GenericAPIServer) error {
		return custommetrics.Install(s, custommetrics.New(o))
	}))
	if err != nil {
		t.Fatal(err)
	}
	// The server was registered first, so discovery has changed when this is called.
	changed := make(chan struct{}, 1)
	rules.OnListChange(func() { changed <- struct{}{} })
	<-changed // the call at registration
	background.Run(t, rules.Run)
	check := func(step, listed string, answers map[string]string) {
		t.Helper()
		if got := discovered(t, client); got != listed {
			t.Errorf("%s: discovery has %q, want %q", step, got, listed)
		}
		for name, want := range answers {
			if got := answer(t, client, name); got != want {
				t.Errorf("%s: %s\n got %s\nwant %s", step, name, got, want)
			}
		}
	}
	reload := func(step, listed string, answers map[string]string, rules ...string) {
		t.Helper()
		write(rules...)
		select {
		case <-changed:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: the file was not read within 20s", step)
		}
		check(step, listed, answers)
	}
	const none = "pods have no metric web_%s: no rule defines it; GET /apis/custom.metrics.k8s.io/v1beta2 lists those there are"
	check("at first", "peak", map[string]string{"peak": "24Mi over 300s", "usual": fmt.Sprintf(none, "usual")})
	reload("added", "peak usual", map[string]string{"peak": "24Mi over 300s", "usual": "14848Ki over 300s"},
		rule("peak", "max", "5m"), rule("usual", "mean", "5m"))
	reload("changed", "peak usual", map[string]string{"peak": "21Mi over 60s", "usual": "14848Ki over 300s"},
		rule("peak", "p0", "1m"), rule("usual", "mean", "5m"))
	reload("removed", "usual", map[string]string{"peak": fmt.Sprintf(none, "peak"), "usual": "14848Ki over 300s"},
		rule("usual", "mean", "5m"))
	// A broken rule answers as before, or not at all if it is new. The rule beside it changes.
	reload("broken", "peak usual", map[string]string{
		"peak": "24Mi over 300s", "usual": "14848Ki over 300s",
		"fresh": "the rule of web_fresh has a mistake: " + file + ":4:99: window 20m is out of range: it must be more than 0 and at most 15m",
	}, rule("peak", "max", "5m"), rule("fresh", "max", "20m"), rule("usual", "p150", "5m"))
	reload("mended", "peak fresh usual", map[string]string{"peak": "24Mi over 300s", "fresh": "24Mi over 900s", "usual": "23040Ki over 60s"},
		rule("peak", "max", "5m"), rule("fresh", "max", "15m"), rule("usual", "mean", "1m"))
}

// discovered returns the metrics web_NAME of pods that discovery lists, in its order. The aggregated form
// must list the same ones.
func discovered(t *testing.T, client *discovery.DiscoveryClient) string {
	t.Helper()
	version := v1beta2.SchemeGroupVersion
	_, aggregated, _, err := client.GroupsAndMaybeResources()
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.ServerResourcesForGroupVersion(version.String())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(aggregated[version].APIResources), len(list.APIResources); got != want {
		t.Errorf("aggregated discovery has %d resources, want %d", got, want)
	}
	var names []string
	for _, r := range list.APIResources {
		if name, ok := strings.CutPrefix(r.Name, "pods/web_"); ok {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// answer returns the value and window of the metric web_NAME of shop/web-0, or the message of the error.
func answer(t *testing.T, client *discovery.DiscoveryClient, name string) string {
	t.Helper()
	raw, err := client.RESTClient().Get().AbsPath("/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/web-0/web_" + name).DoRaw(t.Context())
	if apierrors.IsNotFound(err) {
		var status metav1.Status
		if err := json.Unmarshal(raw, &status); err != nil {
			t.Fatalf("%s: got %s, %v, want a Status", name, raw, err)
		}
		return status.Message
	}
	var list v1beta2.MetricValueList
	if err := errors.Join(err, json.Unmarshal(raw, &list)); err != nil || len(list.Items) != 1 || list.Items[0].WindowSeconds == nil {
		t.Fatalf("%s: got %s, %v, want one value with a window", name, raw, err)
	}
	return fmt.Sprintf("%s over %ds", list.Items[0].Value.String(), *list.Items[0].WindowSeconds)
}
