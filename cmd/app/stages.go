package app

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/transport"

	"github.com/weir-metrics/weir/api/clustermetrics"
	"github.com/weir-metrics/weir/cluster/accounttoken"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/cmd/app/version"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/flags/stageflag"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/sinks/log"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sinks/otlp"
	"github.com/weir-metrics/weir/sinks/push"
	"github.com/weir-metrics/weir/sinks/recorder"
	"github.com/weir-metrics/weir/sinks/remotewrite"
	"github.com/weir-metrics/weir/sources/host"
	"github.com/weir-metrics/weir/sources/kubelet"
	"github.com/weir-metrics/weir/sources/player"
)

// stage is a row of the tables of sources and sinks. Flags, help and wiring come from it.
type stage struct {
	// name is the name for --source and --sink.
	name string
	// about describes it, for weir help sources and weir help sinks.
	about string
	// options returns the lines of help about its options.
	options func() string
	// always is set for a sink that exists even if no flag names it.
	always bool
	// acts is set for a sink that acts outside of weir: of several replicas only the leader may send.
	acts bool
	// twice is the error if it is named twice. Empty: the last one counts, or parse decides.
	twice string
	// several is set if each that is named is opened: there may be several receivers, and endpoints.
	several bool
	// parse adds to the plan what others need from the stage. It returns the function that opens
	// the stage: it adds parts, providers and sinks to the process.
	parse func(p *plan, s stageflag.Stage) (open func(*weirProcess) error, err error)
}

// sources are the sources of samples. Add a source here.
var sources = []stage{{
	name:    "kubelet",
	about:   "the kubelets of a cluster or of a list. CONFIG is SCHEME://[HOST][:PORT].",
	options: kubelet.Table.Help,
	several: true,
	parse:   parseKubelets,
}, {
	name: "cadvisor",
	about: `cAdvisors that run on their own, on the nodes of a cluster or of a list.
CONFIG is SCHEME://[HOST][:PORT]. They get no credentials unless options name some.`,
	options: kubelet.CAdvisorTable().Help,
	several: true,
	parse:   parseKubelets,
}, {
	name:    "host",
	about:   "this machine, through embedded cAdvisor. There is no CONFIG.",
	options: host.Table.Help,
	twice:   "there is only one host to read: name it once",
	parse:   parseHost,
}, {
	name: "recording",
	about: `a recorded run, whose times and facts are played with it. CONFIG is the
file. No other source is read beside it.`,
	options: player.Table.Help,
	twice:   "one recording is played at a time: join the files of one run with cat",
	parse:   parsePlayer,
}}

// sinks are the receivers of batches. Add a sink here.
var sinks = []stage{{
	name:    "memory",
	about:   "the last round whole, and a history.",
	options: memory.Table.Help,
	always:  true,
	parse: func(p *plan, s stageflag.Stage) (_ func(*weirProcess) error, err error) {
		p.Memory, err = memory.ParseOptions(s.Config, s.Options)
		return func(w *weirProcess) error {
			w.pipeline.sinks = append(w.pipeline.sinks, manager.NamedSink{Name: s.Name, Sink: w.memory, Wait: memoryWait})
			return nil
		}, err
	},
}, {
	name:    "prometheus",
	about:   "the exposition on /metrics/cluster.",
	options: clustermetrics.Table.Help,
	always:  true,
	parse: func(p *plan, s stageflag.Stage) (_ func(*weirProcess) error, err error) {
		p.Prometheus, err = clustermetrics.ParseOptions(s.Config, s.Options)
		return func(*weirProcess) error { return nil }, err // the row of the API reads the memory
	},
}, {
	name: "remotewrite",
	about: `to a receiver of Prometheus' remote write, its URL the CONFIG:
--sink=remotewrite:http://prometheus:9090/api/v1/write. Series and names are those of
/metrics/cluster, each value with its node's time. Of several replicas the leader
sends. Name it again for another receiver.`,
	options: remotewrite.Table.Help,
	acts:    true,
	several: true,
	parse:   parseWith(remotewrite.ParseOptions, openRemoteWrite),
}, {
	name: "otlp",
	about: `to an OpenTelemetry collector, or another receiver of OTLP over HTTP, its
URL the CONFIG: --sink=otlp:http://collector:4318. Names are those of OpenTelemetry's
conventions, each value with its node's time. Of several replicas the leader sends.
Name it again for another receiver.`,
	options: otlp.Table.Help,
	acts:    true,
	several: true,
	parse: func(p *plan, s stageflag.Stage) (func(*weirProcess) error, error) {
		o, err := otlp.ParseOptions(s.Config, s.Options)
		if o.Events {
			p.features.events.WantedBy = "the option events of --sink=otlp"
		}
		return func(w *weirProcess) error { return openOTLP(w, o) }, err
	},
}, {
	name:    "log",
	about:   "a line for each batch, on standard output.",
	options: log.Table.Help,
	parse: parseWith(log.ParseOptions, func(w *weirProcess, o log.Options) error {
		w.addSink("log", log.New(w.pipeline.out, o))
		return nil
	}),
}, {
	name: "recording",
	about: `what was read, into a file, to be replayed. CONFIG is the file, which
is continued if it exists; see weir recording.`,
	options: recorder.Table.Help,
	twice:   "a run is recorded in one file: name it once",
	parse: func(p *plan, s stageflag.Stage) (func(*weirProcess) error, error) {
		o, err := recorder.ParseOptions(s.Config, s.Options)
		o.By = "weir " + version.Get().Version
		p.RecordTo = o.Path
		return func(w *weirProcess) error { return openRecorder(w, o) }, err
	},
}}

