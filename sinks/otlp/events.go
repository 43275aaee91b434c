package otlp

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"

	"github.com/weir-metrics/weir/cluster/eventlog"
	"github.com/weir-metrics/weir/sinks/push"
)

// logsPath is the path of OTLP for logs, below the URL of a receiver.
const logsPath = "/v1/logs"

// EventSink sends Events of the cluster to a receiver, each as a log record. Add may be called by
// several goroutines and never waits for the receiver; Run sends.
type EventSink struct {
	*push.Sender
	o Options
	// began is when the sink was made.
	began time.Time

	mu      sync.Mutex
	packer  packer
	records []*logspb.ResourceLogs
	since   time.Time // of the first record
}

// NewEvents returns an EventSink. The error is about certificates or credentials.
func NewEvents(o Options) (*EventSink, error) {
	o.Options = withDefaults(o.Options)
	if o.WAL != "" { // the log of the samples has a lock on its folder
		o.WAL = filepath.Join(o.WAL, "events")
	}
	sender, err := push.NewSender(o.Options, "otlp_logs", "events")
	if err != nil {
		return nil, err
	}
	sender.SetSend(func(ctx context.Context, request []byte) (int, error) {
		var answer collectorpb.ExportLogsServiceResponse
		if err := send(ctx, sender, logsPath, request, &answer); err != nil {
			return 0, err
		}
		partial := answer.GetPartialSuccess()
		return sender.Rejected(int(partial.GetRejectedLogRecords()), partial.GetErrorMessage()), nil
	})
	s := &EventSink{Sender: sender, o: o, began: time.Now(), packer: packer{uncompressed: o.Uncompressed}}
	sender.SetFilling(func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.records)
	})
	return s, nil
}

// Run sends the queue until ctx ends, and then for at most Options.Grace. It always returns nil.
func (s *EventSink) Run(ctx context.Context) error { return s.Sender.Run(ctx, s.flush) }

// Add queues an Event. It leaves out what happened before the sink was made: a weir that starts reads
// the Events of the last hour, which an earlier one has sent.
func (s *EventSink) Add(e *eventlog.Event) {
	if e.Last.Before(s.began.Truncate(time.Second)) || !s.o.IsLeader() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.records) == 0 {
		s.since = time.Now()
	}
	s.records = append(s.records, s.record(e))
	if len(s.records) >= s.o.MaxSamples {
		s.enqueue()
	}
}

// record returns the log record of an Event, with the attributes of its object.
func (s *EventSink) record(e *eventlog.Event) *logspb.ResourceLogs {
	resource := map[string]string{"k8s.object.kind": e.Kind, "k8s.object.name": e.Name, "k8s.object.uid": e.ObjectUID}
	switch e.Kind {
	case "Node":
		resource["k8s.node.name"] = e.Name
	case "Pod":
		resource["k8s.namespace.name"], resource["k8s.pod.name"], resource["k8s.pod.uid"] = e.Namespace, e.Name, e.ObjectUID
		resource["k8s.container.name"] = e.Part
	default:
		resource["k8s.namespace.name"] = e.Namespace
	}
	for name, value := range s.o.Attributes {
		resource[name] = value
	}
	r := &logspb.LogRecord{
		TimeUnixNano: uint64(e.Last.UnixNano()), ObservedTimeUnixNano: uint64(time.Now().UnixNano()),
		SeverityNumber: logspb.SeverityNumber_SEVERITY_NUMBER_INFO, SeverityText: strings.ToValidUTF8(e.Type, "\uFFFD"),
		Body: attribute("", e.Message).Value,
		Attributes: append(attributes(map[string]string{
			"k8s.event.reason": e.Reason, "k8s.event.uid": e.UID, "k8s.event.start_time": e.First.UTC().Format(time.RFC3339), "weir.event.source": e.Source,
		}), &commonpb.KeyValue{Key: "k8s.event.count", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(e.Count)}}}),
	}
	if e.Type == "Warning" {
		r.SeverityNumber = logspb.SeverityNumber_SEVERITY_NUMBER_WARN
	}
	return &logspb.ResourceLogs{
		Resource: &resourcepb.Resource{Attributes: attributes(resource)}, SchemaUrl: schemaURL,
		ScopeLogs: []*logspb.ScopeLogs{{Scope: scope, LogRecords: []*logspb.LogRecord{r}}},
	}
}

// enqueue queues the request.
func (s *EventSink) enqueue() {
	s.Put(s.packer.pack(s.Buffer(), encode(&collectorpb.ExportLogsServiceRequest{ResourceLogs: s.records})), len(s.records), s.since)
	s.records = nil
}

// flush queues the request if its first record has waited for at least longest.
func (s *EventSink) flush(longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.records) > 0 && time.Since(s.since) >= longest {
		s.enqueue()
	}
}
