package custommetrics

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	api "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	"k8s.io/metrics/pkg/client/custom_metrics"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/test/cmptest"
)

func mustParse(t *testing.T, selector string) labels.Selector {
	t.Helper()
	s, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// line formats a value: "Pod shop/web-0 250m at 0s over 30s".
func line(v *api.MetricValue) string {
	window := "-"
	if v.WindowSeconds != nil {
		window = fmt.Sprintf("%ds", *v.WindowSeconds)
	}
	name := v.DescribedObject.Name
	if v.DescribedObject.Namespace != "" {
		name = v.DescribedObject.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s %s at %v over %s", v.DescribedObject.Kind, name, v.Value.String(), v.Timestamp.Sub(noon), window)
}

// get requests the metric of one object as an autoscaler does.
func get(t *testing.T, c custom_metrics.CustomMetricsClient, object, name, selector string) string {
	t.Helper()
	kind, of, _ := strings.Cut(object, " ")
	m := c.RootScopedMetrics()
	if namespace, inside, ok := strings.Cut(of, "/"); ok {
		m, of = c.NamespacedMetrics(namespace), inside
	}
	v, err := m.GetForObject(schema.GroupKind{Kind: kind}, of, name, mustParse(t, selector))
	if err != nil {
		return err.Error()
	}
	if v.Metric.Name != name || v.DescribedObject.APIVersion != "v1" {
		t.Errorf("%s of %s is called %q, of an object of %q", name, object, v.Metric.Name, v.DescribedObject.APIVersion)
	}
	return line(v)
}

// question asks for a metric of one object; want is the answer as get writes it.
type question struct{ object, metric, selector, want string }

// ask compares the answers with the wanted ones.
func ask(t *testing.T, c custom_metrics.CustomMetricsClient, all []question) {
	t.Helper()
	for _, q := range all {
		if got := get(t, c, q.object, q.metric, q.selector); got != q.want {
			t.Errorf("%s{%s} of %s\n got %s\nwant %s", q.metric, q.selector, q.object, got, q.want)
		}
	}
}

func list(t *testing.T, m custom_metrics.MetricsInterface, kind, selector, name, metricSelector string) string {
	t.Helper()
	l, err := m.GetForObjects(schema.ParseGroupKind(kind), mustParse(t, selector), name, mustParse(t, metricSelector))
	if err != nil {
		return err.Error()
	}
	var out []string
	for i := range l.Items {
		out = append(out, line(&l.Items[i]))
	}
	return strings.Join(out, "\n")
}

func TestOneObject(t *testing.T) {
	c, _ := client(t, serve(t, village(t)))
	ask(t, c, []question{
		{"Pod shop/web-0", "cpu_usage_cores", "", "Pod shop/web-0 250m at 0s over 30s"},
		{"Pod shop/web-1", "network_receive_bytes_per_second", "", "Pod shop/web-1 2000500m at -1s over 30s"},
		{"Pod shop/web-0", "network_receive_bytes_total", "", "Pod shop/web-0 1M at 0s over 0s"},
		{"Pod shop/web-0", "memory_working_set_bytes", "", "Pod shop/web-0 100Mi at 0s over 0s"},
		{"Pod shop/web-0", "memory_pressure_some_ratio", "", "Pod shop/web-0 250m at 0s over 30s"},
		// The node did not report the window of this rate.
		{"Pod shop/api", "network_receive_bytes_per_second", "", "Pod shop/api 1 at 0s over -"},
		{"Node n1", "cpu_usage_cores", "", "Node n1 1234567891n at -2s over 15s"},
		{"Node n1", "memory_working_set_bytes", "", "Node n1 3Gi at -2s over 0s"},
		{"Node n1", "cpu_node_utilization_ratio", "", "Node n1 123457u at -2s over 0s"},
		{"Node n1", "memory_page_faults_per_second", "", "Node n1 0 at -2s over 15s"},
		{"Node n1", "uptime_seconds", "", "Node n1 90500m at -2s over 0s"},
		{"Namespace shop", "network_receive_bytes_per_second", "", "Namespace shop 3001750m at -1s over 30s"},
		{"Namespace shop", "memory_request_bytes", "", "Namespace shop 128Mi at -1s over 0s"},
	})
}

func TestMetricSelectors(t *testing.T) {
	c, _ := client(t, serve(t, village(t)))
	ask(t, c, []question{
		{"Pod shop/web-0", "cpu_usage_cores", "container=app", "Pod shop/web-0 200m at 0s over 20s"},
		{"Pod shop/web-0", "cpu_usage_cores", "container!=app", "Pod shop/web-0 50m at 0s over 20s"},
		{"Pod shop/web-0", "cpu_usage_cores", "container", "Pod shop/web-0 250m at 0s over 20s"},
		{"Pod shop/web-0", "cpu_usage_cores", "!container", "Pod shop/web-0 250m at 0s over 30s"},
		{"Pod shop/web-0", "memory_pressure_some_ratio", "container", "Pod shop/web-0 300m at 0s over 20s"}, // the mean
		{"Pod shop/web-1", "network_receive_bytes_per_second", "interface=net1", "Pod shop/web-1 200500m at -3s over 31s"},
		{"Pod shop/web-1", "network_receive_bytes_per_second", "interface in (eth0,net1)", "Pod shop/web-1 2000500m at -3s over 31s"},
		{"Pod shop/web-1", "network_receive_bytes_per_second", "interface notin (net1)", "Pod shop/web-1 1800 at -1s over 30s"},
		{"Pod shop/web-0", "disk_read_bytes_per_second", "container=app,device=dev-vda1", "Pod shop/web-0 10 at 0s over 20s"},
		// Only containers have this metric.
		{"Pod shop/web-0", "accelerator_duty_cycle_ratio", "container=app,accelerator", "Pod shop/web-0 375m at 0s over 0s"},
		{"Node n1", "filesystem_usage_bytes", "device=dev-vda1", "Node n1 1Gi at -2s over 0s"},
		{"Node n1", "filesystem_usage_bytes", "device in (dev-vda1,dev-vdb,dev-sda)", "Node n1 1025Mi at -2s over 0s"},
		{"Node n1", "filesystem_usage_bytes", "device!=dev-vda1", "Node n1 1Mi at -2s over 0s"},
		{"Node n1", "filesystem_usage_bytes", "device", "Node n1 1025Mi at -2s over 0s"},

		{"Node n1", "filesystem_usage_bytes", "", "node/n1 has filesystem_usage_bytes of parts only: choose by a metric selector, of device=dev-vda1, device=dev-vdb"},
		{"Node n1", "filesystem_usage_bytes", "device=dev-sda", "node/n1 has no part with filesystem_usage_bytes that the metric selector device=dev-sda chooses"},
		{"Pod shop/web-0", "network_receive_bytes_per_second", "container=app", "network_receive_bytes_per_second has no label container: a metric selector can choose by interface"},
		{"Pod shop/web-0", "network_receive_bytes_per_second", "interface>3", "the metric selector compares interface by \"gt\": choose by =, !=, in, notin or existence"},
		{"Node n1", "cpu_usage_cores", "mode=user", "cpu_usage_cores has no label mode: leave the metric selector out"},
		{"Namespace shop", "network_receive_bytes_per_second", "interface=eth0", "network_receive_bytes_per_second has no label interface: leave the metric selector out"},
	})
}

func TestAbsenceHasAReason(t *testing.T) {
	c, _ := client(t, serve(t, village(t)))
	for _, test := range []struct{ object, metric, want string }{
		{"Pod shop/web-lost", "network_receive_bytes_per_second", "shop/web-lost has no network_receive_bytes_per_second: the node did not answer in time (NodeTimeout)"},
		{"Pod shop/web-young", "cpu_usage_cores", "shop/web-young has no cpu_usage_cores: the pod has not started; it is bound to no node (PodPending)"},
		{"Pod shop/web-done", "cpu_usage_cores", "shop/web-done has no cpu_usage_cores: the pod has finished (PodFinished)"},
		{"Pod shop/api", "cpu_usage_cores", "shop/api has no cpu_usage_cores: container proxy has no number: it was first seen too recently, and a rate needs two readings (FirstSample)"},
		{"Pod shop/api", "memory_rss_bytes", "shop/api has no memory_rss_bytes: the node answered without it (NotReported)"},
		{"Pod shop/web-0", "memory_limit_bytes", "shop/web-0 has no memory_limit_bytes: none is set (NotApplicable)"},
		{"Pod shop/web-0", "memory_rss_bytes", "shop/web-0 has no memory_rss_bytes: this source or kernel cannot supply it (Unsupported)"},
		{"Pod kube-system/agent", "network_receive_bytes_per_second", "kube-system/agent has no network_receive_bytes_per_second: the pod uses its node's network (NotApplicable)"},
		{"Pod shop/nobody", "cpu_usage_cores", "there is no pod shop/nobody"},
		{"Node n2", "cpu_usage_cores", "node/n2 has no cpu_usage_cores: the node did not answer in time (NodeTimeout)"},
		{"Node n3", "cpu_usage_cores", "there is no node n3"},
		{"Node shop/n1", "cpu_usage_cores", "nodes are in no namespace, so an autoscaler in one cannot refer to them: ask for nodes/NAME/cpu_usage_cores"},
		{"Namespace empty", "cpu_usage_cores", "no pod of namespace empty has cpu_usage_cores"},
		{"Pod shop/web-0", "queue_depth", "pods have no metric queue_depth: GET /apis/custom.metrics.k8s.io/v1beta2 lists those there are"},
		{"Pod shop/web-0", "cpu_capacity_cores", "pods have no metric cpu_capacity_cores: GET /apis/custom.metrics.k8s.io/v1beta2 lists those there are"},
	} {
		if got := get(t, c, test.object, test.metric, ""); got != test.want {
			t.Errorf("%s of %s\n got %s\nwant %s", test.metric, test.object, got, test.want)
		}
	}
	_, err := c.NamespacedMetrics("shop").GetForObject(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", "cpu_usage_cores", labels.Everything())
	if want := "weir has metrics of pods, nodes and namespaces, not of deployments.apps"; err == nil || err.Error() != want {
		t.Errorf("a deployment's metric: got error %v, want %q", err, want)
	}
}

func TestObjectsByLabel(t *testing.T) {
	c, warned := client(t, serve(t, village(t)))
	shop := c.NamespacedMetrics("shop")
	for _, test := range []struct {
		m                                      custom_metrics.MetricsInterface
		kind, selector, metric, metricSelector string
		want                                   string
		warnings                               []string
	}{
		{shop, "Pod", "app=web", "network_receive_bytes_per_second", "",
			"Pod shop/web-0 1000250m at 0s over 30s\nPod shop/web-1 2000500m at -1s over 30s",
			[]string{"2 of 4 pods have no network_receive_bytes_per_second: 1 PodPending, 1 NodeTimeout", "shop/web-lost: the node did not answer in time (NodeTimeout)"}},
		{shop, "Pod", "app=web", "network_receive_bytes_per_second", "interface=eth0",
			"Pod shop/web-0 900 at -1s over 30s\nPod shop/web-1 1800 at -1s over 30s",
			[]string{"2 of 4 pods have no network_receive_bytes_per_second: 1 PodPending, 1 NodeTimeout", "shop/web-lost: the node did not answer in time (NodeTimeout)"}},
		{shop, "Pod", "app=api", "network_receive_bytes_per_second", "", "Pod shop/api 1 at 0s over -", nil},
		{shop, "Pod", "app=api", "cpu_usage_cores", "", "shop/api has no cpu_usage_cores: container proxy has no number: it was first seen too recently, and a rate needs two readings (FirstSample)", nil},
		{shop, "Pod", "app", "memory_rss_bytes", "", "none of 5 pods has memory_rss_bytes: 2 Unsupported, 1 PodPending, 1 NodeTimeout, 1 NotReported; shop/api: the node answered without it (NotReported)", nil},
		{shop, "Pod", "app=nothing", "cpu_usage_cores", "", "no pods in namespace shop have labels that match app=nothing", nil},
		{c.NamespacedMetrics("empty"), "Pod", "", "cpu_usage_cores", "", "there are no pods in namespace empty", nil},
		{c.RootScopedMetrics(), "Pod", "app in (agent,web)", "cpu_usage_cores", "",
			"Pod kube-system/agent 1m at 0s over 15s\nPod shop/web-0 250m at 0s over 30s\nPod shop/web-1 500m at -1s over 30s",
			[]string{"2 of 5 pods have no cpu_usage_cores: 1 PodPending, 1 NodeTimeout", "shop/web-lost: the node did not answer in time (NodeTimeout)"}},
		{c.RootScopedMetrics(), "Node", "zone=a", "cpu_usage_cores", "", "Node n1 1234567891n at -2s over 15s", nil},
		{c.RootScopedMetrics(), "Node", "", "cpu_usage_cores", "", "Node n1 1234567891n at -2s over 15s",
			[]string{"1 of 2 nodes have no cpu_usage_cores: 1 NodeTimeout", "node/n2: the node did not answer in time (NodeTimeout)"}},
	} {
		got := list(t, test.m, test.kind, test.selector, test.metric, test.metricSelector)
		if got != test.want {
			t.Errorf("%s{%s} of %ss %q\n got %s\nwant %s", test.metric, test.metricSelector, test.kind, test.selector, got, test.want)
		}
		cmptest.Equal(t, fmt.Sprintf("%s of %ss %q: warnings", test.metric, test.kind, test.selector), test.warnings, warned.Take())
	}
}

func TestASumSaysWhatItLacks(t *testing.T) {
	c, warned := client(t, serve(t, village(t)))
	if got, want := get(t, c, "Namespace shop", "cpu_usage_cores", ""), "Namespace shop 750m at -1s over 30s"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	want := []string{"the sum lacks 2 of 4 pods: 1 NodeTimeout, 1 FirstSample", "shop/api: container proxy has no number: it was first seen too recently, and a rate needs two readings (FirstSample)"}
	cmptest.Equal(t, "warnings", want, warned.Take())
	// A pod on the network of its node is no gap in a sum of traffic.
	if got, want := get(t, c, "Namespace kube-system", "cpu_usage_cores", ""), "Namespace kube-system 1m at 0s over 15s"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := warned.Take(); got != nil {
		t.Errorf("warned %q of a sum that lacks nothing", got)
	}
}

// raw returns the body of a GET.
func raw(t *testing.T, config *rest.Config, path string) string {
	t.Helper()
	resp, err := (&http.Client{Transport: config.Transport}).Get(config.Host + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(body))
}

func TestWhatGoesOverTheWire(t *testing.T) {
	config := serve(t, village(t))
	item := `"describedObject":{"kind":"Pod","namespace":"shop","name":"web-0","apiVersion":"v1"},`
	for path, want := range map[string]string{
		"/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/web-0/cpu_usage_cores?metricLabelSelector=container%3Dapp": `{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta2","metadata":{},"items":[{` + item +
			`"metric":{"name":"cpu_usage_cores","selector":{"matchLabels":{"container":"app"}}},"timestamp":"2026-01-02T12:00:00Z","windowSeconds":20,"value":"200m"}]}`,
		"/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/pods/web-0/cpu_usage_cores": `{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta1","metadata":{},"items":[{` + item +
			`"metricName":"cpu_usage_cores","timestamp":"2026-01-02T12:00:00Z","window":30,"value":"250m","selector":null}]}`,
	} {
		if got := raw(t, config, path); got != want {
			t.Errorf("GET %s\n got %s\nwant %s", path, got, want)
		}
	}
	for _, path := range []string{"/openapi/v2", "/openapi/v3/apis/custom.metrics.k8s.io/v1beta2"} {
		if got := raw(t, config, path); !strings.Contains(got, "MetricValueList") {
			t.Errorf("GET %s knows no MetricValueList: %.200s", path, got)
		}
	}
}

func TestDiscoveryListsTheCatalogue(t *testing.T) {
	d, err := discovery.NewDiscoveryClientForConfig(serve(t, village(t)))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := d.ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	var versions []string
	for _, v := range groups.Groups[0].Versions {
		versions = append(versions, v.GroupVersion)
	}
	cmptest.Equal(t, "versions", []string{"custom.metrics.k8s.io/v1beta2", "custom.metrics.k8s.io/v1beta1"}, versions)
	resources, err := d.ServerResourcesForGroupVersion(groups.Groups[0].PreferredVersion.GroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	namespaced := map[string]bool{}
	for _, r := range resources.APIResources {
		namespaced[r.Name] = r.Namespaced
	}
	want := map[string]bool{}
	for i := range metric.Catalogue {
		d := &metric.Catalogue[i]
		if d.Kinds.Has(metric.Pod) || d.Kinds.Has(metric.Container) {
			want["pods/"+d.Prometheus] = true
		}
		if d.Kinds.Has(metric.Node) {
			want["nodes/"+d.Prometheus] = false
		}
		if d.Kinds.Has(metric.Namespaced) {
			want["namespaces/"+d.Prometheus] = false
		}
	}
	cmptest.Equal(t, "resources", want, namespaced)
}

// Every metric in the list can be requested: no path returns "no such metric".
func TestWhatIsListedIsAnswered(t *testing.T) {
	p := New(village(t).options())
	for _, info := range p.ListAllMetrics() {
		namespace := ""
		if info.Namespaced {
			namespace = "shop"
		}
		if _, err := p.newRequest(info, namespace, nil); err != nil {
			t.Errorf("%v: %v", info, err)
		}
	}
}

func TestBeforeTheFirstRound(t *testing.T) {
	w := &fixture{sink: memory.New(memory.Options{})}
	c, _ := client(t, serve(t, w))
	want := "weir has just started and has read no node yet"
	if got := get(t, c, "Pod shop/web-0", "cpu_usage_cores", ""); !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.write(t, batch("n1"))
	want = "weir has not learnt the labels of pods from the API server yet"
	if got := list(t, c.NamespacedMetrics("shop"), "Pod", "", "cpu_usage_cores", ""); !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestQuantity(t *testing.T) {
	f := func(v float64, u metric.Unit, want string) {
		t.Helper()
		q := quantity(v, u)
		if got := q.String(); got != want {
			t.Errorf("quantity(%v, %v) = %s, want %s", v, u, got, want)
		}
	}
	f(0, metric.Nanocores, "0")
	f(1, metric.Nanocores, "1n")
	f(1.5e9, metric.Nanocores, "1500m")
	f(1<<53, metric.Nanoseconds, "9007199254740992n")
	f(1<<20+1, metric.Bytes, "1048577")
	f(1<<40, metric.Bytes, "1Ti")
	f(12345.6785, metric.BytesPerSecond, "12345678m") // a half is rounded to even
	f(1e18, metric.BytesPerSecond, "1E")
	f(0.333333333, metric.Ratio, "333333u")
	f(-2, metric.Count, "-2")
	f(1e19, metric.Bytes, "9765625000000000Ki")
}

func TestLabelValue(t *testing.T) {
	for name, want := range map[string]string{"/dev/vda1": "dev-vda1", "eth0": "eth0", "/dev/mapper/vg-a_b": "dev-mapper-vg-a_b", "é/": "", "": ""} {
		if got := labelValue(name); got != want {
			t.Errorf("labelValue(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestPartNames(t *testing.T) {
	for value, want := range map[string][]string{
		"dev-vda1": {"device:dev-vda1", "device:/dev/vda1"}, "imagefs": {"device:imagefs"},
		"dev-mapper-vg-root": {"device:dev-mapper-vg-root", "device:/dev/mapper-vg-root", "device:/dev/mapper/vg-root"},
	} {
		cmptest.Equal(t, value, want, partNames("device", value))
	}
}

func TestTheIndexFollowsTheFacts(t *testing.T) {
	w := village(t)
	c, _ := client(t, serve(t, w))
	before := list(t, c.NamespacedMetrics("shop"), "Pod", "app=web", "cpu_usage_cores", "")
	w.facts = w.facts.With(cluster.FactsChange{Synced: true, At: noon.Add(time.Second), GonePods: []metric.PodRef{{Namespace: "shop", Name: "web-1"}}})
	after := list(t, c.NamespacedMetrics("shop"), "Pod", "app=web", "cpu_usage_cores", "")
	if want := "Pod shop/web-0 250m at 0s over 30s"; after != want || before == want {
		t.Errorf("before web-1 was deleted:\n%s\nafter:\n%s", before, after)
	}
}

// TestEndedRun checks that a number is not served once the API server knows that its run has ended,
// although the node was not read since. Other groups, and other pods, stay.
func TestEndedRun(t *testing.T) {
	w := &fixture{sink: memory.New(memory.Options{}), sources: []explain.SourceState{{Name: "kubelet:summary", Node: "n1", LastRead: noon, LastSuccess: noon}}}
	running := func(name string, began time.Time) *cluster.Pod {
		return &cluster.Pod{
			PodRef: metric.PodRef{Namespace: "shop", Name: metric.PodName(name)}, UID: metric.PodUID(name), Node: "n1", Phase: cluster.Running,
			Containers: []cluster.Container{{Name: "app", State: cluster.StateRunning, StartedAt: began}},
		}
	}
	hourAgo := noon.Add(-time.Hour)
	w.facts = w.facts.With(cluster.FactsChange{Synced: true, At: noon, Nodes: []*cluster.Node{{Name: "n1"}}, Pods: []*cluster.Pod{running("a", hourAgo), running("b", hourAgo)}})
	b := batch("n1")
	for _, name := range []string{"a", "b"} {
		numbers := map[metric.ID]float64{metric.CPUUsageRate: 1e9, metric.MemoryWorkingSet: 1 << 20, metric.CPUUtilization: 2}
		e := pod("n1", "shop", name)
		add(b, container(e, "app"), 0, 15*time.Second, numbers).Instance.Start = hourAgo.UnixNano()
		numbers[metric.NetworkRxRate] = 5
		add(b, e, 0, 15*time.Second, numbers)
	}
	w.write(t, b)
	c, _ := client(t, serve(t, w))
	w.facts = w.facts.With(cluster.FactsChange{Synced: true, At: noon.Add(time.Second), Pods: []*cluster.Pod{running("a", noon.Add(500*time.Millisecond))}})
	ask(t, c, []question{
		{"Pod shop/a", "cpu_usage_cores", "", "shop/a has no cpu_usage_cores: a container of the pod started after its node was last read (NodeNotScrapedYet)"},
		{"Pod shop/a", "memory_working_set_bytes", "", "shop/a has no memory_working_set_bytes: a container of the pod started after its node was last read (NodeNotScrapedYet)"},
		{"Pod shop/a", "cpu_usage_cores", "container=app", "shop/a has no cpu_usage_cores: a container of the pod started after its node was last read (NodeNotScrapedYet)"},
		{"Pod shop/a", "cpu_utilization_ratio", "", "shop/a has no cpu_utilization_ratio: a container of the pod started after its node was last read (NodeNotScrapedYet)"},
		{"Pod shop/b", "cpu_utilization_ratio", "", "Pod shop/b 2 at 0s over 0s"},
		{"Pod shop/a", "network_receive_bytes_per_second", "", "Pod shop/a 5 at 0s over 15s"},
		{"Pod shop/b", "cpu_usage_cores", "", "Pod shop/b 1 at 0s over 15s"},
		{"Pod shop/b", "cpu_usage_cores", "container=app", "Pod shop/b 1 at 0s over 15s"},
	})
}
