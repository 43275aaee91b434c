package autoscaling

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/evaluate"
	"github.com/weir-metrics/weir/autoscaler/manifest"
)

// Evaluator says what a specification would do. *evaluate.Evaluator is one.
type Evaluator interface {
	Evaluate(ctx context.Context, object types.NamespacedName, spec *autoscalingv2.HorizontalPodAutoscalerSpec, o evaluate.Options) (*evaluate.Result, error)
}

// Options configure a Handler.
type Options struct {
	// Explain returns the last decision about an autoscaler of a kind, told; false
	// if the controller does not know it. Nil where no controller runs.
	Explain func(kind, namespace, name string) (*decisionreport.Report, bool)
	// Evaluator says what a specification would do. Nil where nothing can be
	// evaluated, as without an API server.
	Evaluator Evaluator
	// Read reads an autoscaler from the API server, for explanations of one that
	// the controller does not know; its errors are Kubernetes'. Nil refuses
	// those.
	Read func(ctx context.Context, kind, namespace, name string) (*manifest.Manifest, error)
	// Memory returns what the controller remembers of earlier decisions about an
	// autoscaler, for evaluations of another specification of it; false if it
	// knows none. May be nil.
	Memory func(kind, namespace, name string) (autoscaler.Memory, bool)
	// Timeout is how long an evaluation may take. Default 10 s.
	Timeout time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Handler serves the API at Paths. It may be used by many requests at once.
type Handler struct {
	opts Options
}

// NewHandler returns a Handler.
func NewHandler(opts Options) *Handler {
	if opts.Timeout <= 0 {
		opts.Timeout = 10 * time.Second
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Handler{opts}
}

// ServeHTTP answers a request for an explanation or an evaluation.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := h.answer(w, r)
	if err != nil {
		weirdev.Fail(w, asProblem(err))
		return
	}
	weirdev.Answer(w, http.StatusOK, answer)
}

func (h *Handler) answer(w http.ResponseWriter, r *http.Request) (*Report, error) {
	request, err := ParseRequest(r, h.opts.Now())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.opts.Timeout)
	defer cancel()
	if request.Evaluate {
		if r.Method != http.MethodPost {
			return nil, notAllowed(w, "POST", "an evaluation has a manifest to evaluate", "POST it.")
		}
		return h.evaluate(ctx, w, r, request)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, notAllowed(w, "GET, HEAD", "an explanation cannot be changed", "GET it.")
	}
	return h.explain(ctx, request)
}

func notAllowed(w http.ResponseWriter, allow, message, hint string) error {
	w.Header().Set("Allow", allow)
	return &weirdev.Problem{Status: http.StatusMethodNotAllowed, Message: message, Hint: hint}
}

// explain tells the last decision, or one that is made for the answer.
func (h *Handler) explain(ctx context.Context, r Request) (*Report, error) {
	if h.opts.Explain != nil {
		if told, ok := h.opts.Explain(r.Kind, r.Namespace, r.Name); ok {
			return NewReport(ExplanationKind, told), nil
		}
	}
	if h.opts.Read == nil || h.opts.Evaluator == nil {
		return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: "weir knows no " + r.String(),
			Hint: "Is the name right? weir watches Autoscalers where it runs with --autoscalers, and HorizontalPodAutoscalers with --shadow-hpa."}
	}
	m, err := h.opts.Read(ctx, r.Kind, r.Namespace, r.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: "the cluster has no " + r.String(), Hint: "Is it in another namespace?"}
	case apierrors.IsForbidden(err):
		return nil, &weirdev.Problem{Status: http.StatusServiceUnavailable, Message: fmt.Sprintf("weir may not read %s: %v", r, err),
			Hint: "Give weir's service account get on horizontalpodautoscalers, or run it with --shadow-hpa."}
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", r, err)
	}
	return h.decide(ctx, ExplanationKind, r, m)
}

// evaluate tells what the manifest in a request's body would do.
func (h *Handler) evaluate(ctx context.Context, w http.ResponseWriter, r *http.Request, request Request) (*Report, error) {
	if h.opts.Evaluator == nil {
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
	return h.decide(ctx, EvaluationKind, request, m)
}

// mostMetrics is how many metrics a decision is told of: as many as an Autoscaler may
// have. The API server takes any number of them in a HorizontalPodAutoscaler, and each
// has a line for each pod in the answer.
const mostMetrics = 64

// decide makes a decision and tells it.
func (h *Handler) decide(ctx context.Context, kind string, r Request, m *manifest.Manifest) (*Report, error) {
	if n := len(m.Spec.Metrics); n > mostMetrics {
		return nil, &weirdev.Problem{Status: http.StatusBadRequest, Message: fmt.Sprintf("spec.metrics: %d are too many to be told of", n), Hint: fmt.Sprintf("Leave at most %d.", mostMetrics)}
	}
	o := evaluate.Options{At: r.At, Replicas: r.Replicas, Status: &m.Status}
	// What is remembered is of the present: it is none of an earlier time.
	if h.opts.Memory != nil && r.At.IsZero() && r.Replicas == nil {
		if memory, ok := h.opts.Memory(m.Kind, r.Namespace, m.Name); ok {
			o.Memory = &memory
		}
	}
	result, err := h.opts.Evaluator.Evaluate(ctx, types.NamespacedName{Namespace: r.Namespace, Name: m.Name}, m.Spec, o)
	if err != nil {
		return nil, err
	}
	return NewReport(kind, result.Report(m.Kind)), nil
}

// asProblem returns what an error is to the asker.
func asProblem(err error) *weirdev.Problem {
	var p *weirdev.Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, evaluate.ErrTime):
		return &weirdev.Problem{Status: http.StatusBadRequest, Message: "at: " + err.Error(), Hint: "weir remembers a few minutes; `weir autoscaler replay` goes further back, over a recording or a Prometheus."}
	case errors.Is(err, context.DeadlineExceeded):
		return &weirdev.Problem{Status: http.StatusGatewayTimeout, Message: "the evaluation took too long: " + err.Error(), Hint: "The API server, or a provider of custom or external metrics, is slow. Ask again."}
	}
	return &weirdev.Problem{Status: http.StatusInternalServerError, Message: err.Error(), Hint: "weir's log may say more."}
}
