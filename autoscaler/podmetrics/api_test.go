package podmetrics_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/weir-metrics/weir/api/resourcemetrics"
	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/podmetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/test/apitest"
)

// TestReadingsAreTheAPIs checks that readings are equal to the samples that Kubernetes' controller
// makes from the metrics.k8s.io of the same weir. It uses random clusters, a real API server and
// the controller's client.
func TestReadingsAreTheAPIs(t *testing.T) {
	scheme, err := resourcemetrics.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	var w *fixture
	config := apitest.Serve(t, scheme, resourcemetrics.OpenAPIDefinitions, func(s *genericapiserver.GenericAPIServer) error {
		return resourcemetrics.Install(s, resourcemetrics.Options{
			Snapshot: func() resourcemetrics.UsageReader { return w.sink.Snapshot() },
			Facts:    func() *cluster.Facts { return w.facts },
			Sources:  noSources,
		})
	})
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	config.ContentType = "application/vnd.kubernetes.protobuf" // the content type of kube-controller-manager
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	metrics := []autoscalingv2.MetricSpec{of("cpu", ""), of("memory", ""), of("cpu", "app"), of("memory", "mesh"), of("cpu", "nobody"), of("ephemeral-storage", "")}
	samples, lacking, errors := 0, 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		w = randomFixture(t, r)
		l := podmetrics.New(w.options())
		for _, namespace := range []string{"shop", "data", "void"} {
			for _, text := range []string{"app=web", "app=web,tier!=back", "app in (web,api)", "tier", ""} {
				sel := selector(t, text)
				pods, err := l.Pods(namespace, sel)
				if err != nil {
					t.Fatal(err)
				}
				spec := &autoscalingv2.HorizontalPodAutoscalerSpec{Metrics: metrics}
				read := l.Readings(t.Context(), namespace, sel, spec, pods)
				for i := range metrics {
					got, want := read(i), fromAPI(t.Context(), client, namespace, sel, &metrics[i])
					if diff := cmp.Diff(want, got, compareErrors); diff != "" {
						t.Fatalf("seed %d, %s, %q, metric %d (-API +live):\n%s", seed, namespace, text, i, diff)
					}
					samples += len(got.Samples)
					lacking += len(pods) - len(got.Samples)
					if got.Err != nil {
						errors++
					}
				}
			}
		}
	}
	if samples < 1000 || lacking < 1000 || errors < 100 {
		t.Errorf("%d samples, %d pods without, %d errors: too few to show anything", samples, lacking, errors)
	}
}

var compareErrors = cmp.Transformer("text", func(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
})

func selector(t testing.TB, text string) labels.Selector {
	t.Helper()
	sel, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return sel
}

// of returns the metric of a resource, of one container if container is set.
func of(name corev1.ResourceName, container string) autoscalingv2.MetricSpec {
	if container != "" {
		return autoscalingv2.MetricSpec{
			Type:              autoscalingv2.ContainerResourceMetricSourceType,
			ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: name, Container: container},
		}
	}
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: name}}
}

// fromAPI makes a reading from the API's answer as Kubernetes' controller does: a list by the
// selector; for each pod the sum of its containers in thousandths, each rounded up; no number for a
// pod if one of its containers has none; the first pod's timestamp for all.
func fromAPI(ctx context.Context, client versioned.Interface, namespace string, sel labels.Selector, m *autoscalingv2.MetricSpec) autoscaler.Reading {
	list, err := client.MetricsV1beta1().PodMetricses(namespace).List(ctx, metav1.ListOptions{LabelSelector: sel.String()})
	if err != nil {
		return autoscaler.Reading{Err: fmt.Errorf("unable to fetch metrics from resource metrics API: %w", err)}
	}
	if len(list.Items) == 0 {
		return autoscaler.Reading{Err: fmt.Errorf("no metrics returned from resource metrics API")}
	}
	reading := autoscaler.Reading{Samples: []autoscaler.PodSample{}, At: list.Items[0].Timestamp.Time}
	for _, p := range list.Items {
		s := autoscaler.PodSample{Pod: p.Name, At: p.Timestamp.Time, Window: p.Window.Duration}
		there := false
		for _, c := range p.Containers {
			var name corev1.ResourceName
			switch {
			case m.Resource != nil:
				name = m.Resource.Name
			case c.Name == m.ContainerResource.Container:
				name = m.ContainerResource.Name
			default:
				continue
			}
			q, ok := c.Usage[name]
			if !ok {
				there = false
				break
			}
			there = true
			s.Milli += q.MilliValue()
		}
		if there {
			reading.Samples = append(reading.Samples, s)
		}
	}
	return reading
}

