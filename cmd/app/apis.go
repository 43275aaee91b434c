package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/metadata"
	customserver "sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	customdefinitions "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/custommetrics"
	externaldefinitions "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/externalmetrics"

	"github.com/weir-metrics/weir/api/adapters"
	"github.com/weir-metrics/weir/api/autoscaling"
	"github.com/weir-metrics/weir/api/clustermetrics"
	"github.com/weir-metrics/weir/api/custommetrics"
	"github.com/weir-metrics/weir/api/eventsapi"
	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/api/externalmetrics"
	"github.com/weir-metrics/weir/api/kubeletapi"
	"github.com/weir-metrics/weir/api/model"
	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/api/resourcemetrics"
	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/api/ui"
	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/autoscaler/podmetrics"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/cluster/eventlog"
	"github.com/weir-metrics/weir/cmd/app/httpserver"
	"github.com/weir-metrics/weir/cmd/app/version"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// api is a row of the table of APIs. Flags, help, access rights, discovery and wiring come from it.
// A row has either paths with a handler, or it installs an API group of Kubernetes.
type api struct {
	// name is the name for --apis, and about is the text for its help. A row without a name is
	// always served.
	name, about string
	// open returns the handler. A nil handler means that this weir cannot serve the row. It only reads
	// what features opened: nothing that acts on the cluster is opened by a row.
	open func(*weirProcess) (http.Handler, error)
	// paths are patterns of http.ServeMux, and rights returns the rights that a request needs.
	paths  []string
	rights func(*http.Request) []rights.Right
	// rightsOn replaces rights if the rights name this machine's node.
	rightsOn func(metric.NodeName) func(*http.Request) []rights.Right
	// resources are the row's resources in the discovery of weir's own API group.
	resources func() []metav1.APIResource
	// localPaths replace paths on the local server. The index page of that server lists links.
	localPaths []string
	links      []link
	// elsewhere is the handler on the local server if open returns nil.
	elsewhere http.Handler
	// describe adds the types of a group to the secured server. install adds its handlers.
	describe func(*server.Config) error
	install  func(*weirProcess, *genericapiserver.GenericAPIServer) error
}

// link is one line on the index page of the local server.
type link struct{ path, about string }

// The rows of the APIs that serve the metrics of --external-rules.
const (
	custom   = "custom"
	external = "external"
)

