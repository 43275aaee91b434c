package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/uuid"
	kubeversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/common"
	customserver "sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	customdefinitions "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/custommetrics"
	externaldefinitions "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/externalmetrics"

	"github.com/weir-metrics/weir/api/autoscaling"
	"github.com/weir-metrics/weir/api/custommetrics"
	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/api/externalmetrics"
	"github.com/weir-metrics/weir/api/model"
	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/api/resourcemetrics"
	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/app/logging"
	"github.com/weir-metrics/weir/app/version"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/replicas/forward"
	"github.com/weir-metrics/weir/replicas/leader"
	"github.com/weir-metrics/weir/replicas/members"
	"github.com/weir-metrics/weir/replicas/peer"
	"github.com/weir-metrics/weir/sources/shared"
)

// door is the secured server with what it needs beside itself.
type door struct {
	server     *server.Server
	elector    *leader.Elector           // nil where this weir is alone
	roll       *members.Roll             // nil unless replicas share the reading
	transports *peer.Transports          // nil with it
	external   *externalmetrics.Provider // nil unless served
	// acts is what only the leader does, if anything; set before run.
	acts func(context.Context) error
}

// openDoor opens the secured server of a plan and puts everything on it that the
// plan serves.
func openDoor(ctx context.Context, p *plan, f *front, shares *shared.Exchange, log *zap.Logger) (_ *door, err error) {
	d := &door{external: f.external}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	v := version.Get()
	c := server.Config{
		Kubeconfig: p.Cluster.Kubeconfig,
		Version:    kubeversion.Info{GitVersion: v.Version, GitCommit: v.Commit, GoVersion: v.Go, Platform: v.System},
		Ready:      []server.Check{{Name: f.pipeline.Name, Waits: f.pipeline.Waits}},
		Metrics:    f.registry,
		Logger:     logging.Logr(log).WithName("server"),
	}
	if err := describe(&c, p.APIs); err != nil {
		return nil, err
	}
	if p.Lease != nil {
		kube, err := informer.RESTConfig(*p.Cluster)
		if err != nil {
			return nil, fmt.Errorf("configure API client: %w", err)
		}
		if err := d.join(*p.Lease, kube, f, shares, &c); err != nil {
			return nil, fmt.Errorf("join the replicas: %w", err)
		}
	}
	log.Info("asking the cluster how readers are known")
	if d.server, err = makeServer(ctx, p.Secure, c); err != nil {
		return nil, fmt.Errorf("open the secured server: %w", err)
	}
	if err := d.install(p, f); err != nil {
		return nil, err
	}
	if err := d.server.Announce(ownGroup()); err != nil {
		return nil, err
	}
	d.handle(p, f)
	if shares != nil {
		d.server.Stream(sharedPath, shares)
	}
	return d, nil
}

