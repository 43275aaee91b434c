package app

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/adapters"
	"github.com/weir-metrics/weir/api/clustermetrics"
	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/cmd/app/httpserver"
	"github.com/weir-metrics/weir/cmd/app/logging"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/flags/clusterflag"
	"github.com/weir-metrics/weir/cmd/flags/historyflag"
	"github.com/weir-metrics/weir/cmd/flags/stageflag"
	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/processors/rate"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sources/player"
)

// config holds the flags of run, server and agent before they are checked and completed.
type config struct {
	plan           plan // fields that flags set directly
	sources, sinks stageflag.StageList
	history        stageflag.StageList
	cluster        clusterflag.Flags
	log            logging.Options
}

// newConfig returns the defaults of a command that accepts the named sources.
func newConfig(resolution time.Duration, sources ...string) *config {
	return &config{
		plan:    plan{Resolution: resolution, Rate: rate.Options{CoarseWindow: 30 * time.Second}, Listen: httpserver.DefaultAddress, features: newFeatures()},
		sources: stageflag.StageList{What: "source", Known: sources},
		sinks:   stageflag.StageList{What: "sink", Known: stageNames(sinks)},
		history: historyflag.New(),
		log:     logging.Default(),
	}
}

// addFlags adds the flags that every long-running command has.
func (c *config) addFlags(f *pflag.FlagSet) {
	c.addPipelineFlags(f)
	c.addListenFlags(f)
	c.log.AddFlags(f)
}

// addPipelineFlags adds the flags that describe what is read and where it goes.
func (c *config) addPipelineFlags(f *pflag.FlagSet) {
	f.Var(&c.sources, "source", "where samples come from, see weir help sources; repeatable")
	f.Var(&c.sinks, "sink", sinkUsage())
	f.Var(&c.history, "history", historyflag.Usage)
	f.DurationVar(&c.plan.Resolution, "metric-resolution", c.plan.Resolution, "time between two reads of a source, unless the source has the option resolution")
	f.DurationVar(&c.plan.Rate.CoarseWindow, "summary-window", c.plan.Rate.CoarseWindow, "shortest window of a rate where times are whole seconds, as in /stats/summary: a rate can be wrong by 1s of its window, 3% at 30s and 10% at 10s")
	f.IntVar(&c.plan.MaxNodes, "max-nodes", informer.DefaultMaxNodes, "how many nodes of the cluster are read at most: those that are ready first")
	f.IntVar(&c.plan.MaxReads, "max-reads", 128, "how many sources are read at the same time; those that have not answered for half a second do not count")
}

// addListenFlags adds the flags of the local server, which does not authenticate its callers.
func (c *config) addListenFlags(f *pflag.FlagSet) {
	f.StringVar(&c.plan.Listen, "listen", c.plan.Listen, "`HOST:PORT` to serve on")
	f.BoolVar(&c.plan.Open, "allow-unauthenticated", false, "serve on addresses that other machines can reach, without authentication")
	f.BoolVar(&c.plan.Pprof, "pprof", false, "serve profiles of this process at /debug/pprof/")
}

// plan describes what a command will do, checked and with all defaults filled in. It is plain data,
// except the functions that open the stages. Nothing is open yet.
type plan struct {
	Mode       string                     // the command: server, agent or run
	stages     []func(*weirProcess) error // they open the sources and sinks
	Host       *hostPlan                  // nil unless the plan reads this machine
	Kubelets   []kubeletPlan
	Played     *player.Options // nil unless the plan plays a recording
	Memory     memory.Options
	Prometheus clustermetrics.Options
	RecordTo   string // the file of the run's recording, or empty
	// History is the Prometheus that has the metrics from before weir's memory, or nil.
	History    *history.Options
	Cluster    *informer.Options // nil without a cluster
	MaxNodes   int
	MaxReads   int
	Rate       rate.Options
	Resolution time.Duration // of sources that do not set their own
	Listen     string        // of the local server, or empty
	Open       bool          // other machines may reach it
	Pprof      bool
	APIs       []string // names in the table apis
	// ExternalRules is the file with the rules of custom and external metrics. It is empty unless they are
	// served.
	ExternalRules string
	// ExternalFiles are the files outside its folder that the rules may name.
	ExternalFiles []string
	Adapters      []adapters.Adapter // whose custom and external metrics weir passes on
	Secure        *server.Options    // nil if there is no secured server
	// AgentPod is the pod of an agent. Its name is empty if it does not run in one.
	AgentPod metav1.ObjectMeta
	// KubeletAccount is the service account whose tokens kubelets are shown, as NAMESPACE/NAME. Empty:
	// kubelets are shown the credentials for the API server.
	KubeletAccount string
	// sendsWith are the flags of the sinks with which only one replica may send.
	sendsWith []string
	features  *features
}

// asksAgents reports whether this weir asks the agents of nodes. Others know only this machine.
func (p *plan) asksAgents() bool { return p.Mode == "server" }

// compile makes a plan from the flags. source is read if they name none.
func (c *config) compile(source string) (*plan, error) {
	p := new(plan)
	*p = c.plan
	switch {
	case p.Resolution < time.Second:
		return nil, cli.Usage(fmt.Errorf("--metric-resolution cannot be %v: at least 1s", p.Resolution))
	case p.Rate.CoarseWindow < 10*time.Second || p.Rate.CoarseWindow > 5*time.Minute:
		return nil, cli.Usage(fmt.Errorf("--summary-window cannot be %v: 10s to 5m", p.Rate.CoarseWindow))
	case p.MaxReads < 1:
		return nil, cli.Usage(fmt.Errorf("--max-reads cannot be %d", p.MaxReads))
	case p.MaxNodes < 0:
		return nil, cli.Usage(fmt.Errorf("--max-nodes cannot be %d", p.MaxNodes))
	}
	if err := c.cluster.Check(); err != nil {
		return nil, err
	}
	named := c.sources.Stages
	if len(named) == 0 {
		named = []stageflag.Stage{{Name: source}}
	}
	if err := p.addStages("source", sources, named); err != nil {
		return nil, err
	}
	if err := p.addStages("sink", sinks, c.sinks.Stages); err != nil {
		return nil, err
	}
	if p.features.events.WantedBy != "" && source != "" { // an agent would watch the whole cluster, on each node
		return nil, cli.Usage(errors.New("--sink=otlp: the option events is for weir server"))
	}
	if c.cluster.Given() || p.needsCluster() {
		o := c.cluster.Options()
		o.MaxNodes = p.MaxNodes
		p.Cluster = &o
	}
	var err error
	if p.History, err = historyflag.Compile(c.history); err != nil {
		return nil, err
	}
	return p, p.checkPlayer()
}

// needsCluster reports whether the plan reads the nodes of a cluster.
func (p *plan) needsCluster() bool {
	return slices.ContainsFunc(p.Kubelets, func(k kubeletPlan) bool { return len(k.Targets) == 0 })
}
