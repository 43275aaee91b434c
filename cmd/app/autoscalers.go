package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/api/autoscaling"
	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/controller"
	"github.com/weir-metrics/weir/autoscaler/evaluate"
	"github.com/weir-metrics/weir/autoscaler/manifest"
	"github.com/weir-metrics/weir/autoscaler/podmetrics"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
	"github.com/weir-metrics/weir/autoscaler/watcher"
	"github.com/weir-metrics/weir/cluster/gates"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/cmd/client/cli"
)

// autoscalerPlan says which autoscalers to decide about, with which settings. Evaluations use the
// settings even if weir does not act.
type autoscalerPlan struct {
	Act      bool // on objects of kind Autoscaler
	Shadow   bool // decide about HorizontalPodAutoscalers without acting
	Period   time.Duration
	Workers  int
	Settings autoscaler.Settings // without feature gates
	// ScaleToZero overrides the feature gate HPAScaleToZero, unless it is nil.
	ScaleToZero *bool
}

// featureGates returns the feature gates of a cluster of this release. known are those that the API
// server reports.
func (p *autoscalerPlan) featureGates(release string, known map[string]bool) gates.Gates {
	if p.ScaleToZero != nil {
		known = maps.Clone(known)
		if known == nil {
			known = map[string]bool{}
		}
		known[string(gates.ScaleToZero)] = *p.ScaleToZero
	}
	return gates.New(release, known, false)
}

// settings returns the settings of decisions with these feature gates.
func (p *autoscalerPlan) settings(g gates.Gates) autoscaler.Settings {
	s := p.Settings
	s.ConfigurableTolerance, s.ScaleToZero, s.PodLevelResources = g.On(gates.ConfigurableTolerance), g.On(gates.ScaleToZero), g.On(gates.PodLevelResources)
	return s
}

// runs reports whether the plan needs a controller.
func (p *autoscalerPlan) runs() bool { return p.Act || p.Shadow }

// autoscalerFlags are the flags about autoscalers. A flag that kube-controller-manager has too is
// called --horizontal-pod-autoscaler-... there, and has the same default.
type autoscalerFlags struct {
	autoscalerPlan
	toZero *pflag.Flag
}

func newAutoscalerFlags() *autoscalerFlags {
	return &autoscalerFlags{autoscalerPlan: autoscalerPlan{Period: 15 * time.Second, Workers: 5, Settings: autoscaler.DefaultSettings()}}
}

func (a *autoscalerFlags) addFlags(f *pflag.FlagSet) {
	s := &a.Settings
	f.BoolVar(&a.Act, "autoscalers", false, "act on Autoscalers (autoscaling.weir.dev), as Kubernetes' own controller does on HorizontalPodAutoscalers")
	f.BoolVar(&a.Shadow, "shadow-hpa", false, "decide about HorizontalPodAutoscalers as Kubernetes' own controller does, change nothing, and report where the two differ and why")
	f.DurationVar(&a.Period, "autoscaler-sync-period", a.Period, "time between two decisions about one autoscaler")
	f.IntVar(&a.Workers, "autoscaler-workers", a.Workers, "how many autoscalers are decided about at once")
	f.Float64Var(&s.Tolerance, "autoscaler-tolerance", s.Tolerance, "how far from 1 the ratio of use to target may be without a change, unless an autoscaler says otherwise")
	f.DurationVar(&s.DownscaleStabilization, "autoscaler-downscale-stabilization", s.DownscaleStabilization, "how long to wait before scaling down: the highest recommendation of this time counts, unless an autoscaler says otherwise")
	f.DurationVar(&s.CPUInitialization, "autoscaler-cpu-initialization-period", s.CPUInitialization, "for this long after its start, a pod's CPU counts only after the pod was ready for a whole window of the metric")
	f.DurationVar(&s.InitialReadinessDelay, "autoscaler-initial-readiness-delay", s.InitialReadinessDelay, "for this long after its start, a pod that is not ready counts as never ready")
	f.Bool("autoscaler-scale-to-zero", false, "allow minReplicas of 0 (default: as the cluster's feature gate HPAScaleToZero does, which is on since Kubernetes 1.37)")
	a.toZero = f.Lookup("autoscaler-scale-to-zero")
}

