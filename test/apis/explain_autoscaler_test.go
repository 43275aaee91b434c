//go:build e2e

package apis

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/autoscaler/decisionreport"
)

// kindsOfAutoscaler are the kinds of autoscaler, as arguments of explain.
var kindsOfAutoscaler = []string{"hpa", "autoscaler"}

// explains runs kubectl weir and returns its report about an autoscaler.
func (p plugin) explains(t *testing.T, args ...string) (*decisionreport.DecisionReport, error) {
	t.Helper()
	out, err := p.run(t.Context(), append(args, "-o", "json")...)
	if err != nil {
		return nil, err
	}
	var r decisionreport.DecisionReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return &r, nil
}

// missing returns an error if a report does not name exactly these pods, each
// with one of these reasons.
func missing(r *decisionreport.DecisionReport, reasons []string, pods ...string) error {
	var named []string
	for _, c := range r.Missing {
		if !slices.Contains(reasons, c.Reason) {
			return fmt.Errorf("it has reason %s (%s), want one of %v", c.Reason, c.Message, reasons)
		}
		if c.Message == "" {
			return fmt.Errorf("reason %s has no words", c.Reason)
		}
		named = append(named, c.Pods...)
	}
	slices.Sort(named)
	if len(r.Missing) == 0 || !slices.Equal(named, pods) {
		return fmt.Errorf("it names the pods %q in %+v, want %q; it says: %s; %s", named, r.Missing, pods, r.Summary, r.Error)
	}
	return nil
}

