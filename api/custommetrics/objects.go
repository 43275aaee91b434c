package custommetrics

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/internal/humanize"
)

// Limits on a list of objects.
const (
	objectsPerPage = 500
	maxObjects     = 20_000
)

// ClusterObjects lists objects of which weir does not know the labels: all but pods and nodes. It
// reads their metadata from the API server for each request.
type ClusterObjects struct {
	Client metadata.Interface
	// Resource returns the version in which a resource is read.
	Resource func(context.Context, schema.GroupResource) (schema.GroupVersionResource, error)
}

// list returns the names of the objects with matching labels in a namespace, or of those in all
// namespaces if it is empty.
func (c *ClusterObjects) list(ctx context.Context, namespace string, selector labels.Selector, resource schema.GroupResource) ([]string, error) {
	if c == nil {
		return nil, metricsgroup.BadRequest("this weir does not know the labels of %s: leave the label selector out, or ask for one by its name", resource)
	}
	versioned, err := c.Resource(ctx, resource)
	if meta.IsNoMatchError(err) {
		return nil, metricsgroup.NotFound("the API server has no resource %s: see kubectl api-resources", resource)
	}
	if err != nil {
		return nil, metricsgroup.Unavailable("find the version of %s: %v", resource, err)
	}
	var names []string
	options := metav1.ListOptions{LabelSelector: selector.String(), Limit: objectsPerPage}
	for {
		page, err := c.Client.Resource(versioned).Namespace(namespace).List(ctx, options)
		switch {
		case apierrors.IsForbidden(err):
			return nil, metricsgroup.Error(http.StatusInternalServerError, metav1.StatusReasonInternalError,
				"weir may not list %s, so it does not know their labels: give its account the verb list on them, or ask for one by its name", resource)
		case err != nil:
			return nil, metricsgroup.Unavailable("list %s: %v", resource, err)
		}
		for i := range page.Items {
			names = append(names, page.Items[i].Name)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
		if len(names) >= maxObjects {
			return nil, metricsgroup.BadRequest("more than %d %s have labels that match: choose fewer by the label selector", maxObjects, resource)
		}
	}
	slices.Sort(names)
	return names, nil
}

// otherObjectNames returns the names of objects that are neither pods nor nodes. Without a label
// selector, and if the objects cannot be listed, it returns the names of those with a series.
func (p *Provider) otherObjectNames(ctx context.Context, m metricsgroup.ObjectMetric, namespace string, selector labels.Selector, info provider.CustomMetricInfo) ([]string, error) {
	names, err := p.options.Objects.list(ctx, namespace, selector, info.GroupResource)
	switch {
	case err == nil && len(names) > 0:
		return names, nil
	case err == nil:
		return nil, noObjects(info.GroupResource.String(), namespace, selector)
	case !selector.Empty():
		return nil, err
	}
	if names = m.Names(); len(names) == 0 {
		return nil, metricsgroup.NotFound("no series of the query of %s is of %s", info.Metric, info.GroupResource)
	}
	if p.options.Objects != nil {
		metricsgroup.Warn(ctx, "weir", humanize.Excerpt(fmt.Sprintf("the list has all %s with a series, which may be deleted: %v", info.GroupResource, err), maxWarning))
	}
	return names, nil
}

// maxWarning is the number of bytes of a warning.
const maxWarning = 300

// noObjects returns the error for a selector that matches no object.
func noObjects(resource, namespace string, selector labels.Selector) error {
	where := ""
	if namespace != "" {
		where = " in namespace " + namespace
	}
	if selector.Empty() {
		return metricsgroup.NotFound("there are no %s%s", resource, where)
	}
	return metricsgroup.NotFound("no %s%s have labels that match %s", resource, where, selector)
}
