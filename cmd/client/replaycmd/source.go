package replaycmd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/replay"
	"github.com/weir-metrics/weir/autoscaler/replay/promreplay"
	"github.com/weir-metrics/weir/autoscaler/replay/recordingreplay"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/client/recordingcmd"
	"github.com/weir-metrics/weir/cmd/flags/historyflag"
	"github.com/weir-metrics/weir/cmd/flags/stageflag"
	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
)

// traceRequest is a request to a source for a trace: the target, the time span and the metrics. The
// source chooses times that are zero.
type traceRequest struct {
	namespace, kind, name, autoscaler string
	from, to                          time.Time
	needs                             replay.Needs
}

// source is where a trace comes from, according to the flags.
type source struct {
	pipeline func(manager.Spec) []manager.Processor // for a recording

	recording, selector string

	prometheus, caFile, tokenFile string
	headers                       map[string]string
	history                       stageflag.StageList // the same server in the form of --history of weir server
	pods                          string
	queries                       []string // NAME=PROMQL
}

func (s *source) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.recording, "recording", "", "a recorded run: `FILE` of --sink=recording")
	flags.StringVarP(&s.selector, "selector", "l", "", "labels of the target's pods in a recording (default: as the recording knows the target, else by their names)")
	flags.StringVar(&s.prometheus, "prometheus", "", "`URL` of a Prometheus-compatible server")
	flags.StringVar(&s.caFile, "ca-file", "", "certificates to trust of that server (default: the system's)")
	flags.StringVar(&s.tokenFile, "token-file", "", "file with a bearer token for that server")
	flags.StringToStringVar(&s.headers, "header", nil, "headers for that server: X-Scope-OrgID=shop")
	s.history = historyflag.New()
	flags.Var(&s.history, "history", "the same as weir server has it, with all its options: prometheus:URL; see weir help history")
	flags.StringVar(&s.pods, "pods", "", "`REGEX` of the names of the target's pods in Prometheus (default: as the target's kind names them)")
	flags.StringArrayVar(&s.queries, "query", nil, "PromQL for a custom or external metric, over all pods: `NAME=PROMQL`; series are added up")
}

// check returns an error for flags that make no sense.
func (s *source) check() error {
	remembered := s.prometheus != "" || len(s.history.Stages) > 0
	switch {
	case s.recording == "" && !remembered:
		return cli.Usage(errors.New("what is to be replayed? Give --recording or --prometheus"))
	case s.prometheus != "" && len(s.history.Stages) > 0:
		return cli.Usage(errors.New("--prometheus and --history both name a server: choose one"))
	case s.recording != "" && remembered:
		return cli.Usage(errors.New("--recording and --prometheus cannot both be replayed: choose one"))
	case s.recording != "" && (s.pods != "" || len(s.queries) > 0):
		return cli.Usage(errors.New("--pods and --query are about a Prometheus: for a recording, --selector chooses pods"))
	case remembered && s.selector != "":
		return cli.Usage(errors.New("--selector is about a recording: for a Prometheus, --pods chooses pods by name"))
	}
	return nil
}

// read reads the trace. line shows how much was read.
func (s *source) read(ctx context.Context, q traceRequest, line *cli.Progress) (*replay.Trace, error) {
	if s.recording != "" {
		return s.fromRecording(ctx, q, line)
	}
	return s.fromPrometheus(ctx, q, line)
}

func (s *source) fromPrometheus(ctx context.Context, q traceRequest, line *cli.Progress) (*replay.Trace, error) {
	queries, err := s.named()
	if err != nil {
		return nil, err
	}
	for _, name := range q.needs.Named {
		if queries[name] == "" {
			return nil, cli.Usage(fmt.Errorf("the manifest uses the metric %s: add its query with --query %s=PROMQL", name, name))
		}
	}
	o, err := s.server()
	if err != nil {
		return nil, err
	}
	o.Progress = line.Query
	client, err := history.New(*o)
	if err != nil {
		return nil, fmt.Errorf("reach the Prometheus: %w", err)
	}
	defer client.Close()
	if q.to.IsZero() {
		q.to = time.Now()
	}
	if q.from.IsZero() {
		q.from = q.to.Add(-24 * time.Hour)
	}
	trace, err := promreplay.Read(ctx, client, promreplay.Request{
		Namespace: q.namespace, Kind: q.kind, Name: q.name, Autoscaler: q.autoscaler,
		Pods: s.pods, From: q.from, To: q.to, Resources: q.needs.Resources, Named: queries,
	})
	if errors.As(err, new(*promreplay.AbsentError)) {
		return nil, cli.Hintf(err, "%s", "Does it scrape weir's /metrics/cluster (with honor_labels: true) or the kubelets' /metrics/cadvisor, and did it at that time? --from and --to choose the time, --pods the pods by name, --query other metrics.")
	}
	return trace, err
}

