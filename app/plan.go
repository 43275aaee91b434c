package app

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/transport"

	"github.com/weir-metrics/weir/api/clustermetrics"
	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/app/stageflag"
	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/history/promclient"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/log"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sinks/recorder"
	"github.com/weir-metrics/weir/sinks/remotewrite"
	"github.com/weir-metrics/weir/sources/host"
	"github.com/weir-metrics/weir/sources/kubelet"
	"github.com/weir-metrics/weir/sources/player"
	"github.com/weir-metrics/weir/sources/shared"
)

// plan is what a command will do, checked and with every default filled in.
// Nothing is opened yet.
type plan struct {
	Host       *hostPlan // nil unless this machine is read
	Kubelets   []kubeletPlan
	Memory     memory.Options
	Prometheus clustermetrics.Options
	Log        *log.Options      // nil unless asked for
	Recorded   *recorder.Options // nil unless asked for
	// RemoteWrite is where results are sent; nil unless asked for.
	RemoteWrite *remotewrite.Options
	// History is the Prometheus that knows what was before; nil for none.
	History    *promclient.Options
	Played     *player.Options   // nil unless a recording is read
	Cluster    *informer.Options // nil without a cluster
	MaxReads   int
	Resolution time.Duration // of sources that have none of their own
	Listen     string        // empty: nothing is served without asking who reads
	Open       bool          // to others than this machine
	Pprof      bool
	APIs       apis
	// ExternalRules is the file that says which external metrics there are;
	// empty unless APIs.External is set.
	ExternalRules string
	Secure        *server.Options // nil: nobody is asked who reads
	Lease         *lease          // nil for a weir that is alone
	// SharedReads has the replicas share the reading of kubelets.
	SharedReads bool
	// HPAEvents asks for Events on autoscalers whose pods have no metrics.
	HPAEvents bool
	// Autoscalers are decided about, where there is a cluster.
	Autoscalers autoscalerPlan
	// Eviction is what to decide about this machine's pods; nil for nothing.
	Eviction *evictionPlan
	// Agents are asked for what only they know; nil but for a server.
	Agents *agentsPlan
}

// hostPlan is the source that reads this machine.
type hostPlan struct {
	host.Options
	Interval time.Duration
	// KubeletRoot and ContainerRoot are where the node's disks are looked at.
	KubeletRoot, ContainerRoot string
}

// name gives the node a name, unless the source's options gave it one.
func (h *hostPlan) name(n metric.NodeName) { h.Node = cmp.Or(h.Node, n) }

// compile makes a plan of the flags. Source is what is read if they name none.
func (c *config) compile(source string) (*plan, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	p := &plan{MaxReads: c.maxReads, Resolution: c.resolution, Listen: c.listen, Open: c.open, Pprof: c.pprof}
	stages := c.sources.Stages
	if len(stages) == 0 {
		stages = []stageflag.Stage{{Name: source}}
	}
	for _, s := range stages {
		var err error
		switch s.Name {
		case "host":
			err = p.addHost(s, c)
		case "kubelet":
			err = p.addKubelets(s, c)
		case "recording":
			err = p.addPlayed(s)
		}
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("--source=%s: %w", s.Name, err))
		}
	}
	for _, s := range c.sinks.Stages {
		if err := p.addSink(s); err != nil {
			return nil, cli.Usage(fmt.Errorf("--sink=%s: %w", s.Name, err))
		}
	}
	if c.apis != nil {
		var err error
		if p.APIs, err = c.apis.compile(); err != nil {
			return nil, err
		}
		p.ExternalRules = c.apis.rules
	}
	if c.namesCluster() || p.needsCluster() {
		p.Cluster = &informer.Options{Kubeconfig: c.kubeconfig, Master: c.master}
	}
	var err error
	if p.History, err = compileHistory(c.history); err != nil {
		return nil, err
	}
	if err := p.checkRecordings(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *plan) addHost(s stageflag.Stage, c *config) error {
	if p.Host != nil {
		return errors.New("there is only one host to read: name it once")
	}
	o, err := host.ParseOptions(s.Config, s.Options)
	if err != nil {
		return err
	}
	p.Host = &hostPlan{
		Options: o, Interval: cmp.Or(o.Resolution, c.resolution),
		KubeletRoot: defaultKubeletRoot, ContainerRoot: defaultContainerRoot,
	}
	return nil
}

