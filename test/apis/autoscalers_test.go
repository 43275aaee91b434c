//go:build e2e

package apis

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/weir-metrics/weir/autoscaler/decisionreport"
)

// weirUser is the user that weir is for the API server.
const weirUser = "system:serviceaccount:weir-system:weir"

var autoscalers = schema.GroupVersionResource{Group: "autoscaling.weir.dev", Version: "v1alpha1", Resource: "autoscalers"}

// autoscaler is an Autoscaler, with the types of HorizontalPodAutoscalers. It
// uses no type of weir, so it tests the format.
type autoscaler struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		autoscalingv2.HorizontalPodAutoscalerSpec `json:",inline"`
		Mode                                      string `json:"mode,omitempty"`
	} `json:"spec"`
	Status struct {
		autoscalingv2.HorizontalPodAutoscalerStatus `json:",inline"`
		// Conditions hides the field of the same name, which has no observedGeneration.
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status,omitzero"`
}

// newAutoscaler returns an Autoscaler as an object that can be sent.
func newAutoscaler(name, mode string, spec autoscalingv2.HorizontalPodAutoscalerSpec) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		return nil, fmt.Errorf("convert specification: %w", err)
	}
	if mode != "" {
		content["mode"] = mode
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	u.SetGroupVersionKind(autoscalers.GroupVersion().WithKind("Autoscaler"))
	u.SetName(name)
	return u, nil
}

// autoscaler creates an Autoscaler.
func (w *testCluster) autoscaler(t *testing.T, namespace, name, mode string, spec autoscalingv2.HorizontalPodAutoscalerSpec) {
	t.Helper()
	u, err := newAutoscaler(name, mode, spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.dynamic.Resource(autoscalers).Namespace(namespace).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create Autoscaler %s/%s: %v", namespace, name, err)
	}
}

// getAutoscaler returns an Autoscaler in its present state.
func (w *testCluster) getAutoscaler(ctx context.Context, namespace, name string) (*autoscaler, error) {
	u, err := w.dynamic.Resource(autoscalers).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	b, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var a autoscaler
	if err := json.Unmarshal(b, &a); err != nil {
		return nil, fmt.Errorf("read Autoscaler: %w", err)
	}
	return &a, nil
}

// weirKnowsCPU waits until the status of an Autoscaler on CPU has a number.
func (w *testCluster) weirKnowsCPU(t *testing.T, namespace, name string) {
	t.Helper()
	eventually(t, "Autoscaler "+name+" knows the CPU", 2*time.Minute, func() error {
		a, err := w.getAutoscaler(t.Context(), namespace, name)
		if err != nil {
			return err
		}
		return knownCPU(a.Status.CurrentMetrics)
	})
}

// hasCondition waits until an Autoscaler has a condition with that status, and
// returns it. A missing condition counts as False.
func (w *testCluster) hasCondition(t *testing.T, namespace, name, kind string, want metav1.ConditionStatus, within time.Duration) (c metav1.Condition) {
	t.Helper()
	eventually(t, fmt.Sprintf("Autoscaler %s has condition %s %s", name, kind, want), within, func() error {
		a, err := w.getAutoscaler(t.Context(), namespace, name)
		if err != nil {
			return err
		}
		c = metav1.Condition{Type: kind, Status: metav1.ConditionFalse}
		if found := meta.FindStatusCondition(a.Status.Conditions, kind); found != nil {
			c = *found
		}
		if c.Status != want {
			return fmt.Errorf("its conditions are %+v", a.Status.Conditions)
		}
		return nil
	})
	return c
}

// explanation returns weir's last decision about an autoscaler, through the API
// server.
func (w *testCluster) explanation(ctx context.Context, namespace, resource, name string) (*decisionreport.DecisionReport, error) {
	b, err := w.kube.RESTClient().Get().AbsPath("/apis/weir.dev/v1alpha1/namespaces", namespace, resource, name, "explanation").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("explain %s %s: %w: %s", resource, name, err, b)
	}
	var r decisionreport.DecisionReport
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("read explanation: %w", err)
	}
	return &r, nil
}

// audit returns the matching audit events of the objects of a namespace since
// these tests began. The audit log of a cluster that already ran has older
// ones.
func (w *testCluster) audit(t *testing.T, namespace string, match func(*auditv1.Event) bool) []auditv1.Event {
	t.Helper()
	all, err := w.Audit(func(e *auditv1.Event) bool {
		return e.ObjectRef.Namespace == namespace && e.RequestReceivedTimestamp.After(w.began) && match(e)
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// writes returns weir's writes to the objects of a namespace.
func (w *testCluster) writes(t *testing.T, namespace string) []auditv1.Event {
	t.Helper()
	return w.audit(t, namespace, func(e *auditv1.Event) bool { return e.User.Username == weirUser })
}

// ofScale reports whether an event is about the scale of that Deployment.
func ofScale(e *auditv1.Event, deployment string) bool {
	o := e.ObjectRef
	return o.APIGroup == "apps" && o.Resource == "deployments" && o.Subresource == "scale" && o.Name == deployment
}

// listed returns the kinds of writes as text, with the number of each.
func listed(writes []auditv1.Event) string {
	count := map[string]int{}
	for _, e := range writes {
		o := e.ObjectRef
		count[fmt.Sprintf("%s %s %s", e.Verb, strings.TrimSuffix(o.Resource+"/"+o.Subresource, "/"), o.Name)]++
	}
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		words = append(words, fmt.Sprintf("%d× %s", count[kind], kind))
	}
	return strings.Join(words, ", ")
}