// apis are the APIs that weir serves. Add an API here.
var apis = []api{{
	name: "resource", about: "metrics.k8s.io",
	describe: func(c *server.Config) error {
		scheme, err := resourcemetrics.NewScheme()
		c.Schemes, c.OpenAPI = append(c.Schemes, scheme), append(c.OpenAPI, resourcemetrics.OpenAPIDefinitions)
		return err
	},
	install: func(w *weirProcess, s *genericapiserver.GenericAPIServer) error {
		return resourcemetrics.Install(s, resourcemetrics.Options{
			Snapshot: viewAs(w, func(v apiView) resourcemetrics.UsageReader { return v }), Facts: w.Facts, Sources: w.sourceStates, Registerer: w.Registry,
		})
	},
}, {
	name: custom, about: "custom.metrics.k8s.io",
	describe: func(c *server.Config) error {
		c.Schemes, c.OpenAPI = append(c.Schemes, customserver.Scheme), append(c.OpenAPI, customdefinitions.GetOpenAPIDefinitions)
		return nil
	},
	install: func(w *weirProcess, s *genericapiserver.GenericAPIServer) error {
		return custommetrics.Install(s, w.custom)
	},
}, {
	name: external, about: "external.metrics.k8s.io",
	describe: func(c *server.Config) error { // the scheme of custom metrics has these types too
		c.Schemes, c.OpenAPI = append(c.Schemes, customserver.Scheme), append(c.OpenAPI, externaldefinitions.GetOpenAPIDefinitions)
		return nil
	},
	install: func(w *weirProcess, s *genericapiserver.GenericAPIServer) error {
		return externalmetrics.Install(s, w.external)
	},
}, {
	open: func(w *weirProcess) (http.Handler, error) {
		o := w.plan.Prometheus
		o.Facts = w.Facts
		return clustermetrics.New(viewAs(w, func(v apiView) clustermetrics.MetricsReader { return v }), o), nil
	},
	paths:  []string{"/metrics/cluster"},
	rights: func(*http.Request) []rights.Right { return rights.Everything() },
	links:  []link{{"/metrics/cluster", "what everything uses, for Prometheus"}},
}, {
	open: func(w *weirProcess) (http.Handler, error) {
		o := usage.Options{Snapshot: viewAs(w, func(v apiView) usage.SampleReader { return v }), Facts: w.Facts,
			Risks: func() map[metric.NodeName]explain.Risk { return w.explainInput().Risks() }}
		if ends := w.ends(); ends != nil {
			o.OOMKills = ends.Killed
		}
		return usage.NewHandler(o), nil
	},
	paths: usage.Paths(), rights: usage.Rights, resources: usage.APIResources,
	localPaths: []string{weirdev.Path}, // for any other path below, the answer lists the known paths
	links:      usageLinks(),
}, {
	open: func(w *weirProcess) (http.Handler, error) {
		return explainapi.NewHandler(w.explainInput), nil
	},
	paths: explainapi.Paths(), rights: explainapi.Rights, resources: explainapi.APIResources,
	links: []link{{weirdev.Path + "missing", "what has no number, and why, as JSON"}},
}, {
	open:  openDeaths,
	paths: explainapi.DeathPaths(), rights: explainapi.DeathRights, resources: explainapi.DeathResources,
	links: []link{{weirdev.Path + "deaths", "what ended in the last hour, and why, as JSON"}},
}, {
	open: func(w *weirProcess) (http.Handler, error) {
		return explainapi.NewSlowHandler(w.slowView, w.Facts), nil
	},
	paths: explainapi.SlowPaths(), rights: explainapi.SlowRights, resources: explainapi.SlowResources,
	links: []link{{weirdev.Path + "slow", "what pods waited for in the last minutes, and why, as JSON"}},
}, {
	open: func(w *weirProcess) (http.Handler, error) {
		return w.plan.features.events.Handler(), nil
	},
	paths: eventsapi.Paths(), rights: eventsapi.Rights, resources: eventsapi.APIResources,
}, {
	open:  openAutoscaling,
	paths: autoscaling.Paths(), rights: autoscaling.Rights, resources: autoscaling.APIResources,
	elsewhere: http.HandlerFunc(refuseWithoutCluster),
}, {
	open:  openResize,
	paths: resizeapi.Paths(), rights: resizeapi.Rights, resources: resizeapi.APIResources,
	links:     []link{{weirdev.Path + resizeapi.Resource, "which requests could be smaller, as JSON"}},
	elsewhere: http.HandlerFunc(refuseWithoutCluster),
}, {
	open:  openNodeAPI,
	paths: nodeapi.Paths(), rights: nodeapi.Rights, resources: nodeapi.APIResources,
}, {
	open:  openKubeletAPI,
	paths: kubeletapi.Paths(), rightsOn: kubeletapi.RightsOf,
	links: []link{
		{kubeletapi.ResourcePath, "this node's CPU and memory, as a kubelet has them there"},
		{kubeletapi.CAdvisorPath, "this node's cgroups, as a kubelet has them there"},
		{kubeletapi.SummaryPath, "this node's and its pods' use, as a kubelet has it there"},
	},
}, {
	name: "model", about: "Heapster's",
	open: func(w *weirProcess) (http.Handler, error) {
		return model.NewHandler(model.Options{
			Snapshot: viewAs(w, func(v apiView) model.ModelReader { return v }), Facts: w.Facts, Sources: w.sourceStates, Resolution: w.Resolution,
		}), nil
	},
	paths: model.Paths(), rights: model.Rights,
	links: []link{{"/api/v1/model/", "what Heapster's clients look for"}},
}, {
	open: openUI,
	// /ui is the plain path; below weirdev.Path it works through kubectl proxy. People type each
	// with and without the slash.
	paths: []string{"/ui/", "/ui", weirdev.Path + "ui/", weirdev.Path + "ui"}, rights: ui.Rights,
	links: []link{{"/ui/", "the page: what everything uses, what is missing and why"}},
}}

