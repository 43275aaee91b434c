package autoscaling

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/evaluate"
	"github.com/weir-metrics/weir/autoscaler/manifest"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
)

// Options configure the handler.
type Options struct {
	// Explain returns the report of the last decision about an autoscaler, and false if the
	// controller does not know it. It is nil if no controller runs.
	Explain func(kind, namespace, name string) (*decisionreport.DecisionReport, bool)
	// Evaluator evaluates specifications. It is nil if that is impossible, for example without an
	// API server.
	Evaluator *evaluate.Evaluator
	// WorkloadID names the target of an autoscaler. Required if there is an Evaluator.
	WorkloadID func(ctx context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference) (scaleclient.WorkloadID, error)
	// Read reads an autoscaler from the API server, to explain one that the controller does not
	// know. Its errors are those of Kubernetes. If it is nil, such requests fail.
	Read func(ctx context.Context, kind, namespace, name string) (*manifest.Manifest, error)
	// Memory returns the controller's memory of earlier decisions about an autoscaler, to evaluate
	// another specification of it, and false if there is none. It may be nil.
	Memory func(kind, namespace, name string) (autoscaler.Memory, bool)
	// Timeout limits an evaluation. Default 10 s.
	Timeout time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// NewHandler returns a handler for all of Paths. It may serve many requests at once.
func NewHandler(opts Options) http.Handler {
	if opts.Timeout <= 0 {
		opts.Timeout = 10 * time.Second
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := opts.answer(w, r)
		weirdev.Respond(w, answer, asProblem(err))
	})
}

func (o *Options) answer(w http.ResponseWriter, r *http.Request) (*Response, error) {
	request, err := ParseRequest(r, o.Now())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), o.Timeout)
	defer cancel()
	if request.Evaluate {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", "POST")
			return nil, &weirdev.Problem{Status: http.StatusMethodNotAllowed, Message: "this path accepts only POST, with the manifest as the body", Hint: "Use POST."}
		}
		return o.evaluate(ctx, w, r, request)
	}
	if p := weirdev.OnlyReads(w, r, "an explanation is read-only"); p != nil {
		return nil, p
	}
	return o.explain(ctx, request)
}

// explain reports the last decision, or one that it makes for the answer.
func (o *Options) explain(ctx context.Context, r Request) (*Response, error) {
	if o.Explain != nil {
		if report, ok := o.Explain(r.Kind, r.Namespace, r.Name); ok {
			return NewResponse(ExplanationKind, report), nil
		}
	}
	if o.Read == nil || o.Evaluator == nil {
		return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: "weir does not know " + r.String(),
			Hint: "Is the name right? weir watches Autoscalers where it runs with --autoscalers, and HorizontalPodAutoscalers with --shadow-hpa."}
	}
	m, err := o.Read(ctx, r.Kind, r.Namespace, r.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: "the cluster has no " + r.String(), Hint: "Is it in another namespace?"}
	case apierrors.IsForbidden(err):
		return nil, &weirdev.Problem{Status: http.StatusServiceUnavailable, Message: fmt.Sprintf("weir may not read %s: %v", r, err),
			Hint: "Give weir's service account get on horizontalpodautoscalers, or run it with --shadow-hpa."}
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", r, err)
	}
	return o.decideNow(ctx, ExplanationKind, r, m)
}

// evaluate reports what the manifest in the body of a request would do.
func (o *Options) evaluate(ctx context.Context, w http.ResponseWriter, r *http.Request, request Request) (*Response, error) {
	if o.Evaluator == nil {
		return nil, &weirdev.Problem{Status: http.StatusServiceUnavailable, Message: "this weir cannot evaluate autoscalers: it has no API server to ask about their targets",
			Hint: "Ask a weir that runs in the cluster."}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, manifest.MaxBytes))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, &weirdev.Problem{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the manifest is longer than %d bytes", manifest.MaxBytes), Hint: "Send one autoscaler."}
	case err != nil:
		return nil, &weirdev.Problem{Status: http.StatusBadRequest, Message: fmt.Sprintf("read the manifest: %v", err), Hint: "Send it again."}
	}
	m, err := manifest.Read(body)
	if err != nil {
		return nil, &weirdev.Problem{Status: http.StatusBadRequest, Message: err.Error(), Hint: "Send the manifest of one HorizontalPodAutoscaler (autoscaling/v2) or Autoscaler."}
	}
	if m.Namespace != "" && m.Namespace != request.Namespace {
		return nil, &weirdev.Problem{Status: http.StatusBadRequest, Message: fmt.Sprintf("metadata.namespace: the manifest is of namespace %s, the request of %s", m.Namespace, request.Namespace),
			Hint: "Ask in the manifest's namespace, or leave that out."}
	}
	if err := o.checkRights(ctx, request.Namespace, m); err != nil {
		return nil, err
	}
	return o.decideNow(ctx, EvaluationKind, request, m)
}

