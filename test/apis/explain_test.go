//go:build e2e

package apis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// explainer explains why a number is missing. A *explainapi.Client asks one
// weir directly, and a plugin asks through the API server, as a user does.
type explainer interface {
	Pod(context.Context, metric.PodRef) (*explain.Explanation, error)
	Container(context.Context, metric.PodRef, string) (*explain.Explanation, error)
}

// explainer returns a client of the weir at an address.
func (w *testCluster) explainer(t *testing.T, ip string, port int) *explainapi.Client {
	t.Helper()
	to := w.to(ip, port)
	client, err := rest.HTTPClientFor(to)
	if err != nil {
		t.Fatal(err)
	}
	weir, err := weirdev.NewClient(to.Host, client)
	if err != nil {
		t.Fatal(err)
	}
	return &explainapi.Client{Weir: weir}
}

// itself returns a client of weir's own pod.
func (w *testCluster) itself(t *testing.T) *explainapi.Client {
	t.Helper()
	return w.explainer(t, w.podsOf(t, "weir-system", "app.kubernetes.io/name=weir")[0].Status.PodIP, 10250)
}

// plugin is kubectl weir with a user's own credentials.
type plugin struct {
	w          *testCluster
	kubeconfig string
}

// user returns the plugin of a user with the role view in one namespace. Such a
// user may read the metrics of that namespace.
func (w *testCluster) user(t *testing.T, name, namespace string) plugin {
	t.Helper()
	w.views(t, name, namespace)
	p := plugin{w, filepath.Join(t.TempDir(), "kubeconfig")}
	if err := w.WriteKubeconfig(p.kubeconfig, name); err != nil {
		t.Fatal(err)
	}
	return p
}

// views gives a user the ClusterRole view in a namespace.
func (w *testCluster) views(t *testing.T, name, namespace string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: name}},
	}
	if _, err := w.kube.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// run runs kubectl weir and returns its output.
func (p plugin) run(ctx context.Context, args ...string) (stdout string, err error) {
	bin, err := filepath.Abs(filepath.Join(root, "bin"))
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, p.w.Binary("kubectl"), append([]string{"weir"}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG="+p.kubeconfig, "NO_PROXY=*", "no_proxy=*")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl weir %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// Pod explains a pod.
func (p plugin) Pod(ctx context.Context, ref metric.PodRef) (*explain.Explanation, error) {
	return p.explain(ctx, "pod", string(ref.Name), "-n", string(ref.Namespace))
}

// Container explains a container.
func (p plugin) Container(ctx context.Context, ref metric.PodRef, name string) (*explain.Explanation, error) {
	return p.explain(ctx, "container", string(ref.Name), name, "-n", string(ref.Namespace))
}

func (p plugin) explain(ctx context.Context, args ...string) (*explain.Explanation, error) {
	out, err := p.run(ctx, append([]string{"explain", "-o", "json"}, args...)...)
	if err != nil {
		return nil, err
	}
	var e explainapi.ExplanationDocument
	if err := json.Unmarshal([]byte(out), &e); err != nil {
		return nil, fmt.Errorf("read explanation: %w", err)
	}
	return &e.Explanation, nil
}

// reasonIn returns the reason for an explanation's CPU, and its message.
func reasonIn(e *explain.Explanation) (reason, message string) {
	for _, f := range e.Findings {
		if f.Group == "cpu" {
			return f.Reason, f.Message
		}
	}
	return "no finding", e.Summary
}

// TestExplain asks kubectl weir through the API server, as users who may read
// one namespace each.
func TestExplain(t *testing.T) {
	w := sharedCluster
	mine, other := w.namespace(t, "explained"), w.namespace(t, "explained-not")
	user := w.user(t, "one-namespace", mine)
	for _, namespace := range []string{mine, other} {
		w.create(t, namespace, pod("web", container("app", "use", "--millicores=20", "--bytes=8Mi")))
	}
	impossible := pod("waits", container("app", "pause"))
	impossible.Spec.NodeSelector = map[string]string{"weir.test/nowhere": "true"}
	w.create(t, mine, impossible)
	serves(t, "weir", w.weir, mine, "web/app")

	shows := func(want string, args ...string) {
		t.Helper()
		eventually(t, "kubectl weir "+strings.Join(args, " ")+" shows "+want, 10*time.Second, func() error {
			out, err := user.run(t.Context(), args...)
			if err == nil && !strings.Contains(out, want) {
				err = errors.New(out)
			}
			return err
		})
	}
	shows("web", "top", "pods", "-n", mine)
	shows(`"reason": "Measured"`, "explain", "pod", mine+"/web", "-o", "json")
	shows("PodPending", "explain", "pod", "waits", "-n", mine)
	shows("app", "explain", "container", "web", "app", "-n", mine)
	shows("", "explain", "missing", "-n", mine)
	shows("", "explain", "namespace", mine)

	refuses := func(args ...string) {
		t.Helper()
		out, err := user.run(t.Context(), args...)
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), "forbidden") && !strings.Contains(err.Error(), "cannot") {
			t.Errorf("kubectl weir %s: got %v, want it forbidden\n%s", strings.Join(args, " "), err, out)
		}
	}
	refuses("explain", "pod", other+"/web")
	refuses("explain", "pod", other+"/no-such-pod")
	refuses("explain", "container", other+"/web/app")
	refuses("explain", "namespace", other)
	refuses("explain", "missing")
	refuses("explain", "node", w.Node())
	refuses("top", "pods", "-n", other)
	refuses("top", "nodes")

	admin := plugin{w, w.Kubeconfig()}
	out, err := admin.run(t.Context(), "explain", "missing")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("kubectl weir explain missing:\n%s", out)
	out, err = admin.run(t.Context(), "explain", "node", w.Node())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("kubectl weir explain node %s:\n%s", w.Node(), out)
}
