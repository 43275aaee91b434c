package otlp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/config"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weir-metrics/weir/cluster/eventlog"
	"github.com/weir-metrics/weir/sinks/push"
)

// Each Event becomes a log record, and again when it is counted up. Those from before the start are not
// sent, nor any by a replica that does not lead.
func TestEventsAreLogRecords(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body, err := io.ReadAll(unzipped)
		var message collectorpb.ExportLogsServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &message)
		}
		if err != nil || r.URL.Path != "/v1/logs" {
			t.Errorf("%s: %v", r.URL, err)
		}
		for _, of := range message.ResourceLogs {
			record := of.ScopeLogs[0].LogRecords[0]
			last := len(record.Attributes) - 1
			got = append(got, fmt.Sprintf("%s {%s} %s{%s,count=%d}: %s", record.SeverityNumber, text(of.Resource.Attributes), record.SeverityText,
				text(record.Attributes[:last]), record.Attributes[last].GetValue().GetIntValue(), record.Body.GetStringValue()))
		}
	}))
	t.Cleanup(server.Close)
	leads, registry := true, prometheus.NewRegistry()
	s, err := NewEvents(Options{
		Options:    push.Options{URL: server.URL, HTTP: config.DefaultHTTPClientConfig, IsLeader: func() bool { return leads }, Registerer: registry, Grace: time.Minute},
		Attributes: map[string]string{"k8s.cluster.name": "prod"},
	})
	if err != nil {
		t.Fatal(err)
	}
	first, now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), time.Now()
	onPod := eventlog.Event{
		Object: eventlog.Object{Kind: "Pod", Namespace: "shop", Name: "web"}, ObjectUID: "p1", Part: "app", UID: "e1", Source: "kubelet",
		Type: "Warning", Reason: "BackOff", Message: "it ends\xff", Count: 4, First: first, Last: now,
	}
	onNode := eventlog.Event{Object: eventlog.Object{Kind: "Node", Namespace: "default", Name: "n1"}, Type: "Normal", Reason: "Ready", Count: 1, First: first, Last: now}
	onHPA := eventlog.Event{Object: eventlog.Object{Kind: "HorizontalPodAutoscaler", Namespace: "shop", Name: "web"}, Type: "Normal", Reason: "Scaled", Count: 1, First: first, Last: now}
	old := onNode
	old.Last = now.Add(-time.Minute)
	for _, e := range []*eventlog.Event{&onPod, &onNode, &onHPA, &old} {
		s.Add(e)
	}
	leads = false
	s.Add(&onPod)
	if err := testutil.GatherAndCompare(registry, strings.NewReader(strings.ReplaceAll(`
# HELP weir_otlp_logs_unlogged_events Number of events that are lost if weir is killed, because they are not in the write-ahead log.
# TYPE weir_otlp_logs_unlogged_events gauge
weir_otlp_logs_unlogged_events{receiver="RECEIVER"} 3
`, "RECEIVER", server.URL)), "weir_otlp_logs_unlogged_events"); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"SEVERITY_NUMBER_WARN {k8s.cluster.name=prod,k8s.container.name=app,k8s.namespace.name=shop,k8s.object.kind=Pod,k8s.object.name=web,k8s.object.uid=p1,k8s.pod.name=web,k8s.pod.uid=p1} " +
			"Warning{k8s.event.reason=BackOff,k8s.event.start_time=2026-01-02T12:00:00Z,k8s.event.uid=e1,weir.event.source=kubelet,count=4}: it ends\uFFFD",
		"SEVERITY_NUMBER_INFO {k8s.cluster.name=prod,k8s.node.name=n1,k8s.object.kind=Node,k8s.object.name=n1} Normal{k8s.event.reason=Ready,k8s.event.start_time=2026-01-02T12:00:00Z,count=1}: ",
		"SEVERITY_NUMBER_INFO {k8s.cluster.name=prod,k8s.namespace.name=shop,k8s.object.kind=HorizontalPodAutoscaler,k8s.object.name=web} Normal{k8s.event.reason=Scaled,k8s.event.start_time=2026-01-02T12:00:00Z,count=1}: ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}

// Samples and Events of one sink have their write-ahead logs beside each other.
func TestTwoWriteAheadLogs(t *testing.T) {
	o := Options{Options: push.Options{URL: "http://127.0.0.1:1", HTTP: config.DefaultHTTPClientConfig, WAL: t.TempDir(), Grace: time.Minute}}
	samples, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	events, err := NewEvents(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, run := range []func(context.Context) error{samples.Run, events.Run} {
		if err := run(ctx); err != nil {
			t.Error(err)
		}
	}
	if samples, err = New(o); err != nil { // beside the folder of the Events
		t.Fatal(err)
	}
	if err := samples.Run(ctx); err != nil {
		t.Error(err)
	}
}
