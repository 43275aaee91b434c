//go:build e2e

package apis

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/test/pages"
)

// TestExamples runs the commands of docs/examples, each with its own workload. A
// Prometheus scrapes the pods that ask for it. weir has their rules already
// (testdata/weir/rules.yaml).
func TestExamples(t *testing.T) {
	t.Parallel()
	w := sharedCluster
	found, err := filepath.Glob(filepath.Join(root, "docs", "examples", "*", "README.md"))
	if err != nil || len(found) < 4 {
		t.Fatalf("docs/examples has %q, %v; want four READMEs", found, err)
	}
	targets := filepath.Join(t.TempDir(), "targets.json")
	var written []byte
	write := func() bool {
		if err := w.writeTargets(t, targets, &written); err != nil && t.Context().Err() == nil {
			t.Error(err)
			return false
		}
		return true
	}
	write()
	w.prometheus(t, "prometheus-examples", examplesPort, fmt.Sprintf("file_sd_configs: [{files: [%q]}]", targets))
	background(t, time.Second, write)
	bin, err := filepath.Abs(filepath.Join(root, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "KUBECONFIG="+w.Kubeconfig(), "PATH="+bin+":"+w.BinaryDir("kubectl")+":"+os.Getenv("PATH"),
		"KUBECACHEDIR="+t.TempDir(), "NO_PROXY=*", "no_proxy=*")
	for _, page := range found {
		t.Run(filepath.Base(filepath.Dir(page)), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			if version, err := w.kube.Discovery().ServerVersion(); err != nil {
				t.Fatal(err)
			} else if version.Minor < "37" && bytes.Contains(text, []byte("`HPAScaleToZero`")) {
				t.Skipf("%s has no scale to zero", version)
			}
			steps, err := pages.Steps(string(text))
			if err != nil || len(steps) < 5 {
				t.Fatalf("%d commands, %v", len(steps), err)
			}
			for _, step := range steps {
				took := eventually(t, step.Command, time.Minute, func() error {
					cmd := exec.CommandContext(t.Context(), "bash", "-c", step.Command)
					cmd.Dir, cmd.Env = filepath.Dir(page), env
					out, err := cmd.CombinedOutput()
					switch {
					case err != nil:
						return fmt.Errorf("%w: %s", err, out)
					case !pages.Matches(step, string(out)):
						return fmt.Errorf("it prints\n%s\nand the page shows\n%s", out, step.Text)
					}
					return nil
				})
				t.Logf("%5.1fs $ %s", took.Seconds(), step.Command)
			}
		})
	}
}

// writeTargets writes the pods that ask to be scraped as targets for Prometheus,
// unless that is what was written.
func (w *testCluster) writeTargets(t *testing.T, file string, written *[]byte) error {
	pods, err := w.kube.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	type group struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	groups := []group{}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Annotations["prometheus.io/scrape"] == "true" && p.Status.PodIP != "" && p.DeletionTimestamp == nil {
			groups = append(groups, group{[]string{p.Status.PodIP + ":" + p.Annotations["prometheus.io/port"]}, map[string]string{"namespace": p.Namespace, "pod": p.Name}})
		}
	}
	now, err := json.Marshal(groups)
	if err != nil || bytes.Equal(now, *written) {
		return err
	}
	if err := os.WriteFile(file+".new", now, 0o600); err != nil {
		return err
	}
	*written = now
	return os.Rename(file+".new", file) // Prometheus never reads half a file
}