// compile returns the plan. cluster says whether there is a cluster.
func (a *autoscalerFlags) compile(cluster bool) (autoscalerPlan, error) {
	for _, d := range []struct {
		flag  string
		value time.Duration
		least time.Duration
	}{
		{"sync-period", a.Period, time.Second},
		{"downscale-stabilization", a.Settings.DownscaleStabilization, 0},
		{"cpu-initialization-period", a.Settings.CPUInitialization, 0},
		{"initial-readiness-delay", a.Settings.InitialReadinessDelay, 0},
	} {
		if d.value < d.least {
			return a.autoscalerPlan, cli.Usage(fmt.Errorf("--autoscaler-%s cannot be %v: at least %v", d.flag, d.value, d.least))
		}
	}
	if a.Workers < 1 {
		return a.autoscalerPlan, cli.Usage(fmt.Errorf("--autoscaler-workers cannot be %d: at least 1", a.Workers))
	}
	if !(a.Settings.Tolerance >= 0 && a.Settings.Tolerance < 1) { // false for NaN too
		return a.autoscalerPlan, cli.Usage(fmt.Errorf("--autoscaler-tolerance cannot be %v: from 0 to less than 1", a.Settings.Tolerance))
	}
	if a.toZero != nil && a.toZero.Changed {
		a.ScaleToZero = new(a.toZero.Value.String() == "true")
	}
	if !a.runs() || cluster {
		return a.autoscalerPlan, nil
	}
	if a.Act {
		return a.autoscalerPlan, cli.Hintf(cli.Usage(errors.New("--autoscalers needs a cluster, whose workloads it scales")),
			"Name it with --kubeconfig=FILE or --in-cluster, or leave --autoscalers out.")
	}
	return a.autoscalerPlan, cli.Hintf(cli.Usage(errors.New("--shadow-hpa needs a cluster, whose autoscalers it watches")),
		"Name it with --kubeconfig=FILE or --in-cluster, or leave --shadow-hpa out.")
}

// openAutoscaling opens the API that explains and evaluates autoscalers, and the controller that
// decides about them if the plan needs one. Without a whole cluster there is no API.
func openAutoscaling(ctx context.Context, w *process) (http.Handler, error) {
	p := w.plan
	if !p.wholeCluster() {
		return nil, nil
	}
	clients, err := w.clientsOfAutoscalers()
	if err != nil {
		return nil, err
	}
	metrics := newPodMetrics(w)
	settings := newClusterSettings(&p.Autoscalers, clients.kube.Discovery().RESTClient(), w.log)
	w.add(Part{Name: "the cluster's feature gates", Run: settings.run})
	o := autoscaling.Options{Evaluator: &evaluate.Evaluator{
		PodMetrics: metrics, Scales: clients.scales, Settings: settings.now,
		PodMetricsAt: func(at time.Time) (evaluate.PodMetrics, error) { return metrics.At(at) },
	}, Read: clients.read}
	if p.Autoscalers.runs() {
		if p.Autoscalers.Act && p.Lease == nil {
			w.log.Info("there is no leader election (--lease, --secure-port), so this weir acts on Autoscalers: run no second weir with --autoscalers")
		}
		watch, err := w.autoscalerWatcher(clients)
		if err != nil {
			return nil, err
		}
		w.scaler, err = controller.New(controller.Options{
			Watcher: watch, Client: clients.kube, Autoscalers: clients.autoscalers, Scales: clients.scales, Act: p.Autoscalers.Act, Shadow: p.Autoscalers.Shadow,
			Metrics: metrics, IsLeader: w.isLeader, Settings: settings.now,
			Period: p.Autoscalers.Period, PeekInterval: time.Second, Workers: p.Autoscalers.Workers, Resolution: p.Resolution,
			RecordTarget: w.record, Registerer: w.registry, Logger: w.log,
		})
		if err != nil {
			return nil, fmt.Errorf("decide about autoscalers: %w", err)
		}
		// It ends before the election, so no other replica acts while this one does.
		w.add(Part{Name: "autoscaler controller", Ends: EndsFirst, Run: func(ctx context.Context) error {
			if !settings.awaitAnswer(ctx) {
				return nil
			}
			return w.scaler.Run(ctx)
		}})
		o.Explain, o.Memory = w.scaler.Explain, w.scaler.Memory
	}
	return autoscaling.NewHandler(o), nil
}

