package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/api/externalmetrics"
	"github.com/weir-metrics/weir/api/kubeletapi"
	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/app/httpserver"
	"github.com/weir-metrics/weir/app/version"
	"github.com/weir-metrics/weir/autoscaler/controller"
	"github.com/weir-metrics/weir/autoscaler/hpaevents"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/history/promclient"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/sinks/recorder"
	"github.com/weir-metrics/weir/sinks/remotewrite"
	"github.com/weir-metrics/weir/sources/host/inspect"
	"github.com/weir-metrics/weir/sources/player"
	"github.com/weir-metrics/weir/sources/shared"
)

// grace is how long everything may take to end after a signal. Kubernetes allows
// 30 seconds before it kills.
const grace = 10 * time.Second

// daemon is one running weir: a plan with everything it needs opened.
type daemon struct {
	log       *zap.Logger
	listener  net.Listener    // nil where only those who may are answered
	mux       *httpserver.Mux // nil with it
	door      *door           // nil without a secured server
	manager   *manager.Manager
	announcer *hpaevents.Announcer   // nil unless autoscalers are to be told
	scaler    *controller.Controller // nil unless autoscalers are decided about
	sources   []opened
	cluster   *informer.Cluster  // nil without one
	played    *player.Player     // nil unless a recording is read
	recorder  *recorder.Sink     // nil unless the run is recorded
	inspector *inspect.Inspector // nil unless this machine's cgroups can be read
	machine   *machine           // nil unless this machine is read when one asks
	evictor   *evictor           // nil unless this machine is guarded
	shares    *shared.Exchange   // nil unless replicas share the reading
	sender    *remotewrite.Sink  // nil unless results are sent somewhere
}

// open makes everything a plan asks for. What can be wrong with it is found out
// here, before anything runs. The log sink writes to out.
func open(ctx context.Context, p *plan, out io.Writer, log *zap.Logger) (_ *daemon, err error) {
	d := &daemon{log: log}
	defer func() {
		if err != nil {
			if d.listener != nil {
				_ = d.listener.Close() // nothing was accepted yet
			}
			err = errors.Join(err, closeAll(d.sources))
		}
	}()
	options := manager.Options{
		MaxReads: p.MaxReads, Shutdown: grace, Logger: log, Pipeline: pipeline,
	}
	if p.Cluster != nil {
		o := *p.Cluster
		o.Logger = log
		if d.cluster, err = informer.New(o); err != nil {
			return nil, noCluster(err)
		}
		options.Facts, options.FactsChanged = d.cluster.Facts, d.cluster.Changed()
	} else {
		options.Facts = func() *cluster.Facts { return nil }
	}

	// Listening comes before sources are opened: it is what goes wrong most.
	if p.Listen != "" {
		if d.listener, err = httpserver.Listen(ctx, p.Listen, p.Open); err != nil {
			return nil, err
		}
	}
	registry := prometheus.NewRegistry()
	if p.SharedReads {
		d.shares = shared.New(shared.Options{Logger: log, Registerer: registry})
	}
	if d.sources, err = openSources(p, d.shares, log); err != nil {
		return nil, err
	}
	if d.shares != nil {
		d.sources = append(d.sources, held{d.shares})
	}
	for _, s := range d.sources {
		options.Providers = append(options.Providers, s)
	}
	s := openSinks(p, out)
	options.Sinks = s.named
	if err := d.openRecordings(p, &options); err != nil {
		return nil, err
	}

	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(version.Get()),
	)
	if p.Host != nil {
		if d.inspector, err = inspect.New(inspect.Options{}); err != nil {
			log.Warn("pod cgroups are not inspected", zap.Error(err))
		} else {
			registry.MustRegister(newLeftovers(d.inspector, p.Host.Node, d.facts))
		}
	}
	newest := kubeletapi.NewNewest("host")
	if p.Host != nil && p.Agents == nil {
		options.Sinks = append(options.Sinks, manager.NamedSink{Name: "kubelet", Sink: newest})
	}
	options.Registerer = registry
	if p.History != nil {
		var client *promclient.Client
		if s.past, client, err = openPast(*p.History, registry, log); err != nil {
			return nil, err
		}
		d.sources = append(d.sources, held{closer(client.Close)})
	}
	if p.RemoteWrite != nil {
		if d.sender, err = openSender(p, s, registry, d.leads, log); err != nil {
			return nil, err
		}
		options.Sinks = append(options.Sinks, manager.NamedSink{Name: "remotewrite", Sink: d.sender})
	}
	d.manager = manager.New(options)
	f := newFront(p, s, registry, d.manager, d.facts)
	f.now = d.now
	if p.HPAEvents {
		if err := d.openAnnouncer(p, f); err != nil {
			return nil, err
		}
	}
	// A mistake in the rules is found before anybody is asked anything.
	if p.Secure != nil && p.APIs.External {
		if f.external, err = externalmetrics.New(externalmetrics.Options{File: p.ExternalRules, Logger: log, Registerer: registry}); err != nil {
			return nil, fmt.Errorf("read the rules of external metrics: %w", err)
		}
		defer func() {
			if err != nil {
				f.external.Close()
			}
		}()
	}
	if p.Cluster != nil && p.Cluster.Node == "" { // who knows one node cannot speak of workloads
		a, err := openAutoscalers(p, f, d.leads, d.scales(), log)
		if err != nil {
			return nil, err
		}
		d.scaler, f.scaler, f.autoscaling = a.controller, a.controller, a.answers
		if f.resize, err = newRecommendations(p, f); err != nil {
			return nil, err
		}
	}
	switch {
	case p.Agents != nil:
		var agents *nodeapi.Proxy
		if agents, err = newAgents(p, d.facts); err == nil {
			f.node, f.eviction = agents, askAgents(agents)
		}
	case p.Host != nil:
		err = d.openNode(ctx, p, f, newest)
	}
	if err != nil {
		return nil, err
	}
	f.ui = newUI(f, d.manager.Sinks)
	if d.listener != nil {
		d.mux = f.local(p)
	}
	if p.Secure != nil {
		if d.door, err = openDoor(ctx, p, f, d.shares, log); err != nil {
			return nil, err
		}
		if d.scaler != nil {
			d.door.acts = d.scaler.Run
		}
	}
	return d, nil
}