// servedAPI is a row that this weir serves.
type servedAPI struct {
	*api
	handler http.Handler // may be nil: see api.open
	rights  func(*http.Request) []rights.Right
}

// serves reports whether the plan includes a row.
func (p *plan) serves(row *api) bool { return row.name == "" || slices.Contains(p.APIs, row.name) }

// openAPIs opens the rows of the table that the plan includes.
func (w *weirProcess) openAPIs(context.Context, *feature.Host) error {
	for i := range apis {
		row := &apis[i]
		if !w.plan.serves(row) {
			continue
		}
		s := servedAPI{api: row, rights: row.rights}
		if row.open != nil {
			var err error
			if s.handler, err = row.open(w); err != nil {
				return err
			}
		}
		if row.rightsOn != nil && w.plan.Host != nil {
			s.rights = row.rightsOn(w.plan.Host.Node)
		}
		w.served.apis = append(w.served.apis, s)
	}
	return nil
}

// serveLocally adds the row to the local server.
func (s *servedAPI) serveLocally(mux *httpserver.Mux) {
	handler, paths := s.handler, s.paths
	if s.localPaths != nil {
		paths = s.localPaths
	}
	if handler != nil {
		for _, l := range s.links {
			mux.List(l.path, l.about)
		}
	} else if handler = s.elsewhere; handler == nil {
		return
	}
	for _, path := range paths {
		mux.Handle(path, "", handler)
	}
}

// serveSecurely adds the row to the secured server.
func (s *servedAPI) serveSecurely(w *weirProcess, to *server.Server) error {
	if s.install != nil {
		return s.install(w, to.Generic())
	}
	if s.handler != nil {
		for _, path := range s.paths {
			to.Handle(path, s.rights, s.handler)
		}
	}
	return nil
}

// ownGroup is weir's own API group for discovery. The verbs are those that RBAC uses.
func ownGroup() server.AnnouncedGroup {
	g := server.AnnouncedGroup{GroupVersion: schema.GroupVersion{Group: weirdev.Group, Version: weirdev.Version}}
	for i := range apis {
		if apis[i].resources != nil {
			g.Resources = append(g.Resources, apis[i].resources()...)
		}
	}
	return g
}

func usageLinks() (links []link) {
	for _, r := range usage.Resources() {
		links = append(links, link{weirdev.Path + string(r), "what " + string(r) + " use, as JSON"})
	}
	return links
}

// refuseWithoutCluster answers requests that only the weir of a whole cluster can answer.
func refuseWithoutCluster(w http.ResponseWriter, _ *http.Request) {
	weirdev.Fail(w, &weirdev.Problem{Status: http.StatusNotFound, Message: "this weir does not watch a whole cluster, so it knows no autoscalers and no workloads' requests",
		Hint: "Ask the weir of a cluster: with `kubectl weir`, or with --server=URL."})
}

// openDerivedMetrics opens what answers for custom and external metrics. Decisions about autoscalers
// use it without the secured server, too, which serves these metrics.
func (w *weirProcess) openDerivedMetrics(_ context.Context, h *feature.Host) (err error) {
	c := custommetrics.Options{
		View: viewAs(w, func(v apiView) custommetrics.SampleReader { return v }), Facts: h.Facts, Sources: w.sourceStates,
	}
	o := podmetrics.Options{
		View: viewAs(w, func(v apiView) podmetrics.UsageReader { return v }), Facts: h.Facts, Explainer: w.explainInput,
		MaxAge: max(time.Minute, 3*h.Resolution), HistoryLength: w.plan.Memory.History,
	}
	if w.plan.ExternalRules != "" {
		settings := externalmetrics.Options{File: w.plan.ExternalRules, MayName: w.plan.ExternalFiles, Logger: h.Log, Registerer: h.Registry}
		settings.Memory.Length, settings.Memory.Metrics = w.plan.Memory.Remembered()
		rules, err := externalmetrics.New(settings)
		if err != nil {
			return fmt.Errorf("read the rules of metrics: %w", err)
		}
		c.Rules, w.external = rules, rules
		if c.Objects, err = w.clusterObjects(); err != nil {
			return err
		}
		h.Add(feature.Part{Name: "metrics by rules", Run: rules.Run, Close: func() error { rules.Close(); return nil }})
	}
	w.custom = custommetrics.New(c)
	if len(w.plan.Adapters) > 0 {
		router := adapters.New(adapters.Options{Adapters: w.plan.Adapters, Custom: w.custom, External: w.external, Logger: h.Log, Registerer: h.Registry})
		w.custom, w.external = router, router
		h.Add(feature.Part{Name: "adapters", Run: router.Run, Close: func() error { router.Close(); return nil }})
	}
	o.Custom = w.custom
	if w.external != nil {
		o.External = w.external
	}
	w.plan.features.autoscaler.Metrics = podmetrics.New(o)
	return nil
}