// wholeCluster reports whether weir watches a whole cluster. An agent watches only the pods of its
// node, so it has no workloads.
func (p *plan) wholeCluster() bool { return p.Cluster != nil && p.Cluster.Node == "" }

// newPodMetrics returns the source of pods and metrics for decisions.
func newPodMetrics(w *process) *podmetrics.Reader {
	o := podmetrics.Options{
		View: viewAs(w, func(v apiView) podmetrics.UsageReader { return v }), Facts: w.facts, Explainer: w.explainInput,
		Custom: w.custom, MaxAge: max(time.Minute, 3*w.plan.Resolution), HistoryLength: w.plan.Memory.History,
	}
	if w.external != nil { // a nil pointer in an interface would not be nil
		o.External = w.external
	}
	return podmetrics.New(o)
}

// autoscalerClients are the clients that all code about autoscalers uses.
type autoscalerClients struct {
	kube        kubernetes.Interface
	autoscalers *v1alpha1.Client
	scales      *scaleclient.Client
	watcher     *watcher.Watcher // runs as a part if a row needs it
}

// clientsOfAutoscalers returns the clients that all code about autoscalers uses. The first caller
// creates them. They have no rate limit: many autoscalers would wait for it, and a late decision is
// a wrong one. Each user limits its own requests.
func (w *process) clientsOfAutoscalers() (*autoscalerClients, error) {
	if w.autoscaling != nil {
		return w.autoscaling, nil
	}
	config, err := informer.RESTConfig(*w.plan.Cluster)
	if err != nil {
		return nil, noCluster(err)
	}
	config = rest.CopyConfig(config)
	config.UserAgent = "weir"
	config.QPS, config.RateLimiter = -1, nil
	c := &autoscalerClients{}
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("create API client: %w", err)
	}
	if c.autoscalers, err = v1alpha1.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.scales, err = scaleclient.New(config); err != nil {
		return nil, err
	}
	w.autoscaling = c
	return c, nil
}

// autoscalerWatcher returns the only watcher of autoscalers. The first caller opens it.
func (w *process) autoscalerWatcher(c *autoscalerClients) (*watcher.Watcher, error) {
	if c.watcher == nil {
		o := watcher.Options{Client: c.kube, Logger: w.log}
		if w.plan.Autoscalers.Act {
			o.Autoscalers = c.autoscalers
		}
		var err error
		if c.watcher, err = watcher.New(o); err != nil {
			return nil, err
		}
		w.add(Part{Name: "autoscaler watcher", Run: c.watcher.Run})
	}
	return c.watcher, nil
}

// read reads an autoscaler that is not watched.
func (c *autoscalerClients) read(ctx context.Context, kind, namespace, name string) (*manifest.Manifest, error) {
	if kind == manifest.Autoscaler {
		a, err := c.autoscalers.Autoscalers(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return manifest.FromAutoscaler(a), nil
	}
	hpa, err := c.kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return manifest.FromHPA(hpa), nil
}

// openResize opens the API that recommends requests. Without a whole cluster there is none.
func openResize(_ context.Context, w *process) (http.Handler, error) {
	if !w.plan.wholeCluster() {
		return nil, nil
	}
	client, err := newClient(w.plan)
	if err != nil {
		return nil, err
	}
	return resizeapi.NewHandler(resizeapi.Options{
		Usage: viewAs(w, func(v apiView) resizeapi.UsageReader { return v }), Facts: w.facts, Now: w.now,
		Pod: func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
			return client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	}), nil
}