// pipeline returns the processors of one source with default options. The manager calls and times
// them one by one. Package processors defines their order.
func pipeline(manager.Spec) []manager.Processor { return newPipeline(processors.Options{}) }

// newPipeline returns the processors of one source, in order.
func newPipeline(o processors.Options) []manager.Processor {
	var steps []manager.Processor
	for _, step := range processors.New(o).Steps() {
		steps = append(steps, step)
	}
	return steps
}

// stageNames returns the names in a table.
func stageNames(table []stage) (names []string) {
	for i := range table {
		names = append(names, table[i].name)
	}
	return names
}

// sinkUsage is the usage text of --sink.
func sinkUsage() string {
	var always []string
	for i := range sinks {
		if sinks[i].always {
			always = append(always, sinks[i].name)
		}
	}
	return fmt.Sprintf("where results go: %s; %s are always there, and named only for their options, see weir help sinks; repeatable",
		humanize.List(stageNames(sinks), 0), humanize.List(always, 0))
}

// stageHelp formats the rows of a table for a page of help.
func stageHelp(table []stage) string {
	blocks := make([]string, len(table))
	for i := range table {
		blocks[i] = table[i].name + ": " + table[i].about + "\n" + table[i].options()
	}
	return strings.Join(blocks, "\n\n")
}

// addStages parses the named stages with a table. Sinks with always are added if they are not
// named.
func (p *plan) addStages(flag string, table []stage, named []stageflag.Stage) error {
	var all []stageflag.Stage
	for i := range table {
		if table[i].always {
			all = append(all, stageflag.Stage{Name: table[i].name})
		}
	}
	opens := map[string][]func(*weirProcess) error{}
	for _, s := range append(all, named...) {
		row := &table[slices.Index(stageNames(table), s.Name)] // the flag has checked the name
		if row.twice != "" && opens[s.Name] != nil {
			return cli.Usage(fmt.Errorf("--%s=%s: %s", flag, s.Name, row.twice))
		}
		open, err := row.parse(p, s)
		if err != nil {
			return cli.Usage(fmt.Errorf("--%s=%s: %w", flag, s.Name, err))
		}
		if !row.several {
			opens[s.Name] = nil
		}
		opens[s.Name] = append(opens[s.Name], open)
		if name := "--" + flag + "=" + s.Name; row.acts && !slices.Contains(p.sendsWith, name) {
			p.sendsWith = append(p.sendsWith, name)
		}
	}
	for i := range table {
		p.stages = append(p.stages, opens[table[i].name]...)
	}
	return nil
}

// parseWith returns the parse function of a row that only opens what its options name.
func parseWith[O any](parse func(config string, query url.Values) (O, error), open func(*weirProcess, O) error) func(*plan, stageflag.Stage) (func(*weirProcess) error, error) {
	return func(_ *plan, s stageflag.Stage) (func(*weirProcess) error, error) {
		o, err := parse(s.Config, s.Options)
		return func(w *weirProcess) error { return open(w, o) }, err
	}
}

// memoryWait is how long reads wait for the memory. The first batches of a cluster take it longer than
// later ones, and one that is dropped delays its node's first rates by an interval: waiting as long as the
// default interval costs no more.
const memoryWait = 15 * time.Second

// receiverName returns the name of a sink that sends to url. Two with one receiver would send it
// everything twice.
func (w *weirProcess) receiverName(sink, url string) (string, error) {
	name := sink + " " + humanize.URL(url)
	if slices.ContainsFunc(w.pipeline.sinks, func(other manager.NamedSink) bool { return other.Name == name }) {
		return "", cli.Usage(fmt.Errorf("--sink=%s: %s is named twice: name each receiver once", sink, humanize.URL(url)))
	}
	return name, nil
}

