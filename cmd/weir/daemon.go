package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/serve"
	"github.com/weir-metrics/weir/internal/version"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
)

// grace is how long everything may take to end after a signal. Kubernetes allows
// 30 seconds before it kills.
const grace = 10 * time.Second

// daemon is one running weir: a plan with everything it needs opened.
type daemon struct {
	log      *zap.Logger
	listener net.Listener
	mux      *serve.Mux
	manager  *manager.Manager
	sources  []provider
	cluster  *cluster.Cluster // nil without one
}

// open makes everything a plan asks for. What can be wrong with it is found out
// here, before anything runs. The log sink writes to out.
func open(ctx context.Context, p *plan, out io.Writer, log *zap.Logger) (d *daemon, err error) {
	d = &daemon{log: log}
	options := manager.Options{
		MaxReads: p.MaxReads, Shutdown: grace, Logger: log, Pipeline: pipeline,
	}
	if p.Cluster != nil {
		o := *p.Cluster
		o.Logger = log
		if d.cluster, err = cluster.New(o); err != nil {
			return nil, noCluster(err)
		}
		options.Facts, options.FactsChanged = d.cluster.Facts, d.cluster.Changed()
	} else {
		options.Facts = func() *metric.Facts { return nil }
	}

	// Listening comes before sources are opened: it is what goes wrong most, and
	// there is nothing to undo yet.
	listener, err := serve.Listen(ctx, p.Listen, p.Open)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			listener.Close()
		}
	}()
	d.listener = listener
	if d.sources, err = openSources(p, log); err != nil {
		return nil, err
	}
	for _, s := range d.sources {
		options.Providers = append(options.Providers, s)
	}
	s := openSinks(p, out)
	options.Sinks = s.named

	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(version.Get()),
	)
	options.Registerer = registry
	d.manager = manager.New(options)
	d.mux = endpoints(p, s, registry, d.manager, options.Facts)
	return d, nil
}

func buildInfo(v version.Info) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_build_info", Help: "Which weir this is. Always 1.",
		ConstLabels: prometheus.Labels{"version": v.Version, "commit": v.Commit, "go": v.Go},
	})
	g.Set(1)
	return g
}

// run works until ctx ends or a part fails, and returns when every part has ended.
func (d *daemon) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type end struct {
		part string
		err  error
	}
	ends := make(chan end)
	parts := 0
	start := func(part string, run func(context.Context) error) {
		parts++
		go func() { ends <- end{part, run(ctx)} }()
	}
	if d.cluster != nil {
		start("follow the cluster", d.cluster.Run)
	}
	start("run the pipeline", d.manager.Run)
	start("serve", func(ctx context.Context) error {
		return serve.Serve(ctx, d.listener, d.mux, serve.Options{Grace: grace / 2, Logger: d.log})
	})
	d.log.Info("serving", zap.String("address", d.address()))

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
	}
	if err := closeAll(d.sources); err != nil && first == nil {
		first = fmt.Errorf("close sources: %w", err)
	}
	d.log.Info("ended")
	return first
}

// address returns where d serves, as a URL that works on this machine.
func (d *daemon) address() string {
	addr := d.listener.Addr().(*net.TCPAddr)
	if addr.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d", addr.Port)
	}
	return "http://" + addr.String()
}
