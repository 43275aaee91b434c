package explainapi

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// Client reads the API of one weir.
type Client struct{ Weir *weirdev.Client }

// Pod explains a pod. An error that the server itself reports is a *weirdev.Problem, here and
// below.
func (c *Client) Pod(ctx context.Context, ref metric.PodRef) (*explain.Explanation, error) {
	return c.explain(ctx, Request{Namespace: ref.Namespace, Pod: ref.Name})
}

// Container explains a container of a pod.
func (c *Client) Container(ctx context.Context, ref metric.PodRef, name string) (*explain.Explanation, error) {
	return c.explain(ctx, Request{Namespace: ref.Namespace, Pod: ref.Name, Container: name})
}

// Node explains a node.
func (c *Client) Node(ctx context.Context, name metric.NodeName) (*explain.Explanation, error) {
	return c.explain(ctx, Request{Node: name})
}

// Cgroup explains a cgroup of a node that belongs to no pod.
func (c *Client) Cgroup(ctx context.Context, node metric.NodeName, name string) (*explain.Explanation, error) {
	return c.explain(ctx, Request{Node: node, Cgroup: name})
}

// Missing reports what is missing in a namespace, or in the cluster if namespace is empty.
func (c *Client) Missing(ctx context.Context, namespace metric.Namespace) (*explain.MissingReport, error) {
	return get[explain.MissingReport](ctx, c, Request{Missing: true, Namespace: namespace}, reportKind)
}

// Workload reports what the pods of a workload use, and what is missing of them.
func (c *Client) Workload(ctx context.Context, namespace metric.Namespace, workload cluster.Owner) (*explain.MissingReport, error) {
	request := Request{Missing: true, Namespace: namespace, Workload: workload}
	report, err := get[explain.MissingReport](ctx, c, request, reportKind)
	if err == nil && report.Workload == nil {
		return nil, fmt.Errorf("read the answer about %v: the report is not about a workload", request)
	}
	return report, err
}

func (c *Client) explain(ctx context.Context, r Request) (*explain.Explanation, error) {
	d, err := get[ExplanationDocument](ctx, c, r, "")
	if err != nil {
		return nil, err
	}
	kind, ok := strings.CutSuffix(d.Kind, "Explanation")
	if d.Explanation.Kind = strings.ToLower(kind); !ok || kind == "" || d.APIVersion != weirdev.APIVersion {
		return nil, fmt.Errorf("read the answer about %v: got a %s of %s, want an explanation of %s", r, d.Kind, d.APIVersion, weirdev.APIVersion)
	}
	return &d.Explanation, nil
}

// get requests r and returns the answer, of a kind.
func get[T any](ctx context.Context, c *Client, r Request, kind string) (*T, error) {
	path, query := r.target()
	return weirdev.Get[T](ctx, c.Weir, r.String(), path, query, kind)
}

// getPods returns a document of a kind about pods at resource: of all, of those of a namespace, or of one. subject
// names it in errors.
func getPods[T any](ctx context.Context, c *Client, resource string, pods metric.PodRef, query url.Values, subject, kind string) (*T, error) {
	path := []string{resource}
	if pods.Namespace != "" {
		path = []string{"namespaces", string(pods.Namespace), resource}
	}
	if pods.Name != "" {
		query.Set("pod", string(pods.Name))
	}
	return weirdev.Get[T](ctx, c.Weir, subject, path, query, kind)
}
