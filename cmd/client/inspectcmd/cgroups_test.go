package inspectcmd

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/cmd/client/cli"
)

// podList contains one pod of the class Burstable.
const podList = `{"kind":"PodList","apiVersion":"v1","items":[{
"metadata":{"namespace":"shop","name":"web","uid":"aaaaaaaa-0000-4000-8000-aaaaaaaaaaaa","annotations":{"kubernetes.io/config.source":"api"}},
"spec":{"nodeName":"n1","containers":[{"name":"app"}]},
"status":{"phase":"Running","qosClass":"Burstable"}}]}`

// TestInspect shows the input and output that a user of weir inspect sees. The cgroups are plain
// directories: unlike cgroups, they cannot be removed while they contain files.
func TestInspect(t *testing.T) {
	dir := t.TempDir()
	made := time.Now().Add(-4 * time.Hour)
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Dir(path), made, made); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("cgroup/cgroup.controllers", "cpu\n")
	for path, procs := range map[string]string{
		"": "1\n", "kubepods": "", "kubepods/burstable": "", "kubepods/besteffort": "",
		"kubepods/burstable/podaaaaaaaa-0000-4000-8000-aaaaaaaaaaaa":  "101\n",
		"kubepods/besteffort/podbbbbbbbb-0000-4000-8000-bbbbbbbbbbbb": "",
	} {
		write(filepath.Join("cgroup", path, "cgroup.procs"), procs)
	}
	write("proc/stat", "btime 1700000000\n")
	write("none/cgroup.procs", "")
	write("none/cgroup.controllers", "")
	token := write("token", "secret\n")
	pods := write("pods.json", podList)

	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/pods" || r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		w.Write([]byte(podList))
	}))
	t.Cleanup(kubelet.Close)
	ca := write("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: kubelet.Certificate().Raw})))
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/v1/pods" && r.URL.Query().Get("fieldSelector") == "spec.nodeName=n1" && r.URL.Query().Get("resourceVersion") == "" {
			w.Write([]byte(podList))
			return
		}
		w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","items":[]}`))
	}))
	t.Cleanup(api.Close)

	expand := strings.NewReplacer(
		"$CGROUP", "--cgroupfs="+filepath.Join(dir, "cgroup")+" --procfs="+filepath.Join(dir, "proc"),
		"$NONE", "--cgroupfs="+filepath.Join(dir, "none"),
		"$PODS", pods, "$DIR", dir, "$TOKEN", token, "$CA", ca, "$KUBELET", kubelet.URL,
		"$KUBECONFIG", kubeconfig(t, api, "secret"),
		"$STATUS", write("status.json", `{"kind":"Status","status":"Failure","message":"forbidden"}`),
		"$PART", write("part.json", `{"kind":"PodList","metadata":{"continue":"x"},"items":[]}`),
		"$NODES", write("nodes.json", `{"kind":"List","items":[{"kind":"Node","metadata":{"name":"n1","uid":"u"}}]}`),
		"$GARBAGE", write("garbage.json", `<html>`),
	)
	shorten := strings.NewReplacer(dir, "DIR", strings.TrimPrefix(kubelet.URL, "https://"), "KUBELET")
	varies := regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*(Z| UTC)|"inode": \d+|inode: \d+`)
	datadriven.RunTest(t, "testdata/transcript.txt", func(t *testing.T, d *datadriven.TestData) string {
		var out bytes.Buffer
		for line := range strings.Lines(d.Input) {
			root := &cobra.Command{Use: "weir"}
			root.AddCommand(NewCommand(func(string) string { return "" }))
			words := strings.Fields(expand.Replace(line))
			if status := cli.Main(t.Context(), root, words[1:], &out, &out); status != 0 {
				out.WriteString("exit status 1\n")
			}
		}
		return varies.ReplaceAllStringFunc(shorten.Replace(out.String()), func(s string) string {
			if key, _, ok := strings.Cut(s, "inode"); ok {
				return key + "inode: N"
			}
			return "TIME"
		})
	})
	http.DefaultClient.CloseIdleConnections()
}

// kubeconfig writes a kubeconfig for a server with a token.
func kubeconfig(t *testing.T, server *httptest.Server, token string) string {
	t.Helper()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority: ca.crt}}]
users: [{name: u, user: {token: %s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, server.URL, token)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
