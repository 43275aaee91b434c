package run

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-metrics/weir/autoscaler/manifest"
	"github.com/weir-metrics/weir/autoscaler/scaleclient/scaleapi"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
	"github.com/weir-metrics/weir/autoscaler/watcher"
	"github.com/weir-metrics/weir/internal/feature"
)

// Clients are the clients that all features about autoscalers share. They have no rate limit: many
// autoscalers would wait for it, and a late decision is a wrong one. Each user limits its own
// requests.
type Clients struct {
	Kube        kubernetes.Interface
	Autoscalers *v1alpha1.Client
	Scales      *scaleapi.Client
	// WatchAutoscalers is set if the watcher watches objects of kind Autoscaler, too.
	WatchAutoscalers bool

	watcher *watcher.Watcher // nil until a feature needs it
}

// Open creates the clients. It creates them for a whole cluster only.
func (c *Clients) Open(_ context.Context, h *feature.Host) error {
	if !h.HasWholeCluster() {
		return nil
	}
	config, err := h.Cluster.RESTConfig()
	if err != nil {
		return err
	}
	config.UserAgent = "weir"
	if c.Kube, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("create API client: %w", err)
	}
	if c.Autoscalers, err = v1alpha1.NewForConfig(config); err != nil {
		return err
	}
	c.Scales, err = scaleapi.New(config)
	return err
}

// Watcher returns the only watcher of autoscalers. The first caller opens it.
func (c *Clients) Watcher(h *feature.Host) (*watcher.Watcher, error) {
	if c.watcher == nil {
		o := watcher.Options{Client: c.Kube, Logger: h.Log}
		if c.WatchAutoscalers {
			o.Autoscalers = c.Autoscalers
		}
		var err error
		if c.watcher, err = watcher.New(o); err != nil {
			return nil, fmt.Errorf("watch autoscalers: %w", err)
		}
		h.Add(feature.Part{Name: "autoscaler watcher", Run: c.watcher.Run})
	}
	return c.watcher, nil
}

// Unread returns why autoscalers cannot be listed, or "". There must be a watcher.
func (c *Clients) Unread() string { return c.watcher.Unread() }

// Read reads an autoscaler that is not watched.
func (c *Clients) Read(ctx context.Context, kind, namespace, name string) (*manifest.Manifest, error) {
	if kind == manifest.Autoscaler {
		a, err := c.Autoscalers.Autoscalers(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return manifest.FromAutoscaler(a), nil
	}
	hpa, err := c.Kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return manifest.FromHPA(hpa), nil
}