// TestUnknown creates autoscalers without their metric, for which kubectl get
// hpa shows <unknown>, and asks kubectl weir why. It names the pods and what is
// wrong with each.
func TestUnknown(t *testing.T) {
	t.Parallel()
	w := sharedCluster
	namespace := w.namespace(t, "unknown")
	user := w.user(t, "unknown-viewer", namespace)
	none := w.namespace(t, "unknown-none")
	w.views(t, "unknown-viewer", none)
	names := func(namespace, app string) (names []string) {
		for _, p := range w.podsOf(t, namespace, "app="+app) {
			names = append(names, p.Name)
		}
		slices.Sort(names)
		return names
	}
	both := func(namespace, name string, least int32) {
		spec := following(name, 5, onCPU(50))
		spec.MinReplicas = &least
		w.autoscale(t, namespace, name, spec)
		w.autoscaler(t, namespace, name, "Active", spec)
	}
	asked := func(namespace, name string, within time.Duration, want func(*decisionreport.DecisionReport) error) {
		t.Helper()
		for _, kind := range kindsOfAutoscaler {
			eventually(t, fmt.Sprintf("kubectl weir explain %s %s/%s", kind, namespace, name), within, func() error {
				r, err := user.explains(t, "explain", kind, namespace+"/"+name)
				if err != nil {
					return err
				}
				return want(r)
			})
		}
		out, err := user.run(t.Context(), "explain", "hpa", namespace+"/"+name)
		if err != nil {
			t.Error(err)
		}
		t.Logf("kubectl weir explain hpa %s/%s:\n%s", namespace, name, out)
	}

	// Two pods without a CPU request.
	app := container("app", "use", "--millicores=5", "--bytes=1Mi")
	delete(app.Resources.Requests, corev1.ResourceCPU)
	w.deployment(t, namespace, "requestless", app)
	w.kubectl(t, "scale", "deployment", "requestless", "-n", namespace, "--replicas=2")
	both(namespace, "requestless", 2)
	// A selector that matches no pod: the namespace's quota allows none.
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "no-pods"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: {}}}}
	if _, err := w.kube.CoreV1().ResourceQuotas(none).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.deployment(t, none, "podless", container("app", "pause"))
	both(none, "podless", 1)
	// One pod that is measured, and one that waits for a node with a free port.
	app = container("app", "pause")
	app.Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 18480}}
	w.deployment(t, namespace, "half", app)
	w.kubectl(t, "scale", "deployment", "half", "-n", namespace, "--replicas=2")
	both(namespace, "half", 2)

	asked(namespace, "requestless", 3*time.Minute, func(r *decisionreport.DecisionReport) error {
		pods := names(namespace, "requestless")
		if len(pods) != 2 {
			return fmt.Errorf("pods %q run, want two", pods)
		}
		if !strings.Contains(r.Error, "request") {
			return fmt.Errorf("its error is %q", r.Error)
		}
		return missing(r, []string{"MissingRequest"}, pods...)
	})
	asked(none, "podless", 3*time.Minute, func(r *decisionreport.DecisionReport) error {
		if r.Error == "" || !strings.Contains(strings.ToLower(fmt.Sprint(r.Summary, r.Missing)), "no pod") {
			return fmt.Errorf("it says %q, %+v, %q", r.Summary, r.Missing, r.Error)
		}
		return nil
	})
	asked(namespace, "half", 3*time.Minute, func(r *decisionreport.DecisionReport) error {
		if len(r.Metrics) != 1 || r.Error != "" {
			return fmt.Errorf("it has metrics %+v, error %q", r.Metrics, r.Error)
		}
		var classes []string
		for _, p := range r.Metrics[0].Pods {
			classes = append(classes, p.Class)
			if running := slices.Contains(names(namespace, "half"), p.Name); running != (p.Class == "Counted") {
				return fmt.Errorf("pod %s is %s (%s); it runs: %v", p.Name, p.Class, p.Reason, running)
			}
		}
		if slices.Sort(classes); !slices.Equal(classes, []string{"Counted", "Unready"}) {
			return fmt.Errorf("its pods are %+v", r.Metrics[0].Pods)
		}
		return nil
	})

	// A pod that has just started: its number is missing only for a short time.
	began := time.Now()
	w.deployment(t, namespace, "young", container("app", "use", "--millicores=5", "--bytes=1Mi"))
	both(namespace, "young", 1)
	var said []string
	eventually(t, "kubectl weir explain autoscaler young has its number", 3*time.Minute, func() error {
		r, err := user.explains(t, "explain", "autoscaler", namespace+"/young")
		if err != nil {
			return err
		}
		if len(r.Metrics) == 1 && r.Metrics[0].Error == "" {
			return nil
		}
		pods := names(namespace, "young")
		for _, c := range r.Missing {
			if c.Reason == "NoPods" {
				continue // the pod was not created yet
			}
			if len(pods) == 1 && !slices.Equal(c.Pods, pods) && len(c.Pods) > 0 {
				t.Errorf("reason %s is said of %q, want of %q", c.Reason, c.Pods, pods)
			}
			if !slices.Contains(said, c.Reason) {
				said = append(said, c.Reason)
				t.Logf("young, %.1fs: %s: %s", time.Since(began).Seconds(), c.Reason, c.Message)
			}
			if c.Severity == "broken" {
				t.Errorf("a pod that has just begun is called broken: %s: %s", c.Reason, c.Message)
			}
		}
		return fmt.Errorf("it lacks %+v: %s", r.Missing, r.Error)
	})
	if len(said) == 0 {
		t.Error("nothing was said of a pod that had just begun")
	}

	// The cluster's own controller has the same problem.
	for of, name := range map[string]string{namespace: "requestless", none: "podless"} {
		eventually(t, "the HPA "+name+" is <unknown>", 3*time.Minute, func() error {
			out := w.kubectl(t, "get", "hpa", name, "-n", of)
			if !strings.Contains(out, "<unknown>/50%") {
				return fmt.Errorf("kubectl get hpa says %s", out)
			}
			return nil
		})
		// Each decides at its own times, so one may be a step ahead.
		eventually(t, "the Autoscaler "+name+" has the HPA's conditions", 3*time.Minute, func() error {
			a, err := w.getAutoscaler(t.Context(), of, name)
			if err != nil {
				return err
			}
			h, err := w.kube.AutoscalingV2().HorizontalPodAutoscalers(of).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, c := range h.Status.Conditions {
				i := slices.IndexFunc(a.Status.Conditions, func(own metav1.Condition) bool { return own.Type == string(c.Type) })
				if i < 0 {
					return fmt.Errorf("it lacks condition %s", c.Type)
				} else if own := a.Status.Conditions[i]; string(own.Status) != string(c.Status) || own.Reason != c.Reason {
					return fmt.Errorf("condition %s is %s (%s), the HPA's is %s (%s)", c.Type, own.Status, own.Reason, c.Status, c.Reason)
				}
			}
			return nil
		})
	}
}