// randomFixture returns a small cluster with every kind of missing data.
func randomFixture(t testing.TB, r *rand.Rand) *fixture {
	w := newFixture(t)
	nodes := []metric.NodeName{"n1", "n2", "n3"}
	sets := []map[string]string{{"app": "web", "tier": "front"}, {"app": "web", "tier": "back"}, {"app": "api"}, nil}
	var pods []*cluster.Pod
	for i := range r.IntN(14) {
		p := running([]string{"shop", "data"}[r.IntN(2)], fmt.Sprintf("p%02d", i), nodes[r.IntN(3)], sets[r.IntN(4)])
		for _, name := range []string{"mesh", "app", "init", "debug"}[:1+r.IntN(4)] {
			c := cluster.Container{Name: name, State: []cluster.ContainerState{cluster.StateRunning, cluster.StateRunning, cluster.StateRunning, cluster.StateWaiting, cluster.StateTerminated}[r.IntN(5)]}
			switch name {
			case "mesh":
				c.Role = []cluster.Role{cluster.Sidecar, cluster.Regular}[r.IntN(2)]
			case "init":
				c.Role = cluster.Init
			case "debug":
				c.Role = cluster.Ephemeral
			}
			p.Containers = append(p.Containers, c)
		}
		pods = append(pods, p)
	}
	w.know(pods...)
	for _, n := range nodes {
		b := w.batch(n)
		for _, p := range pods {
			if p.Node != n && r.IntN(20) > 0 { // in few cases another node still reports the pod
				continue
			}
			for _, c := range p.Containers {
				if r.IntN(6) == 0 {
					continue
				}
				s := measured(b, p, c.Name, time.Duration(r.Int64N(20e9)), time.Duration(r.Int64N(20e9)), r.ExpFloat64()*1e8, r.ExpFloat64()*1e9)
				switch r.IntN(12) {
				case 0:
					s.Values.Delete(metric.CPUUsageRate)
					s.Reasons[metric.CPU] = metric.FirstSample
				case 1:
					s.Reasons[metric.CPU] = metric.Ambiguous
				case 2:
					s.Rates[metric.CPU] = metric.Window{}
				case 3:
					s.Values.Set(metric.CPUUsageRate, 0)
				}
				if r.IntN(12) > 0 {
					s.Instance.UID = p.UID
				}
			}
		}
		if r.IntN(8) > 0 {
			w.write(b)
		}
	}
	// The API server has changed pods since they were read.
	for _, p := range pods {
		after := *p
		switch r.IntN(10) {
		case 0:
			after.Phase = cluster.Succeeded
		case 1:
			after.UID += "-next"
		case 2:
			after.Deleted = noon
		case 3, 4:
			after.Containers = slices.Clone(p.Containers)
			for i := range after.Containers {
				if c := &after.Containers[i]; r.IntN(2) == 0 {
					c.State = []cluster.ContainerState{cluster.StateRunning, cluster.StateWaiting}[r.IntN(2)]
					c.StartedAt, c.Previous = w.now.Add(-time.Duration(r.IntN(20))*time.Second), cluster.PreviousRun{EndedAt: w.now.Add(-time.Duration(r.IntN(20)) * time.Second)}.OrNil()
				}
			}
		default:
			continue
		}
		w.know(&after)
	}
	return w
}

// TestNothingReadYet checks that the errors before the first read are those of the API.
func TestNothingReadYet(t *testing.T) {
	w := newFixture(t)
	l := podmetrics.New(w.options())
	if _, err := l.Pods("shop", labels.Everything()); err == nil || err.Error() != "the API server has not listed pods yet" {
		t.Errorf("pods of nobody knows which: got %v", err)
	}
	spec := &autoscalingv2.HorizontalPodAutoscalerSpec{Metrics: []autoscalingv2.MetricSpec{of("cpu", "")}}
	want := func(text string) {
		t.Helper()
		if got := l.Readings(t.Context(), "shop", labels.Everything(), spec, nil)(0); got.Err == nil || got.Err.Error() != text {
			t.Errorf("got %v, want %s", got.Err, text)
		}
	}
	want("unable to fetch metrics from resource metrics API: the API server has not listed pods yet")
	w.know()
	want("no metrics returned from resource metrics API") // a cluster without nodes
	w.know(running("shop", "web", "n1", nil, "app"))
	want("unable to fetch metrics from resource metrics API: weir has just started and has read no node yet")
	w.sink = memory.New(memory.Options{})
	b := w.batch("n1")
	measured(b, w.facts.PodsIn("shop")[0], "app", 0, time.Second, 1, 1)
	w.write(b)
	want("no metrics returned from resource metrics API") // there are no pods
}