// receiversInTrouble returns the receivers that accept nothing.
func (w *weirProcess) receiversInTrouble() (all []explain.Receiver) {
	for _, s := range w.pipeline.sinks {
		if sender, ok := s.Sink.(interface{ Trouble() (time.Time, error) }); ok {
			if since, err := sender.Trouble(); err != nil {
				all = append(all, explain.Receiver{Name: s.Name, Message: humanize.Printable(err.Error()), Since: since.UTC()})
			}
		}
	}
	return all
}

// addSink adds a sink to the pipeline.
func (w *weirProcess) addSink(name string, s manager.Sink) {
	w.pipeline.sinks = append(w.pipeline.sinks, manager.NamedSink{Name: name, Sink: s})
}

// hostPlan configures the source that reads this machine.
type hostPlan struct {
	host.Options
	Interval time.Duration
	// KubeletRoot and ContainerRoot are the directories of the node's disks that are measured.
	KubeletRoot, ContainerRoot string
}

// setName names the node, unless the source's options already did.
func (h *hostPlan) setName(n metric.NodeName) { h.Node = cmp.Or(h.Node, n) }

func parseHost(p *plan, s stageflag.Stage) (func(*weirProcess) error, error) {
	o, err := host.ParseOptions(s.Config, s.Options)
	if err != nil {
		return nil, err
	}
	p.Host = &hostPlan{
		Options: o, Interval: cmp.Or(o.Resolution, p.Resolution),
		KubeletRoot: defaultKubeletRoot, ContainerRoot: defaultContainerRoot,
	}
	return openHostSource, nil
}

func openHostSource(w *weirProcess) error {
	if w.plan.Host.Node == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("name this node: %w", err)
		}
		w.plan.Host.setName(metric.NodeName(name))
	}
	return openHost(w, w.plan.Host)
}

// kubeletPlan is one endpoint that is read on many kubelets.
type kubeletPlan struct {
	kubelet.Options
	Interval time.Duration
}

// kind is the name of the source in metrics and samples: "kubelet:summary" or "cadvisor".
func (k *kubeletPlan) kind() string {
	if k.Endpoint == kubelet.Standalone {
		return "cadvisor"
	}
	return "kubelet:" + string(cmp.Or(k.Endpoint, kubelet.Resource))
}

func parseKubelets(p *plan, s stageflag.Stage) (_ func(*weirProcess) error, err error) {
	parse := kubelet.ParseOptions
	if s.Name == "cadvisor" {
		parse = kubelet.ParseCAdvisor
	}
	var k kubeletPlan
	if k.Options, err = parse(s.Config, s.Options); err != nil {
		return nil, err
	}
	k.Interval = cmp.Or(k.Resolution, p.Resolution)
	if slices.ContainsFunc(p.Kubelets, func(other kubeletPlan) bool { return other.kind() == k.kind() }) {
		return nil, fmt.Errorf("%s is named twice: name it once, with several in the option targets", k.kind())
	}
	p.Kubelets = append(p.Kubelets, k)
	return func(w *weirProcess) error { return openKubelets(w, k) }, nil
}

// showsOwnToken reports whether kubelets are shown the token of weir's own account unless the plan
// names another.
func (k *kubeletPlan) showsOwnToken() bool {
	return len(k.Targets) == 0 && k.Endpoint != kubelet.Standalone && k.Scheme != "http" && k.TokenFile == "" && k.CertFile == ""
}

// kubeletToken returns the source of tokens of the account that reads kubelets. It is nil if the plan
// names no account. The first call opens the source.
func (w *weirProcess) kubeletToken() (*accounttoken.Source, error) {
	namespace, name, named := strings.Cut(w.plan.KubeletAccount, "/")
	if !named {
		return nil, nil
	}
	if w.kubelets.tokens != nil {
		return w.kubelets.tokens, nil
	}
	client, err := w.Cluster.Client()
	if err != nil {
		return nil, err
	}
	nodes := func() int { return w.Facts().Nodes() }
	if w.kubelets.tokens, err = accounttoken.New(accounttoken.Options{Client: client.CoreV1(), Namespace: namespace, Name: name, Nodes: nodes, Logger: w.Log, Registerer: w.Registry}); err != nil {
		return nil, err
	}
	w.Add(feature.Part{Name: "kubelets' token", Run: w.kubelets.tokens.Run})
	return w.kubelets.tokens, nil
}

