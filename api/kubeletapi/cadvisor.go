package kubeletapi

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/metrics"
	"github.com/google/cadvisor/lib/model"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/utils/clock"

	"github.com/weir-metrics/weir/metric"
)

// CAdvisor is one read of the node's cgroups in cAdvisor's form. Its methods are those that
// cAdvisor's collectors call, and may be called at once. The Handler changes nothing of it.
type CAdvisor interface {
	// Metrics returns the metrics that were read.
	Metrics() container.MetricSet
	GetMachineInfo() (*model.MachineInfo, error)
	GetVersionInfo() (*model.VersionInfo, error)
	// GetRequestedContainersInfo returns all cgroups by path.
	GetRequestedContainersInfo(string, model.RequestOptions) (map[string]*model.ContainerInfo, error)
}

// cadvisorPause is the least time between two reads for /metrics/cadvisor, as a multiple of the
// time that a read takes. Whatever the number of requests, at most a fifth of one core reads.
const cadvisorPause = 4

// cadvisorReader reads the node's cgroups for requests. It answers with the last read if that is
// young enough.
type cadvisorReader struct {
	read func(context.Context) (CAdvisor, error)

	mu struct {
		sync.Mutex
		last  CAdvisor
		again time.Time // when it may read again
	}
}

func (c *cadvisorReader) get(ctx context.Context) (CAdvisor, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	began := time.Now()
	if c.mu.last != nil && began.Before(c.mu.again) {
		return c.mu.last, nil
	}
	now, err := c.read(ctx)
	if now == nil || ctx.Err() != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	c.mu.last, c.mu.again = now, time.Now().Add(cadvisorPause*time.Since(began))
	return now, nil
}

// serveCAdvisor answers /metrics/cadvisor. Names, labels, units and help are those of cAdvisor's
// own collectors, as in a kubelet.
func (h *Handler) serveCAdvisor(w http.ResponseWriter, r *http.Request) {
	from := &namedCgroups{CAdvisor: unreadNode{errors.New("the node has not been read yet")}}
	if t := h.tree(); t != nil && t.node.Sample != nil && h.opts.CAdvisor != nil {
		if read, err := h.cadvisor.get(r.Context()); err != nil {
			from.CAdvisor = unreadNode{err}
		} else {
			from.CAdvisor = read
			from.index(t)
		}
	}
	included := from.Metrics()
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		metrics.NewPrometheusCollector(from, h.cgroupLabels(from), included, clock.RealClock{}, model.RequestOptions{}),
		metrics.NewPrometheusMachineCollector(from, included),
	)
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(w, r)
}

// namedCgroups is a read of the cgroups with the names that the newest round has for them. It has
// no cgroup that identity rejected.
type namedCgroups struct {
	CAdvisor
	cgroups  map[metric.CgroupPath]*cgroup
	rejected map[metric.CgroupPath]bool
}

func (n *namedCgroups) index(t *tree) {
	n.rejected, n.cgroups = t.rejected, make(map[metric.CgroupPath]*cgroup, len(t.all))
	for i := range t.all {
		n.cgroups[t.all[i].Instance.Path] = &t.all[i]
	}
}

// GetRequestedContainersInfo returns the cgroups that are served, or why the node could not be read.
func (n *namedCgroups) GetRequestedContainersInfo(name string, o model.RequestOptions) (map[string]*model.ContainerInfo, error) {
	all, err := n.CAdvisor.GetRequestedContainersInfo(name, o)
	served := make(map[string]*model.ContainerInfo, len(all))
	for path, c := range all {
		if !n.rejected[metric.CgroupPath(path)] {
			served[path] = c
		}
	}
	return served, err
}

// unreadNode is why a node could not be read, in the place of a read.
type unreadNode struct{ error }

func (unreadNode) Metrics() container.MetricSet                  { return container.MetricSet{} }
func (u unreadNode) GetMachineInfo() (*model.MachineInfo, error) { return nil, u.error }
func (u unreadNode) GetVersionInfo() (*model.VersionInfo, error) { return nil, u.error }
func (u unreadNode) GetRequestedContainersInfo(string, model.RequestOptions) (map[string]*model.ContainerInfo, error) {
	return nil, u.error
}

// The labels with which the runtime names a container.
const (
	podLabel       = "io.kubernetes.pod.name"
	namespaceLabel = "io.kubernetes.pod.namespace"
	containerLabel = "io.kubernetes.container.name"
)

// cgroupLabels returns the function that gives a cgroup the labels that a kubelet gives it. Names
// are those of the round, or else those of the runtime.
func (h *Handler) cgroupLabels(n *namedCgroups) metrics.ContainerLabelsFunc {
	return func(c *model.ContainerInfo) map[string]string {
		name := ""
		if len(c.Aliases) > 0 {
			name = c.Aliases[0]
		}
		specLabels := c.Spec.Labels
		ref := metric.PodRef{Namespace: metric.Namespace(specLabels[namespaceLabel]), Name: metric.PodName(specLabels[podLabel])}
		inPod, image := specLabels[containerLabel], c.Spec.Image
		if at := n.cgroups[metric.CgroupPath(c.Name)]; at != nil {
			ref, inPod = at.ref, at.container
		}
		if image == "" && inPod != "" && h.opts.Image != nil {
			image = h.opts.Image(ref, inPod)
		}
		labels := map[string]string{
			metrics.LabelID: c.Name, metrics.LabelName: name, metrics.LabelImage: image,
			"namespace": string(ref.Namespace), "pod": string(ref.Name), "container": inPod,
		}
		for name, value := range labels { // cAdvisor's collector panics if a label is not UTF-8
			labels[name] = validUTF8(value)
		}
		return labels
	}
}
