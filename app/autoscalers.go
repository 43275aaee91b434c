package app

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/api/autoscaling"
	"github.com/weir-metrics/weir/autoscaler/controller"
	"github.com/weir-metrics/weir/autoscaler/evaluate"
	"github.com/weir-metrics/weir/autoscaler/live"
	"github.com/weir-metrics/weir/autoscaler/manifest"
	"github.com/weir-metrics/weir/autoscaler/target"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/recording"
)

// autoscalers is what decides about autoscalers, and says what others would.
type autoscalers struct {
	controller *controller.Controller // nil unless it is asked for
	answers    *autoscaling.Handler
}

// openAutoscalers makes what decides about the autoscalers of the plan's cluster.
// leads reports whether this replica is the one that writes, record takes the scales
// of what is decided about.
func openAutoscalers(p *plan, f *front, leads func() bool, record func(*recording.Target, time.Time), log *zap.Logger) (*autoscalers, error) {
	kube, err := informer.RESTConfig(*p.Cluster)
	if err != nil {
		return nil, noCluster(err)
	}
	kube = rest.CopyConfig(kube)
	kube.UserAgent = "weir"
	scales, err := target.New(kube)
	if err != nil {
		return nil, fmt.Errorf("reach the autoscalers' targets: %w", err)
	}
	sources := newLive(p, f)
	settings := p.Autoscalers.Settings
	o := autoscaling.Options{Evaluator: &evaluate.Evaluator{
		Live: sources, Scales: scales, Settings: &settings,
		Past: func(at time.Time) (evaluate.Live, error) { return sources.At(at) },
	}}
	if o.Read, err = autoscalerReader(kube); err != nil {
		return nil, err
	}
	a := &autoscalers{}
	if p.Autoscalers.runs() {
		if p.Autoscalers.Act && p.Lease == nil {
			log.Info("nobody else is asked who acts on Autoscalers (--lease, --secure-port): run no second weir with --autoscalers")
		}
		a.controller, err = controller.NewForConfig(kube, controller.Options{
			Act: p.Autoscalers.Act, Shadow: p.Autoscalers.Shadow,
			Metrics: sources, Leads: leads, Settings: &settings,
			Period: p.Autoscalers.Period, Peek: time.Second, Workers: p.Autoscalers.Workers, Resolution: p.Resolution,
			Record: record, Registerer: f.registry, Logger: log,
		})
		if err != nil {
			return nil, fmt.Errorf("decide about autoscalers: %w", err)
		}
		o.Explain, o.Memory = a.controller.Explain, a.controller.Memory
	}
	a.answers = autoscaling.NewHandler(o)
	return a, nil
}

// newLive returns where decisions get pods and metrics from.
func newLive(p *plan, f *front) *live.Live {
	o := live.Options{
		View: read(f.sinks, func(v view) live.View { return v }), Facts: f.facts, World: f.world,
		Custom: f.custom, Stands: max(time.Minute, 3*p.Resolution), Reach: p.Memory.History,
	}
	if f.external != nil { // and not an interface that holds a nil
		o.External = f.external
	}
	return live.New(o)
}

var _ live.View = view{}

// autoscalerReader returns what reads autoscalers that nobody watches.
func autoscalerReader(kube *rest.Config) (func(ctx context.Context, kind, namespace, name string) (*manifest.Manifest, error), error) {
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return nil, fmt.Errorf("create API client: %w", err)
	}
	own, err := v1alpha1.NewForConfig(kube)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, kind, namespace, name string) (*manifest.Manifest, error) {
		if kind == manifest.Autoscaler {
			a, err := own.Autoscalers(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			return manifest.FromAutoscaler(a), nil
		}
		hpa, err := client.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return manifest.FromHPA(hpa), nil
	}, nil
}
