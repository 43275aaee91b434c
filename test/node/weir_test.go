//go:build e2e

package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/eviction/evictionreport"
)

const (
	agents    = "weir-agents" // their namespace
	agentUser = "system:serviceaccount:weir-agents:weir-agent"
)

// install applies the manifests of weir with an agent, from a folder of
// testdata. It replaces placeholders in the manifests and removes the rights of
// an earlier agent. It returns when everything is rolled out.
func (w *testCluster) install(ctx context.Context, dir string, placeholders ...string) error {
	manifests, _, err := w.Kubectl(ctx, "kustomize", "--load-restrictor=LoadRestrictionsNone", filepath.Join("testdata", dir))
	if err != nil {
		return err
	}
	manifests = strings.NewReplacer(placeholders...).Replace(manifests)
	if manifests == w.installed {
		return nil
	}
	for _, other := range []string{"evict", "kill"} {
		if other == dir {
			continue
		}
		if _, _, err := w.Kubectl(ctx, "delete", "--ignore-not-found", "clusterrolebinding,clusterrole", "weir:agent-"+other); err != nil {
			return err
		}
	}
	if err := w.Apply(ctx, manifests); err != nil {
		return err
	}
	for _, workload := range [][2]string{{agents, "daemonset/weir-agent"}, {"weir-system", "deployment/weir"}} {
		if _, _, err := w.Kubectl(ctx, "rollout", "status", "-n", workload[0], workload[1], fmt.Sprintf("--timeout=%s", slowness*2*time.Minute)); err != nil {
			return err
		}
	}
	w.installed = manifests
	_, _, err = w.Kubectl(ctx, "wait", "apiservice", "--all", "--for=condition=Available", fmt.Sprintf("--timeout=%s", slowness*time.Minute))
	return err
}

// agent installs the agent of a folder of testdata, and returns when the agent
// has read the node.
func (w *testCluster) agent(t *testing.T, dir string, placeholders ...string) {
	t.Helper()
	began := time.Now()
	if err := w.install(t.Context(), dir, placeholders...); err != nil {
		t.Fatalf("install the agent of testdata/%s: %v", dir, err)
	}
	mode := "observe"
	if dir == "evict" || dir == "kill" {
		mode = dir
	}
	eventually(t, "the agent's first round in mode "+mode, time.Minute, func() error {
		r, err := w.report(t.Context())
		if err == nil && (r.Mode != mode || r.DecidedAt.IsZero()) {
			err = fmt.Errorf("it is in mode %s and %s: %s", r.Mode, r.State, r.Summary)
		}
		return err
	})
	t.Logf("the agent of testdata/%s runs after %.1fs", dir, time.Since(began).Seconds())
}

// report returns the node's report about evictions from weir's server, through
// the API server.
func (w *testCluster) report(ctx context.Context) (*nodeapi.EvictionExplanation, error) {
	out, _, err := w.Kubectl(ctx, "get", "--raw", "/apis/weir.dev/v1alpha1/nodes/"+w.Node()+"/eviction")
	if err != nil {
		return nil, err
	}
	r := &nodeapi.EvictionExplanation{}
	if err := json.Unmarshal([]byte(out), r); err != nil {
		return nil, fmt.Errorf("read weir's report: %w", err)
	}
	return r, nil
}

// weir runs kubectl weir as the administrator.
func (w *testCluster) weir(ctx context.Context, args ...string) (string, error) {
	bin, err := filepath.Abs(filepath.Join(root, "bin"))
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "kubectl-weir"), append(args, "--kubeconfig="+w.Kubeconfig())...)
	cmd.Env = append(os.Environ(), "NO_PROXY=*", "no_proxy=*")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl weir %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// kubectlWeir runs kubectl weir and returns its output. The test fails if it
// fails.
func (w *testCluster) kubectlWeir(t *testing.T, args ...string) string {
	t.Helper()
	out, err := w.weir(t.Context(), args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// rankingFor returns the ranking for a signal in a report.
func rankingFor(r *nodeapi.EvictionExplanation, signal string) (*evictionreport.Ranking, error) {
	for _, s := range r.Signals {
		if s.Name != signal {
			continue
		}
		if s.Ranking == nil {
			return nil, fmt.Errorf("weir ranks nobody for %s: %s", signal, s.Doubt)
		}
		return s.Ranking, nil
	}
	return nil, fmt.Errorf("weir watches no %s: %s", signal, r.Summary)
}

// passed returns, as text, the pods that a ranking skips, with the reasons.
func passed(r *evictionreport.Ranking) string {
	var b strings.Builder
	for i := range r.Pods {
		if p := &r.Pods[i]; p.Skipped != "" {
			fmt.Fprintf(&b, "\n  %s: %s: %s", p, p.Skipped, p.Message)
		}
	}
	return b.String()
}

// writes returns what agents have written since a time, from the audit log.
func (w *testCluster) writes(t *testing.T, since time.Time) []auditv1.Event {
	t.Helper()
	events, err := w.Audit(func(e *auditv1.Event) bool {
		return strings.HasPrefix(e.User.Username, "system:serviceaccount:"+agents+":") && e.RequestReceivedTimestamp.After(since)
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// written returns a write as text: "patch pods/status shop/web".
func written(e *auditv1.Event) string {
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	return fmt.Sprintf("%s %s %s/%s", e.Verb, resource, e.ObjectRef.Namespace, e.ObjectRef.Name)
}