// TestEvaluate asks kubectl weir what manifests would do with the present
// metrics, for autoscalers that exist and for one that does not.
func TestEvaluate(t *testing.T) {
	t.Parallel()
	w := sharedCluster
	namespace := w.namespace(t, "evaluate")
	admin := plugin{w, w.Kubeconfig()}
	w.loadable(t, namespace, "web")
	w.addressOf(t, namespace, "web")
	if err := w.load(t.Context(), namespace, "web", busy); err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, spec autoscalingv2.HorizontalPodAutoscalerSpec) string {
		t.Helper()
		u, err := newAutoscaler(name, "", spec)
		if err != nil {
			t.Fatal(err)
		}
		if kind == "HorizontalPodAutoscaler" {
			u.SetAPIVersion("autoscaling/v2")
			u.SetKind(kind)
		}
		b, err := u.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name+".json")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, kind := range []string{"HorizontalPodAutoscaler", "Autoscaler"} {
		file := write("web", kind, following("web", 5, onCPU(50)))
		// Of four replicas, one uses 35m and three do not exist.
		for _, replicas := range []int32{few, 4} {
			eventually(t, fmt.Sprintf("%s of a file would scale %d replicas", kind, replicas), 90*time.Second, func() error {
				args := []string{"autoscaler", "evaluate", "-f", file, "-n", namespace}
				if replicas != few {
					args = append(args, fmt.Sprintf("--replicas=%d", replicas))
				}
				r, err := admin.explains(t, args...)
				if err != nil {
					return err
				}
				if r.Current != replicas || r.Desired != many {
					return fmt.Errorf("it says %d to %d: %s %s", r.Current, r.Desired, r.Summary, r.Error)
				}
				return nil
			})
		}
	}
	file := write("web", "HorizontalPodAutoscaler", following("web", 5, onCPU(50)))
	changed := time.Now()
	if err := w.load(t.Context(), namespace, "web", idle); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the manifest would not scale any more", 90*time.Second, func() error {
		r, err := admin.explains(t, "autoscaler", "evaluate", "-f", file, "-n", namespace)
		if err == nil && r.Desired != few {
			err = fmt.Errorf("it says %d to %d: %s", r.Current, r.Desired, r.Summary)
		}
		return err
	})
	at := changed.UTC().Format(time.RFC3339Nano)
	r, err := admin.explains(t, "autoscaler", "evaluate", "-f", file, "-n", namespace, "--at", at)
	if err != nil {
		t.Error(err)
	} else if r.Desired != many {
		t.Errorf("evaluate --at %s: got %d to %d, want what it would have done while there was load, %d: %s", at, r.Current, r.Desired, many, r.Summary)
	}
	out, err := admin.run(t.Context(), "autoscaler", "evaluate", "-f", file, "-n", namespace, "--at", at)
	if err != nil {
		t.Error(err)
	}
	t.Logf("kubectl weir autoscaler evaluate --at %s:\n%s", at, out)
	if writes := w.writes(t, namespace); len(writes) > 0 {
		t.Errorf("evaluating wrote: %s", listed(writes))
	}

	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("kind: Deployment\napiVersion: apps/v1\nmetadata: {name: web}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := admin.run(t.Context(), "autoscaler", "evaluate", "-f", bad, "-n", namespace); err == nil || !strings.Contains(err.Error(), "Deployment") {
		t.Errorf("evaluate a Deployment: got %v, %q; want an error that says what it is", err, out)
	}
	outsider := w.user(t, "evaluate-stranger", w.namespace(t, "evaluate-not"))
	if out, err := outsider.run(t.Context(), "autoscaler", "evaluate", "-f", file, "-n", namespace); err == nil || !strings.Contains(err.Error(), "cannot") && !strings.Contains(err.Error(), "orbidden") {
		t.Errorf("evaluate in a namespace of others: got %v, %q; want it forbidden", err, out)
	}
	// The explanation of an HPA that exists.
	w.autoscale(t, namespace, "web", following("web", 5, onCPU(50)))
	eventually(t, "kubectl weir explain hpa", time.Minute, func() error {
		r, err := admin.explains(t, "explain", "hpa", namespace+"/web")
		if err == nil && (r.Current != few || r.Target != "Deployment/web" || len(r.Metrics) != 1) {
			err = fmt.Errorf("got %+v", r)
		}
		return err
	})
}
