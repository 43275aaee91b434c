package app

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/app/httpserver"
	"github.com/weir-metrics/weir/app/logging"
	"github.com/weir-metrics/weir/app/stageflag"
	"github.com/weir-metrics/weir/client/cli"
)

// config is what the flags of run, server and agent say, before anything is
// made of it.
type config struct {
	sources, sinks stageflag.List
	history        stageflag.List
	resolution     time.Duration
	maxReads       int

	listen string
	open   bool
	pprof  bool

	kubeconfig, master string
	inCluster          bool

	apis *apiFlags // nil for commands that serve none

	log logging.Options
}

// newConfig returns the defaults of a command that may have the named sources.
func newConfig(resolution time.Duration, sources ...string) *config {
	return &config{
		sources:    stageflag.List{What: "source", Known: sources},
		sinks:      stageflag.List{What: "sink", Known: []string{"memory", "prometheus", "remotewrite", "log", "recording"}},
		history:    newHistoryFlag(),
		resolution: resolution,
		listen:     httpserver.DefaultAddress,
		log:        logging.Default(),
	}
}

// addFlags adds the flags every long-running command has.
func (c *config) addFlags(f *pflag.FlagSet) {
	c.addPipelineFlags(f)
	c.addListenFlags(f)
	c.log.AddFlags(f)
}

// addPipelineFlags adds the flags that say what is read, and where it goes.
func (c *config) addPipelineFlags(f *pflag.FlagSet) {
	f.Var(&c.sources, "source", "where samples come from, see weir help sources; repeatable")
	f.Var(&c.sinks, "sink", "where results go: memory, prometheus, remotewrite, log and recording; memory and prometheus are always there, and named only for their options, see weir help sinks; repeatable")
	f.Var(&c.history, "history", historyUsage)
	f.DurationVar(&c.resolution, "metric-resolution", c.resolution, "time between two reads of a source, unless the source's resolution option says otherwise")
	f.IntVar(&c.maxReads, "max-reads", 128, "most sources read at one moment")
}

// addListenFlags adds the flags of what is served without asking who reads.
func (c *config) addListenFlags(f *pflag.FlagSet) {
	f.StringVar(&c.listen, "listen", c.listen, "`HOST:PORT` to serve on")
	f.BoolVar(&c.open, "allow-unauthenticated", false, "serve on addresses that others than this machine reach; nobody is asked who they are")
	f.BoolVar(&c.pprof, "pprof", false, "serve profiles of this process at /debug/pprof/")
}

// addClusterFlags adds the flags of commands that may know a cluster.
func (c *config) addClusterFlags(f *pflag.FlagSet) {
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig `FILE` of the cluster")
	f.StringVar(&c.master, "master", "", "`URL` of the API server, instead of the kubeconfig's")
	f.BoolVar(&c.inCluster, "in-cluster", false, "use the service account of the pod weir runs in")
}

// check refuses what no command can do.
func (c *config) check() error {
	if c.resolution < time.Second {
		return cli.Usage(fmt.Errorf("--metric-resolution cannot be %v: at least 1s", c.resolution))
	}
	if c.maxReads < 1 {
		return cli.Usage(fmt.Errorf("--max-reads cannot be %d", c.maxReads))
	}
	if c.inCluster && (c.kubeconfig != "" || c.master != "") {
		return cli.Usage(fmt.Errorf("--in-cluster excludes --kubeconfig and --master"))
	}
	return nil
}

// namesCluster reports whether the flags say which cluster there is.
func (c *config) namesCluster() bool { return c.kubeconfig != "" || c.master != "" || c.inCluster }