func (p *plan) addKubelets(s stageflag.Stage, c *config) error {
	k := kubeletPlan{Interval: c.resolution}
	options := maps.Clone(s.Options)
	if text := options.Get("resolution"); text != "" {
		var err error
		if k.Interval, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("read option resolution: %w", err)
		}
		if k.Interval < time.Second {
			return fmt.Errorf("option resolution cannot be %v: at least 1s", k.Interval)
		}
	}
	delete(options, "resolution")
	var err error
	if k.Options, err = kubelet.ParseOptions(s.Config, options); err != nil {
		return err
	}
	for i := range p.Kubelets {
		if p.Kubelets[i].kind() == k.kind() {
			return fmt.Errorf("%s is named twice: name each endpoint once", k.kind())
		}
	}
	p.Kubelets = append(p.Kubelets, k)
	return nil
}

// needsCluster reports whether the nodes to read are a cluster's.
func (p *plan) needsCluster() bool {
	for i := range p.Kubelets {
		if len(p.Kubelets[i].Targets) == 0 {
			return true
		}
	}
	return false
}

func (p *plan) addSink(s stageflag.Stage) error {
	var err error
	switch s.Name {
	case "memory":
		p.Memory, err = memory.ParseOptions(argument(s))
	case "prometheus":
		p.Prometheus, err = clustermetrics.ParseOptions(argument(s))
	case "log":
		var o log.Options
		o, err = log.ParseOptions(argument(s))
		p.Log = &o
	case "recording":
		err = p.addRecorded(s)
	case "remotewrite":
		if p.RemoteWrite != nil {
			return errors.New("there is one receiver: name it once")
		}
		var o remotewrite.Options
		o, err = remotewrite.ParseOptions(argument(s))
		p.RemoteWrite = &o
	}
	return err
}

// argument returns what follows the name and its colon, as sinks read it.
func argument(s stageflag.Stage) string {
	if len(s.Options) == 0 {
		return s.Config
	}
	return s.Config + "?" + s.Options.Encode()
}

// opened is a Provider that holds something open.
type opened interface {
	manager.Provider
	io.Closer
}

// openSources opens the sources, whose reading replicas share by shares unless that is
// nil. What is opened before one fails is closed again.
func openSources(p *plan, shares *shared.Exchange, logger *zap.Logger) (all []opened, err error) {
	defer func() {
		if err != nil {
			all, err = nil, errors.Join(err, closeAll(all))
		}
	}()
	if p.Host != nil {
		if p.Host.Node == "" {
			name, err := os.Hostname()
			if err != nil {
				return nil, fmt.Errorf("name this node: %w", err)
			}
			p.Host.name(metric.NodeName(name))
		}
		h, err := openHost(*p.Host, logger)
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	identity, err := p.identity()
	if err != nil {
		return all, err
	}
	var readers []*kubelets
	for _, plan := range p.Kubelets {
		if len(plan.Targets) == 0 { // a list may name anyone: our credentials are not for them
			plan.Identity = identity
		}
		plan.MaxIdle = kubelet.MaxConnections() / len(p.Kubelets)
		k, err := openKubelets(plan, shares, logger)
		if err != nil {
			return all, err
		}
		readers, all = append(readers, k), append(all, k)
	}
	var host metric.NodeName
	if p.Host != nil {
		host = p.Host.Node
	}
	if e := exclude(readers, host); e != nil {
		all = append(all, e)
	}
	return all, nil
}

// identity returns who we are to kubelets; nil where a pod's service account, or
// the source's own options, say so.
func (p *plan) identity() (*transport.Config, error) {
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

func closeAll(all []opened) error {
	var errs []error
	for _, p := range all {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
