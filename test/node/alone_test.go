//go:build e2e

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/api/nodeapi"
)

// TestAgentWithoutAPIServer starts an agent that never reaches the API server.
// It knows the pods from the kubelet: their names, and their requests, by which
// it ranks them.
func TestAgentWithoutAPIServer(t *testing.T) {
	const port = 18087
	w := sharedCluster
	if w.v2 {
		t.Skip("processes of the harness run on this machine")
	}
	if v, err := w.kube.Discovery().ServerVersion(); err != nil {
		t.Fatal(err)
	} else if v.Minor < "37" {
		t.Skipf("the kubelet of %s has no Pods API", v.GitVersion)
	}
	namespace := w.namespace(t, "alone")
	pod := w.create(t, namespace, w.pod("known", "", requests(10*mi, mi), "use", "--millicores=10", fmt.Sprintf("--bytes=%d", 40*mi)))["known"]
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, []byte(`apiVersion: v1
kind: Config
current-context: away
clusters: [{name: away, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: nobody, user: {token: none}}]
contexts: [{name: away, context: {cluster: away, user: nobody}}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	binary, err := filepath.Abs(filepath.Join(root, "bin", "weir"))
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("http://%s:%d", w.NodeIP(), port)
	args := []string{
		"agent", "--kubeconfig=" + config, "--node-name=" + w.Node(), "--kubelet-url=https://127.0.0.1:1", "--secure-port=0",
		fmt.Sprintf("--listen=%s:%d", w.NodeIP(), port), "--allow-unauthenticated", "--log-format=json",
	}
	if err := w.StartProcess(t.Context(), "weir-alone", binary, args, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.StopProcess(context.Background(), "weir-alone"); err != nil {
			t.Error(err)
		}
	})
	ask := func(path string, into any) error {
		answer, err := http.Get(address + path)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err == nil && answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s: %s", path, answer.Status, body)
		}
		return errors.Join(err, json.Unmarshal(body, into))
	}
	eventually(t, "the agent knows the kubelet's pods", 2*time.Minute, func() error {
		var summary stats.Summary
		if err := ask("/stats/summary", &summary); err != nil {
			return err
		}
		named := false
		for i := range summary.Pods {
			p := &summary.Pods[i]
			named = named || p.PodRef.Name == "known" && p.PodRef.Namespace == namespace && p.PodRef.UID == string(pod.UID) && len(p.Containers) == 1 && p.Containers[0].Name == "main"
		}
		if !named {
			return fmt.Errorf("the summary's %d pods lack %s/known with its container", len(summary.Pods), namespace)
		}
		var report nodeapi.EvictionExplanation
		if err := ask("/apis/weir.dev/v1alpha1/nodes/"+w.Node()+"/eviction", &report); err != nil {
			return err
		}
		ranking, err := rankingFor(&report, "memory.available")
		if err != nil {
			return err
		}
		for i := range ranking.Pods {
			if p := &ranking.Pods[i]; p.UID == string(pod.UID) && p.Request != nil && *p.Request == float64(10*mi) && p.Usage != nil {
				t.Logf("%d pods are known from the kubelet", len(ranking.Pods))
				return nil
			}
		}
		return fmt.Errorf("the report ranks %d pods, without %s/known and its request", len(ranking.Pods), namespace)
	})
}