// makeServer is server.New for as long as ctx has not ended: an API server that
// hangs would hold that up for ever.
func makeServer(ctx context.Context, o *server.Options, c server.Config) (*server.Server, error) {
	type made struct {
		server *server.Server
		err    error
	}
	done := make(chan made)
	go func() {
		s, err := server.New(o, c)
		select {
		case done <- made{s, err}:
		case <-ctx.Done():
			if err == nil {
				_ = s.Close() // nobody waits any more
			}
		}
	}()
	select {
	case m := <-done:
		return m.server, m.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// close closes what was opened of a door that is never run.
func (d *door) close() error {
	if d.server != nil {
		return d.server.Close()
	}
	return nil
}

// describe gives the server the types of the APIs that are served.
func describe(c *server.Config, a apis) error {
	if a.Resource {
		scheme, err := resourcemetrics.NewScheme()
		if err != nil {
			return err
		}
		c.Schemes = append(c.Schemes, scheme)
		c.OpenAPI = append(c.OpenAPI, resourcemetrics.OpenAPIDefinitions)
	}
	for _, d := range []struct {
		served      bool
		definitions common.GetOpenAPIDefinitions
	}{
		{a.Custom, customdefinitions.GetOpenAPIDefinitions},
		{a.External, externaldefinitions.GetOpenAPIDefinitions},
	} {
		if d.served {
			c.OpenAPI = append(c.OpenAPI, d.definitions)
			c.Schemes = append(c.Schemes, customserver.Scheme) // knows both
		}
	}
	return nil
}

// join has the replicas elect the one whose numbers all of them answer with.
func (d *door) join(l lease, kube *rest.Config, f *front, shares *shared.Exchange, c *server.Config) error {
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return err
	}
	certificate, err := peer.NewCertificate()
	if err != nil {
		return err
	}
	// A pod that restarts in place is another process.
	self := members.Member{Identity: l.identity + "_" + string(uuid.NewUUID()), Address: l.address, Certificate: string(certificate.PEM())}
	d.elector, err = leader.New(leader.Options{
		Client: client.CoordinationV1(), Namespace: l.namespace, Name: l.name,
		Identity: self.Identity, Address: self.Address, Certificate: certificate.PEM(),
		Ready:  func() bool { return len(f.pipeline.Waits()) == 0 },
		Logger: c.Logger.WithName("leader"),
	})
	if err != nil {
		return err
	}
	if shares != nil {
		d.roll, err = members.New(members.Options{
			Client: client.CoordinationV1(), Namespace: l.namespace, Name: l.name, Replica: l.identity, Self: self,
			Changed: introduce(kube, shares, self.Identity), Logger: c.Logger.WithName("members"),
		})
		if err != nil {
			return err
		}
	}
	d.transports = peer.NewTransports(kube)
	c.Peer = certificate
	c.Data = forward.New(forward.Options{Leader: d.transports.Route(d.elector.Leader), Logger: c.Logger.WithName("forward")})
	return nil
}

// leads reports whether this replica is the one that speaks and acts for all.
func (d *door) leads() bool { return d.elector == nil || d.elector.Reigns() }

// install puts Kubernetes' own APIs on the server.
func (d *door) install(p *plan, f *front) error {
	generic := d.server.Generic()
	if p.APIs.Resource {
		err := resourcemetrics.Install(generic, resourcemetrics.Options{
			View:  read(f.sinks, func(v view) resourcemetrics.View { return v }),
			Facts: f.facts, Sources: f.sources, Registerer: f.registry,
		})
		if err != nil {
			return err
		}
	}
	if p.APIs.Custom {
		if err := custommetrics.Install(generic, f.custom); err != nil {
			return err
		}
	}
	if p.APIs.External {
		return externalmetrics.Install(generic, d.external)
	}
	return nil
}

// handle puts weir's further paths on the server, each with the rights that the
// APIs above ask for the same numbers.
func (d *door) handle(p *plan, f *front) {
	d.server.Handle("/metrics/cluster", func(*http.Request) []server.Review { return everything() }, f.sinks.prometheus)
	for _, path := range uiPaths {
		d.server.Handle(path, uiNeeds, f.ui)
	}
	for _, path := range usage.Paths() {
		d.server.Handle(path, usageNeeds, f.usage)
	}
	for _, path := range explainapi.Paths() {
		d.server.Handle(path, explainNeeds, f.explain)
	}
	if f.autoscaling != nil {
		for _, path := range autoscaling.Paths() {
			d.server.Handle(path, autoscalingNeeds, f.autoscaling)
		}
	}
	if f.resize != nil {
		for _, path := range resizeapi.Paths() {
			d.server.Handle(path, resizeNeeds, f.resize)
		}
	}
	if f.node != nil {
		for _, path := range nodeapi.Paths() {
			d.server.Handle(path, nodeNeeds, f.node)
		}
	}
	if f.standIn != nil {
		f.standIn.handle(d.server)
	}
	if p.APIs.Model {
		for _, path := range model.Paths() {
			d.server.Handle(path, modelNeeds, f.model)
		}
	}
}

// run serves, and acts where this replica leads, until ctx ends. The other replicas
// hand requests on to this one until it has ended, and one of them acts once this one
// does no longer, so the election ends last.
func (d *door) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	if d.elector != nil {
		parts.Go(func() { _ = d.elector.Run(beside) }) // what goes wrong it logs
	}
	if d.roll != nil {
		// It leaves at once: the others read its nodes while it answers what is under way.
		parts.Go(func() { _ = d.roll.Run(ctx) }) // what goes wrong it logs
	}
	var watching error
	if d.external != nil {
		parts.Go(func() { watching = d.external.Run(beside) })
	}
	var acting sync.WaitGroup
	var failed error
	if d.acts != nil {
		acting.Go(func() {
			failed = d.acts(ctx)
			cancel()
		})
	}
	err := d.server.Run(ctx)
	cancel()
	acting.Wait()
	stop()
	parts.Wait()
	if d.transports != nil {
		d.transports.Close()
	}
	return cmp.Or(err, failed, watching)
}

// lease is where the replicas of a weir agree on who answers.
type lease struct{ namespace, name, identity, address string }

// podLease returns the Lease of the replicas of this pod, and nil if the
// environment does not say which pod this is.
func podLease(name string, port int, getenv func(string) string) *lease {
	l := &lease{namespace: getenv("POD_NAMESPACE"), name: name, identity: getenv("POD_NAME"), address: getenv("POD_IP")}
	if name == "" || l.namespace == "" || l.identity == "" || l.address == "" {
		return nil
	}
	l.address = net.JoinHostPort(l.address, fmt.Sprint(port))
	return l
}
