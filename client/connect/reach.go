// Package connect is how weir's commands find a weir to ask, and how they say what
// to do when none answers.
package connect

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/weir-metrics/weir/api/autoscaling"
	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/client/cli"
	eviction "github.com/weir-metrics/weir/eviction/evictionreport/document"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// Weir is a weir that can be asked. Its errors say what to do.
type Weir struct {
	client  *weirdev.Client
	usage   *usage.Client
	explain *explainapi.Client
	scaling *autoscaling.Client
	node    *nodeapi.Client
	advise  func(error) error
}

// New returns the weir whose root lies at base. Advise adds to an error what a
// person can do about it; where weir itself has said so, Advised is enough.
func New(base string, client *http.Client, advise func(error) error) (*Weir, error) {
	c, err := weirdev.NewClient(base, client)
	if err != nil {
		return nil, cli.Usage(err)
	}
	return &Weir{
		client: c, usage: usage.NewClient(c), explain: explainapi.NewClient(c), scaling: autoscaling.NewClient(c), node: nodeapi.NewClient(c),
		advise: advise,
	}, nil
}

// List asks for a list of what is used.
func (w *Weir) List(ctx context.Context, r usage.Resource, q usage.Query) (*usage.List, error) {
	list, err := w.usage.List(ctx, r, q)
	return list, w.advised(err)
}

// Pod asks for the explanation of a pod.
func (w *Weir) Pod(ctx context.Context, ref metric.PodRef) (*explain.Explanation, error) {
	e, err := w.explain.Pod(ctx, ref)
	return e, w.advised(err)
}

// Container asks for the explanation of a container of a pod.
func (w *Weir) Container(ctx context.Context, ref metric.PodRef, name string) (*explain.Explanation, error) {
	e, err := w.explain.Container(ctx, ref, name)
	return e, w.advised(err)
}

// Node asks for the explanation of a node.
func (w *Weir) Node(ctx context.Context, name metric.NodeName) (*explain.Explanation, error) {
	e, err := w.explain.Node(ctx, name)
	return e, w.advised(err)
}

// Missing asks for what is missing in a namespace, or in the cluster if it is
// empty.
func (w *Weir) Missing(ctx context.Context, namespace metric.Namespace) (*explain.Report, error) {
	r, err := w.explain.Missing(ctx, namespace)
	return r, w.advised(err)
}

// Autoscaler asks for the last decision about an autoscaler of a kind
// (HorizontalPodAutoscaler, Autoscaler).
func (w *Weir) Autoscaler(ctx context.Context, kind, namespace, name string) (*decisionreport.DecisionReport, error) {
	r, err := w.scaling.Explain(ctx, kind, namespace, name)
	return r, w.advised(err)
}

// Evaluate asks what the manifest of an autoscaler would do.
func (w *Weir) Evaluate(ctx context.Context, e autoscaling.Evaluation) (*decisionreport.DecisionReport, error) {
	r, err := w.scaling.Evaluate(ctx, e)
	return r, w.advised(err)
}

// Eviction asks how a node stands with evictions.
func (w *Weir) Eviction(ctx context.Context, name string) (*eviction.EvictionReport, error) {
	r, err := w.node.Eviction(ctx, name)
	return r, w.advised(err)
}

// PodCgroups asks what the pod cgroups of a node hold, as JSON.
func (w *Weir) PodCgroups(ctx context.Context, name string) (json.RawMessage, error) {
	b, err := w.node.PodCgroups(ctx, name)
	return b, w.advised(err)
}

func (w *Weir) advised(err error) error {
	if err == nil {
		return nil
	}
	return w.advise(err)
}

// Answer returns the status and the hint of an answer that was none to the
// question; ok is false for any other error. Only weir itself gives hints.
func Answer(err error) (status int, hint string, ok bool) {
	var p *weirdev.Problem
	if !errors.As(err, &p) {
		return 0, "", false
	}
	return p.Status, p.Hint, true
}

// Unknown reports whether weir answered that it has never heard of what it was
// asked about.
func Unknown(err error) bool {
	status, hint, _ := Answer(err)
	return status == http.StatusNotFound && hint != ""
}

// Advised gives err the hint that the server itself sent with it.
func Advised(err error) error {
	if _, hint, _ := Answer(err); hint != "" {
		return cli.Hintf(err, "%s", hint)
	}
	return err
}