// checkRights returns a problem unless the caller may read what an evaluation of m reads: the scale of the
// target, its metrics, and what the controller remembers of the autoscaler.
func (o *Options) checkRights(ctx context.Context, namespace string, m *manifest.Manifest) error {
	needed := metricRights(namespace, m.Spec)
	switch id, err := o.WorkloadID(ctx, namespace, m.Spec.ScaleTargetRef); {
	case err == nil:
		needed = append(needed, rights.Right{Verb: "get", Group: id.Resource.Group, Resource: id.Resource.Resource, Subresource: "scale", Namespace: namespace, Name: id.Name})
	case !meta.IsNoMatchError(err): // the decision reports that there is no such kind
		return &weirdev.Problem{Status: http.StatusServiceUnavailable, Message: "spec.scaleTargetRef: " + err.Error(), Hint: "Is its apiVersion right? If it is, the API server does not answer: ask again."}
	}
	if o.Memory != nil {
		if _, ok := o.Memory(m.Kind, namespace, m.Name); ok {
			needed = append(needed, rights.GetAutoscaler(m.Kind, namespace, m.Name)...)
		}
	}
	missing, err := rights.Missing(ctx, needed)
	if err == nil && len(missing) > 0 {
		err = &weirdev.Problem{Status: http.StatusForbidden, Message: "the manifest names what you may not read; it needs: " + strings.Join(missing, ", "),
			Hint: "Ask an administrator for these rights, or leave those metrics out. `kubectl auth can-i` shows which you have."}
	}
	return err
}

// maxMetrics is how many metrics a report may have: as many as an Autoscaler may have. The API
// server accepts any number in a HorizontalPodAutoscaler, and the answer has a line for each metric
// and pod.
const maxMetrics = 64

// decideNow makes a decision and reports it.
func (o *Options) decideNow(ctx context.Context, kind string, r Request, m *manifest.Manifest) (*Response, error) {
	if n := len(m.Spec.Metrics); n > maxMetrics {
		return nil, &weirdev.Problem{Status: http.StatusBadRequest, Message: fmt.Sprintf("spec.metrics: %d are too many", n), Hint: fmt.Sprintf("Leave at most %d.", maxMetrics)}
	}
	options := evaluate.Options{At: r.At, Replicas: r.Replicas, Status: &m.Status}
	// The memory of the controller is about the present, so it is not used for an earlier time.
	if o.Memory != nil && r.At.IsZero() && r.Replicas == nil {
		if memory, ok := o.Memory(m.Kind, r.Namespace, m.Name); ok {
			options.Memory = &memory
		}
	}
	result, err := o.Evaluator.Evaluate(ctx, types.NamespacedName{Namespace: r.Namespace, Name: m.Name}, m.Spec, options)
	if err != nil {
		return nil, err
	}
	result.Kind = m.Kind
	return NewResponse(kind, decisionreport.New(result.Decision, result.Context)), nil
}

// asProblem converts the errors of an evaluation that a client can do something about.
func asProblem(err error) error {
	switch {
	case errors.Is(err, evaluate.ErrTimeUnknown):
		return &weirdev.Problem{Status: http.StatusBadRequest, Message: "at: " + err.Error(), Hint: "weir remembers a few minutes; `weir autoscaler replay` goes further back, over a recording or a Prometheus."}
	case errors.Is(err, context.DeadlineExceeded):
		return &weirdev.Problem{Status: http.StatusGatewayTimeout, Message: "the evaluation took too long: " + err.Error(), Hint: "The API server, or a provider of custom or external metrics, is slow. Ask again."}
	}
	return err
}