// clusterObjects returns what lists objects of the cluster, or nil without a whole cluster.
func (w *weirProcess) clusterObjects() (*custommetrics.ClusterObjects, error) {
	if !w.HasWholeCluster() {
		return nil, nil
	}
	config, err := w.Cluster.RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create metadata client: %w", err)
	}
	return &custommetrics.ClusterObjects{Client: client, Resource: w.plan.features.autoscalerClients.Scales.Resource}, nil
}

// openAutoscaling returns the handler that explains and evaluates autoscalers. Without a whole cluster
// there is none.
func openAutoscaling(w *weirProcess) (http.Handler, error) {
	f := w.plan.features
	if !f.autoscaler.IsOpen() {
		return nil, nil
	}
	o := autoscaling.Options{Evaluator: f.autoscaler.Evaluator(), WorkloadID: f.autoscalerClients.Scales.WorkloadID, Read: f.autoscalerClients.Read}
	if running := f.autoscaler.Running(); running != nil {
		o.Explain, o.Memory = running.Explain, running.Memory
	}
	return autoscaling.NewHandler(o), nil
}

// openResize returns the handler that recommends requests. Without a whole cluster there is none.
func openResize(w *weirProcess) (http.Handler, error) {
	if !w.HasWholeCluster() {
		return nil, nil
	}
	client, err := w.Cluster.Client()
	if err != nil {
		return nil, err
	}
	return resizeapi.NewHandler(resizeapi.Options{
		Usage: viewAs(w, func(v apiView) resizeapi.UsageReader { return v }), Facts: w.Facts, Now: w.Now,
		Pod: func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
			return client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	}), nil
}

// openDeaths returns the handler of why something ended.
func openDeaths(w *weirProcess) (http.Handler, error) {
	var ends death.EndReader
	if all := w.ends(); all != nil { // a nil pointer in an interface would not be nil
		ends = all
	}
	return explainapi.NewDeathHandler(ends, w.eventReader(), w.refreshKills), nil
}

// ends returns the memory of what ended, or nil without a cluster.
func (w *weirProcess) ends() *endlog.Log {
	if w.Cluster == nil {
		return nil
	}
	return w.Cluster.Options.Ends
}

// eventReader returns the memory of Events, or nil if they are not kept.
func (w *weirProcess) eventReader() death.EventReader {
	if watcher := w.plan.features.events.Watcher(); watcher != nil {
		return watcher
	}
	return nil
}

// deaths reports what ended. Without a cluster it must not be called.
func (w *weirProcess) deaths(q death.Query) death.Report {
	return death.NewReport(q, w.ends(), w.eventReader(), time.Now())
}

// deathsOf reports what ended in a pod in a sentence; empty if nothing did.
func (w *weirProcess) deathsOf(pod metric.PodRef) string {
	r := w.deaths(death.Query{Namespace: pod.Namespace, Pod: pod.Name})
	return r.Recent()
}

// refreshKills asks the agent of a pod's node what the kernel killed.
func (w *weirProcess) refreshKills(ctx context.Context, pod metric.PodRef) {
	kills := w.plan.features.agents.Kills()
	if kills == nil {
		return
	}
	nodes := map[metric.NodeName]bool{}
	if p := w.Facts().Pod(pod); p != nil {
		nodes[p.Node] = true
	}
	for _, e := range w.ends().In(pod.Namespace) {
		if e.Pod.Name == pod.Name && e.Kill == nil && e.Run.Reason == "OOMKilled" && len(nodes) < 2 {
			nodes[e.Pod.Node] = true // it may be gone, or on another node now
		}
	}
	for node := range nodes {
		kills.Refresh(ctx, node)
	}
}