// kubeletIdentity returns our credentials for kubelets. It is nil if a pod's service account or the
// source's own options provide them.
func (p *plan) kubeletIdentity() (*transport.Config, error) {
	if p.Cluster == nil || p.Cluster.Kubeconfig == "" {
		return nil, nil
	}
	config, err := informer.RESTConfig(*p.Cluster)
	if err != nil {
		return nil, fmt.Errorf("read credentials for kubelets: %w", err)
	}
	identity, err := config.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("read credentials for kubelets: %w", err)
	}
	return identity, nil
}

func parsePlayer(p *plan, s stageflag.Stage) (func(*weirProcess) error, error) {
	o, err := player.ParseOptions(s.Config, s.Options)
	p.Played = &o
	return func(w *weirProcess) (err error) {
		if w.pipeline.player, err = player.Open(o); err != nil {
			return err
		}
		w.Add(feature.Part{Name: "recording that is played", Close: w.pipeline.player.Close})
		return nil
	}, err
}

// checkPlayer returns an error for options that cannot be used while a recording is played.
func (p *plan) checkPlayer() error {
	switch {
	case p.Played == nil:
		return nil
	case p.Host != nil || len(p.Kubelets) > 0:
		return cli.Hintf(cli.Usage(errors.New("a recording cannot be combined with other sources")), "Leave the other --source out.")
	case p.Cluster != nil:
		return cli.Hintf(cli.Usage(errors.New("a recording already contains the state of its cluster")), "Leave --kubeconfig, --master and --in-cluster out.")
	case p.RecordTo != "" && p.RecordTo == p.Played.Path:
		return cli.Usage(errors.New("a recording cannot be recorded into itself"))
	}
	return nil
}

func openRecorder(w *weirProcess, o recorder.Options) error {
	sink, err := recorder.Open(o)
	switch {
	case err != nil && w.plan.Mode != "run":
		w.Log.Warn("the recording cannot be written: weir tries again each minute", zap.Error(err)) // the APIs do not need it
	case err != nil:
		return err
	}
	w.pipeline.sinks = append(w.pipeline.sinks, manager.NamedSink{Name: "recording", Recorder: sink, Queue: 1024})
	w.Add(feature.Part{Name: "recording", Close: sink.Close})
	if err := sink.SetAside(); err != nil {
		w.Log.Warn("the existing recording cannot be continued: it is kept as a full file, and a new one is started", zap.Error(err))
	}
	if err == nil {
		w.Log.Info("recording", zap.String("file", o.Path))
	}
	w.plan.features.autoscaler.RecordTarget = func(t *recording.ScaleTarget, now time.Time) {
		// The rounds that are recorded log when the file cannot be written.
		if err := sink.Scale(t, now); err != nil {
			w.Log.Debug("a scale target is not recorded", zap.String("target", string(t.Namespace)+"/"+t.Name), zap.Error(err))
		}
	}
	return nil
}

// pushOptions sets what the sinks that push have of the process.
func (w *weirProcess) pushOptions(o *push.Options) {
	o.Interval, o.IsLeader, o.Logger, o.Registerer = w.Resolution, w.IsSender, w.Log, w.Registry
	o.View = func() push.SnapshotReader {
		if snapshot := w.snapshot(); snapshot != nil {
			return snapshot
		}
		return nil // a nil pointer in an interface would not be nil
	}
}

func openRemoteWrite(w *weirProcess, o remotewrite.Options) error {
	w.pushOptions(&o.Options)
	name, err := w.receiverName("remotewrite", o.URL)
	if err != nil {
		return err
	}
	sink, err := remotewrite.New(o)
	if err != nil {
		return fmt.Errorf("--sink=remotewrite: %w", err)
	}
	w.addSink(name, sink)
	w.Add(feature.Part{Name: "remote write", Run: sink.Run, Ends: feature.EndsLast})
	return nil
}

func openOTLP(w *weirProcess, o otlp.Options) error {
	w.pushOptions(&o.Options)
	name, err := w.receiverName("otlp", o.URL)
	if err != nil {
		return err
	}
	sink, err := otlp.New(o)
	if err != nil {
		return fmt.Errorf("--sink=otlp: %w", err)
	}
	w.addSink(name, sink)
	w.Add(feature.Part{Name: "OTLP", Run: sink.Run, Ends: feature.EndsLast})
	if !o.Events {
		return nil
	}
	events, err := otlp.NewEvents(o)
	if err != nil {
		return fmt.Errorf("--sink=otlp: %w", err)
	}
	w.plan.features.events.Watcher().HandleEvents(events.Add)
	w.Add(feature.Part{Name: "Events by OTLP", Run: events.Run, Ends: feature.EndsLast})
	return nil
}
