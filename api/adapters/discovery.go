package adapters

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	customv1beta1 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta1"
	customv1beta2 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	externalv1beta1 "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/explain"
)

// listInterval is the time between two reads of the adapters' lists of metrics.
const listInterval = time.Minute

// adapter is a client with what it listed last.
type adapter struct {
	*client
	last    atomic.Pointer[metricList]      // noList before the first read
	trouble atomic.Pointer[explain.Adapter] // of the last read; nil if it succeeded
}

// String names the adapter; nil is weir itself.
func (a *adapter) String() string {
	if a == nil {
		return "weir"
	}
	return "adapter " + a.Name
}

// metricList is what an adapter lists and its entry takes. It is immutable.
type metricList struct {
	custom   []provider.CustomMetricInfo
	external []provider.ExternalMetricInfo
	version  schema.GroupVersion // of custom metrics
}

// noList is an empty list. An adapter of custom metrics serves the newest version, unless it lists another one.
var noList = &metricList{version: customv1beta2.SchemeGroupVersion}

// ReadLists reads the lists of all adapters at once. It reports whether one changed. The list of an
// adapter that cannot be read stays as it was.
func (r *Router) ReadLists(ctx context.Context) bool {
	var changed atomic.Bool
	var wait sync.WaitGroup
	for _, a := range r.adapters {
		wait.Go(func() {
			if a.readList(ctx, r.options.Logger) {
				changed.Store(true)
			}
		})
	}
	wait.Wait()
	return changed.Load()
}

// InTrouble returns the adapters whose lists could not be read last time.
func (r *Router) InTrouble() (all []explain.Adapter) {
	for _, a := range r.adapters {
		if t := a.trouble.Load(); t != nil {
			all = append(all, *t)
		}
	}
	return all
}

// readList reads the list of one adapter, and reports whether it changed.
func (a *adapter) readList(ctx context.Context, log *zap.Logger) bool {
	next, err := a.lists(ctx)
	if ctx.Err() != nil {
		return false
	}
	before := a.trouble.Load()
	if err != nil {
		a.up.WithLabelValues(a.Name).Set(0)
		now := &explain.Adapter{Name: a.Name, Message: err.Error(), Since: time.Now().UTC()}
		if before != nil {
			now.Since = before.Since
		}
		if a.trouble.Store(now); before == nil || before.Message != now.Message {
			log.Warn("the metrics of an adapter cannot be listed; what it listed before stays", zap.String("adapter", a.Name), zap.Error(err))
		}
		return false
	}
	a.up.WithLabelValues(a.Name).Set(1)
	if a.trouble.Store(nil); before != nil {
		log.Info("the metrics of an adapter can be listed again", zap.String("adapter", a.Name))
	}
	a.listed.WithLabelValues(a.Name).Set(float64(len(next.custom) + len(next.external)))
	old := a.last.Swap(next)
	return !slices.Equal(old.custom, next.custom) || !slices.Equal(old.external, next.external)
}

// lists asks the adapter for both of its lists.
func (a *adapter) lists(ctx context.Context) (*metricList, error) {
	l := &metricList{version: noList.version}
	if a.Scaler != "" {
		var err error
		l.external, err = a.scalerMetrics(ctx)
		return l, err
	}
	if len(a.External) > 0 {
		resources, err := a.resources(ctx, externalv1beta1.SchemeGroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range resources {
			if takes(a.External, r.Name) {
				l.external = append(l.external, provider.ExternalMetricInfo{Metric: r.Name})
			}
		}
	}
	if len(a.Custom) > 0 {
		resources, err := a.resources(ctx, l.version)
		if apierrors.IsNotFound(err) {
			l.version = customv1beta1.SchemeGroupVersion
			resources, err = a.resources(ctx, l.version)
		}
		if err != nil {
			return nil, err
		}
		for _, r := range resources {
			if resource, metric, ok := strings.Cut(r.Name, "/"); ok && takes(a.Custom, metric) {
				l.custom = append(l.custom, provider.CustomMetricInfo{GroupResource: schema.ParseGroupResource(resource), Namespaced: r.Namespaced, Metric: metric})
			}
		}
	}
	return l, nil
}

// resources returns the metrics that the adapter lists in a group, without names that cannot be in a
// path.
func (a *adapter) resources(ctx context.Context, group schema.GroupVersion) ([]metav1.APIResource, error) {
	body, err := a.fetch(ctx, nil, "apis", group.Group, group.Version)
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil || list.Kind != "APIResourceList" {
		return nil, a.unusable("GET /apis/%s returns no list of metrics", group)
	}
	if len(list.APIResources) > maxItems {
		return nil, a.unusable("it lists %d metrics, and at most %d are read", len(list.APIResources), maxItems)
	}
	return slices.DeleteFunc(list.APIResources, func(r metav1.APIResource) bool { return !isMetricName(r.Name) }), nil
}

// isMetricName reports whether a name can be in a path: RESOURCE/METRIC, or METRIC.
func isMetricName(name string) bool {
	if name == "" || len(name) > 512 || strings.Count(name, "/") > 1 {
		return false
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`?#%\"`, c) >= 0 {
			return false
		}
	}
	return true
}