// openAnnouncer makes what tells autoscalers why their pods have no metrics.
func (d *daemon) openAnnouncer(p *plan, f *front) error {
	kube, err := informer.RESTConfig(*p.Cluster)
	if err != nil {
		return noCluster(err)
	}
	o := hpaevents.Options{World: f.world, Registerer: f.registry, Logger: d.log, Leads: d.leads}
	if p.Lease != nil {
		o.Instance = p.Lease.identity
	}
	if d.announcer, err = hpaevents.NewForConfig(kube, o); err != nil {
		return fmt.Errorf("watch autoscalers: %w", err)
	}
	f.autoscalers = d.announcer.Autoscalers
	return nil
}

// leads reports whether this replica is the one that speaks and acts for all.
func (d *daemon) leads() bool { return d.door == nil || d.door.leads() }

// facts returns what there is to know of the cluster; nil only without one. What
// serves must not take an API server that is silent for none.
func (d *daemon) facts() *cluster.Facts {
	if d.played != nil {
		return d.played.Facts()
	}
	if d.cluster == nil {
		return nil
	}
	if facts := d.cluster.Facts(); facts != nil {
		return facts
	}
	return new(cluster.Facts)
}

func buildInfo(v version.Info) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_build_info", Help: "Which weir this is. Always 1.",
		ConstLabels: prometheus.Labels{"version": v.Version, "commit": v.Commit, "go": v.Go},
	})
	g.Set(1)
	return g
}

// run works until ctx ends or a part fails, and returns when every part has
// ended. What serves ends first: until it has, there must be something to serve.
func (d *daemon) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	behind, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	type end struct {
		part   string
		serves bool
		err    error
	}
	ends := make(chan end)
	parts, serving := 0, 0
	start := func(part string, run func(context.Context) error) {
		parts++
		go func() { ends <- end{part, false, run(behind)} }()
	}
	front := func(part string, run func(context.Context) error) {
		parts++
		serving++
		go func() { ends <- end{part, true, run(ctx)} }()
	}
	if d.cluster != nil {
		start("follow the cluster", d.cluster.Run)
	}
	start("run the pipeline", d.manager.Run)
	if d.sender != nil {
		start("send to the receiver", d.sender.Run)
	}
	if d.announcer != nil {
		start("tell autoscalers", d.announcer.Run)
	}
	if d.scaler != nil && d.door == nil { // who has a door acts behind it
		start("decide about autoscalers", d.scaler.Run)
	}
	if d.machine != nil {
		start("look at pods' disks", d.machine.scan)
	}
	if d.evictor != nil {
		start("guard this machine", d.evictor.run)
	}
	if d.listener != nil {
		front("serve", func(ctx context.Context) error {
			return httpserver.Serve(ctx, d.listener, d.mux, httpserver.Options{Grace: grace / 2, Logger: d.log})
		})
	}
	if d.door != nil {
		front("serve the cluster", d.door.run)
	}
	if serving == 0 {
		context.AfterFunc(ctx, stop) // there is no front to wait for
	}
	d.log.Info("serving", zap.Strings("addresses", d.addresses()))

	var first error
	for range parts {
		e := <-ends
		if e.err != nil && first == nil {
			first = fmt.Errorf("%s: %w", e.part, e.err)
		}
		if ctx.Err() == nil {
			cancel() // one part alone is of no use
			if first == nil {
				first = fmt.Errorf("%s: ended unasked", e.part)
			}
		}
		if e.serves {
			if serving--; serving == 0 {
				stop()
			}
		}
	}
	if err := closeAll(d.sources); err != nil && first == nil {
		first = fmt.Errorf("close sources: %w", err)
	}
	d.log.Info("ended")
	return first
}

// addresses returns where d serves, as URLs that work on this machine.
func (d *daemon) addresses() (all []string) {
	if d.listener != nil {
		all = append(all, "http://"+reachable(d.listener.Addr().String()))
	}
	if d.door != nil {
		all = append(all, "https://"+reachable(d.door.server.Address()))
	}
	return all
}

// reachable returns the address by which this machine reaches one that is
// listened on, which may be every address there is.
func reachable(address string) string {
	a, err := netip.ParseAddrPort(address)
	if err != nil || !a.Addr().IsUnspecified() {
		return address
	}
	return fmt.Sprintf("127.0.0.1:%d", a.Port())
}