// openUI returns the handler of the page.
func openUI(w *weirProcess) (http.Handler, error) {
	o := ui.Options{
		Explainer: w.explainInput, Version: version.Get().Version, Eviction: w.evictionReports(),
		Points: w.points, Slow: w.slow,
		Sinks: func() (all []ui.SinkState) {
			for _, s := range w.pipeline.Sinks() {
				all = append(all, ui.SinkState{Name: s.Name, LastSuccess: s.Succeeded, Took: s.Took, Err: s.Err, Queued: s.Queued, Dropped: s.Dropped})
			}
			return all
		},
	}
	if o.History = w.plan.Memory.History; w.past != nil {
		o.History = 7 * 24 * time.Hour // what a Prometheus has; the page says where nothing is
	}
	if w.ends() != nil {
		o.Deaths = w.deaths
	}
	f := w.plan.features
	if events := f.events.Watcher(); events != nil {
		o.Events, o.EventsUnread = func(on eventlog.Object) []eventlog.Event { return events.Of(on, time.Now()) }, events.Unread
	}
	if running := f.autoscaler.Running(); running != nil {
		o.Autoscaler, o.Autoscalers, o.AutoscalersUnread = running.Explain, running.Summaries, f.autoscalerClients.Unread
	}
	return weirdev.Gzip(ui.New(o)), nil
}

// apiFlags choose which APIs are served.
type apiFlags struct {
	named        []string // nil unless --apis is given
	rules        string
	files        []string // that the rules may name
	adapters     string
	adapterFiles []string // that the file of adapters may name
}

func (a *apiFlags) addFlags(f *pflag.FlagSet) {
	var about []string
	for i := range apis {
		if apis[i].name != "" {
			about = append(about, apis[i].name+" ("+apis[i].about+")")
		}
	}
	f.Func("apis", "`NAMES` of the APIs to serve, separated by commas: "+humanize.List(about, 0)+
		"; empty for none (default resource,custom,model, and external with --external-rules or --adapters)", a.setNamed)
	f.StringVar(&a.rules, "external-rules", "", "`FILE` that defines custom and external metrics by PromQL, and how to ask Prometheus for them")
	f.StringSliceVar(&a.files, "external-rules-file", nil, "`FILE` outside the folder of --external-rules that the rules may name, as a bearer token, password or CA; repeatable")
	f.StringVar(&a.adapters, "adapters", "", "`FILE` that lists other adapters of custom and external metrics, whose answers weir passes on")
	f.StringSliceVar(&a.adapterFiles, "adapters-file", nil, "`FILE` outside the folder of --adapters that it may name, as a bearer token or CA; repeatable")
}

// setNamed adds the APIs of one --apis flag.
func (a *apiFlags) setNamed(text string) error {
	a.named = append(a.named, "") // the flag was given, possibly without a name
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if err := cli.OneOf("an API", name, apiNames()...); err != nil {
			return err
		}
		a.named = append(a.named, name)
	}
	return nil
}

// compile returns the names of the APIs to serve.
func (a *apiFlags) compile() ([]string, error) {
	var chosen []string
	for _, name := range apiNames() {
		if slices.Contains(a.named, name) || a.named == nil && (name != external || a.rules != "" || a.adapters != "") {
			chosen = append(chosen, name)
		}
	}
	served := slices.Contains(chosen, external)
	switch {
	case served && a.rules == "" && a.adapters == "":
		return nil, cli.Usage(errors.New("--apis names external, and nothing defines its metrics: give --external-rules=FILE or --adapters=FILE too"))
	case !served && a.rules+a.adapters != "" && !slices.Contains(chosen, custom):
		return nil, cli.Usage(errors.New("--external-rules and --adapters are for the APIs custom and external, which --apis leaves out: add one or drop the flag"))
	}
	return chosen, nil
}

// apiNames returns the names that --apis accepts.
func apiNames() (names []string) {
	for i := range apis {
		if apis[i].name != "" {
			names = append(names, apis[i].name)
		}
	}
	return names
}
