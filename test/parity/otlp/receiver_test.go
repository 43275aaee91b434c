// Package otlp tests weir's sink for OTLP with the receiver of the OpenTelemetry collector.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/config"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/weir-metrics/weir/cluster/eventlog"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/otlp"
	"github.com/weir-metrics/weir/sinks/push"
	"github.com/weir-metrics/weir/test/promtest"
)

// read is when the test's values were read, in nanoseconds since the Unix epoch.
const read = int64(1_800_000_000_000_000_000)

// run starts a component, and ends it with the test.
func run(t *testing.T, c component.Component) {
	t.Helper()
	if err := c.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// settings returns the configuration of a receiver over HTTP, and its URL.
func settings(t *testing.T) (component.Config, string) {
	t.Helper()
	c := otlpreceiver.NewFactory().CreateDefaultConfig().(*otlpreceiver.Config)
	http := c.Protocols.HTTP.GetOrInsertDefault()
	http.ServerConfig.NetAddr.Endpoint = promtest.Address(t)
	return c, "http://" + http.ServerConfig.NetAddr.Endpoint
}

// The collector gets every value with its name, unit, attributes and time. While the next step of its
// pipeline fails, weir keeps the values.
func TestMetricsArrive(t *testing.T) {
	c, url := settings(t)
	sink := new(consumertest.MetricsSink)
	var failures atomic.Int32
	next, err := consumer.NewMetrics(func(ctx context.Context, m pmetric.Metrics) error {
		if failures.Add(1) <= 2 {
			return errors.New("the queue is full")
		}
		return sink.ConsumeMetrics(ctx, m)
	})
	if err != nil {
		t.Fatal(err)
	}
	factory := otlpreceiver.NewFactory()
	receiver, err := factory.CreateMetrics(t.Context(), receivertest.NewNopSettings(factory.Type()), c, next)
	if err != nil {
		t.Fatal(err)
	}
	run(t, receiver)

	weir, err := otlp.New(otlp.Options{Options: push.Options{URL: url, HTTP: config.DefaultHTTPClientConfig}, Attributes: map[string]string{"k8s.cluster.name": "prod"}})
	if err != nil {
		t.Fatal(err)
	}
	b := &metric.Batch{Source: "kubelet:resource", Node: "n1", Ended: time.Unix(0, read)}
	s := b.Add(metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: "web", Name: "app"})
	s.Instance = metric.Instance{UID: "u1", ID: "c1", Start: read - 60e9, Origin: metric.StartRuntime}
	s.Values.Set(metric.CPUUsage, 30e9)
	s.Values.Set(metric.CPUUsageRate, 0.5e9)
	s.Values.Set(metric.MemoryWorkingSet, 4096)
	for _, g := range []metric.Group{metric.CPU, metric.Memory} {
		s.Times[g], s.Reasons[g] = read, metric.Measured
	}
	if err := weir.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	weir.Forget(b.Source, b.Node) // its series end
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // Run sends the queue before it ends
	if err := weir.Run(ctx); err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, all := range sink.AllMetrics() {
		for _, of := range all.ResourceMetrics().All() {
			attributes := of.Resource().Attributes().AsRaw()
			for name, want := range map[string]any{
				"k8s.cluster.name": "prod", "k8s.node.name": "n1", "k8s.namespace.name": "shop", "k8s.pod.name": "web", "k8s.pod.uid": "u1",
				"k8s.container.name": "app", "container.id": "c1",
			} {
				if attributes[name] != want {
					t.Errorf("%s is %v, want %v", name, attributes[name], want)
				}
			}
			for _, m := range of.ScopeMetrics().At(0).Metrics().All() {
				got = append(got, m.Name()+" "+m.Unit()+" "+points(m))
			}
		}
	}
	slices.Sort(got)
	want := []string{
		"container.cpu.time s monotonic 30 at 0s since 1m0s",
		"container.cpu.time s monotonic ended at 1ms since 1m0s",
		"container.cpu.usage {cpu} gauge 0.5 at 0s",
		"container.cpu.usage {cpu} gauge ended at 1ms",
		"container.memory.working_set By sum 4096 at 0s",
		"container.memory.working_set By sum ended at 1ms",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the collector has\n%q, want\n%q", got, want)
	}
}

// points returns the kind of a metric and its points as text.
func points(m pmetric.Metric) string {
	kind, all := "gauge", pmetric.NewNumberDataPointSlice()
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		all = m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		kind, all = "sum", m.Sum().DataPoints()
		if m.Sum().IsMonotonic() && m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityCumulative {
			kind = "monotonic"
		}
	}
	var texts []string
	for _, p := range all.All() {
		value := fmt.Sprint(p.DoubleValue())
		if p.Flags().NoRecordedValue() {
			value = "ended"
		}
		text := fmt.Sprintf("%s at %v", value, time.Duration(int64(p.Timestamp())-read))
		if p.StartTimestamp() != 0 {
			text += fmt.Sprintf(" since %v", time.Duration(read-int64(p.StartTimestamp())))
		}
		texts = append(texts, text)
	}
	return kind + " " + strings.Join(texts, ", ")
}

// The collector gets an Event of the cluster as a log record.
func TestEventsArrive(t *testing.T) {
	c, url := settings(t)
	sink := new(consumertest.LogsSink)
	factory := otlpreceiver.NewFactory()
	receiver, err := factory.CreateLogs(t.Context(), receivertest.NewNopSettings(factory.Type()), c, sink)
	if err != nil {
		t.Fatal(err)
	}
	run(t, receiver)
	weir, err := otlp.NewEvents(otlp.Options{Options: push.Options{URL: url, HTTP: config.DefaultHTTPClientConfig}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	weir.Add(&eventlog.Event{
		Object: eventlog.Object{Kind: "Pod", Namespace: "shop", Name: "web"}, Type: "Warning", Reason: "BackOff", Message: "it ends again", Count: 4,
		First: now.Add(-time.Hour), Last: now,
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // Run sends the queue before it ends
	if err := weir.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if n := sink.LogRecordCount(); n != 1 {
		t.Fatalf("the collector has %d records, want 1", n)
	}
	of := sink.AllLogs()[0].ResourceLogs().At(0)
	record := of.ScopeLogs().At(0).LogRecords().At(0)
	count, _ := record.Attributes().Get("k8s.event.count")
	reason, _ := record.Attributes().Get("k8s.event.reason")
	pod, _ := of.Resource().Attributes().Get("k8s.pod.name")
	got := fmt.Sprint(pod.AsString(), " ", record.SeverityNumber(), " ", reason.AsString(), " ", count.AsString(), ": ", record.Body().AsString())
	if want := "web Warn BackOff 4: it ends again"; got != want || !record.Timestamp().AsTime().Equal(now) {
		t.Errorf("the collector has %q at %v, want %q at %v", got, record.Timestamp(), want, now)
	}
}