// server returns the options of the Prometheus to query.
func (s *source) server() (*history.Options, error) {
	o, err := historyflag.Compile(s.history)
	switch {
	case err != nil:
		return nil, err
	case o == nil:
		o = &history.Options{URL: s.prometheus, CAFile: s.caFile, BearerTokenFile: s.tokenFile, Headers: s.headers, MaxAnswer: historyflag.MaxAnswer}
	case s.caFile+s.tokenFile != "" || len(s.headers) > 0:
		return nil, cli.Usage(errors.New("--ca-file, --token-file and --header are for --prometheus: --history has options for them, see weir help history"))
	}
	for name := range o.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return nil, cli.Usage(errors.New("credentials do not belong on a command line: use --token-file"))
		}
	}
	return o, nil
}

// named parses --query. PromQL contains commas, so each flag is one query.
func (s *source) named() (map[string]string, error) {
	queries := map[string]string{}
	for _, text := range s.queries {
		name, query, ok := strings.Cut(text, "=")
		if !ok || name == "" || query == "" {
			return nil, cli.Usage(fmt.Errorf("--query %s: write NAME=PROMQL", text))
		}
		queries[name] = query
	}
	return queries, nil
}

// setRequests replaces the requests in the trace with those of --request.
func setRequests(t *replay.Trace, requests map[string]string) error {
	for what, text := range requests {
		container, name, found := strings.Cut(what, "/")
		if !found {
			container, name = "", what
			if len(t.Containers) != 1 {
				return cli.Usage(fmt.Errorf("--request %s: the pods have %d containers: name one, CONTAINER/%s=%s", what, len(t.Containers), what, text))
			}
			container = t.Containers[0].Name
		}
		i := slices.IndexFunc(t.Containers, func(c replay.TraceContainer) bool { return c.Name == container })
		if i < 0 {
			return cli.Usage(fmt.Errorf("--request %s: the pods have no container %s", what, container))
		}
		q, err := resource.ParseQuantity(text)
		if err != nil || q.Sign() <= 0 || q.MilliValue() == math.MaxInt64 {
			return cli.Usage(fmt.Errorf("--request %s: %q is not a quantity above zero", what, text))
		}
		amount := autoscaler.MilliQuantity{Milli: q.MilliValue(), Set: true}
		switch name {
		case "cpu":
			t.Containers[i].Requests.CPU = amount
		case "memory":
			t.Containers[i].Requests.Memory = amount
		default:
			return cli.Usage(fmt.Errorf("--request %s: only cpu and memory can be given", what))
		}
	}
	return nil
}

// fromRecording plays the recording through the pipeline and collects the trace. A recording that
// ends in the middle is replayed up to that point.
func (s *source) fromRecording(ctx context.Context, q traceRequest, line *cli.Progress) (*replay.Trace, error) {
	for _, name := range q.needs.Named {
		if !slices.Contains(q.needs.Pods, name) {
			return nil, fmt.Errorf("metric %s is not a pod metric, and recordings contain only pod metrics: use --prometheus", name)
		}
	}
	var selector labels.Selector // nil: those of the target
	if s.selector != "" {
		var err error
		if selector, err = labels.Parse(s.selector); err != nil {
			return nil, cli.Usage(fmt.Errorf("--selector: %w", err))
		}
	}
	collector, err := recordingreplay.New(recordingreplay.Options{
		Namespace: metric.Namespace(q.namespace), Kind: q.kind, Name: q.name,
		Selector: selector, From: q.from, To: q.to, Named: q.needs.Pods,
	})
	if err != nil {
		return nil, err
	}
	err = recordingcmd.Play(ctx, s.recording, line, s.pipeline, func(f *recording.Frame, snapshot *memory.Snapshot) error {
		switch f.Kind {
		case recording.Scale:
			collector.AddTarget(f.Scale, f.Now)
		case recording.Round:
			collector.AddRound(f.Now, f.Facts, snapshot)
		}
		return nil
	})
	var truncated *recording.TruncatedError
	if errors.As(err, new(*recording.DamagedError)) {
		return nil, cli.Hintf(err, "weir recording cut %s -o FILE saves what is whole.", s.recording)
	}
	if err != nil && !errors.As(err, &truncated) {
		return nil, err
	}
	trace, err := collector.Trace()
	if err != nil {
		return nil, cli.Hintf(err, "%s", "--from and --to choose the time, --namespace and --selector the pods.")
	}
	if truncated != nil {
		trace.Notes = append(trace.Notes, truncated.Error())
	}
	return trace, nil
}
