package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/weir-metrics/weir/internal/cli"
)

// The transcripts are what a user types and sees. Behind them stands an API
// server that proxies to a weir with one pod, and says what real ones say for
// everything else.
func TestTranscripts(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.EscapedPath() {
		case "/api/v1/namespaces/weir-system/services/https:weir:/proxy/weir/v1/usage/pods":
			if r.Header.Get("Authorization") != "Bearer secret" {
				w.WriteHeader(http.StatusForbidden)
				io.WriteString(w, `{"kind":"Status","message":"services \"https:weir:\" is forbidden"}`)
				return
			}
			fmt.Fprintf(w, `{"resource":"pods","items":[{"namespace":%q,"pod":"web","cpu":{"nanocores":250000000},"memory":{"workingSetBytes":188743680}}]}`,
				cmp.Or(r.URL.Query().Get("namespace"), "bank"))
		case "/weir/v1/usage/nodes":
			io.WriteString(w, `{"resource":"nodes","items":[{"node":"n1"}]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"kind":"Status","message":"services \"weir\" not found"}`)
		}
	})
	api, direct := httptest.NewTLSServer(answer), httptest.NewServer(answer)
	defer api.Close()
	defer direct.Close()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw}))

	dir := t.TempDir()
	for _, name := range []string{"secret", "wrong"} {
		kubeconfig := strings.NewReplacer("SERVER", api.URL, "TOKEN", name, "AUTHORITY", ca).Replace(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "SERVER", certificate-authority-data: "AUTHORITY"}}]
users: [{name: u, user: {token: TOKEN}}]
contexts: [{name: x, context: {cluster: c, user: u, namespace: shop}}]
current-context: x
`)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(kubeconfig), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "secret"))

	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			var out bytes.Buffer
			for line := range strings.Lines(d.Input) {
				words := strings.Fields(strings.NewReplacer("$SERVER", direct.URL, "$DIR", dir).Replace(line))
				if len(words) < 2 || words[0] != "kubectl" || words[1] != "weir" {
					t.Fatalf("%s: %q is no command of the plugin's", d.Pos, line)
				}
				if status := cli.Main(t.Context(), newRoot(func(string) string { return "" }), words[2:], &out, &out); status != 0 {
					fmt.Fprintf(&out, "exit status %d\n", status)
				}
			}
			return strings.NewReplacer(direct.URL, "$SERVER", dir, "$DIR").Replace(out.String())
		})
	})
}
