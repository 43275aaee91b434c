package deploy

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// TestChartsCertificateIsRenewed renders the chart for a cluster that has its Secret: the certificate stays
// until two thirds of its time have passed.
func TestChartsCertificateIsRenewed(t *testing.T) {
	needHelm(t)
	const days = 30
	f := func(name string, annotations map[string]any, wantKept bool) {
		t.Helper()
		annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"] = "weir", "weir-system"
		secret := map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
			"metadata": map[string]any{"namespace": "weir-system", "name": "weir-serving-cert", "annotations": annotations, "labels": map[string]any{"app.kubernetes.io/managed-by": "Helm"}},
			"data":     map[string]any{"tls.crt": "b2xk", "tls.key": "b2xk"},
		}
		certificate, renewAt := renderedCertificate(t, secret, days)
		if wantKept {
			if certificate != "b2xk" || renewAt != annotations["weir.dev/renew-at"] {
				t.Errorf("%s: the certificate is not that of the Secret, or is renewed at %s", name, renewAt)
			}
			return
		}
		if certificate == "b2xk" {
			t.Errorf("%s: the certificate is that of the Secret, want a new one", name)
			return
		}
		text, err := base64.StdEncoding.DecodeString(certificate)
		if err != nil {
			t.Fatal(err)
		}
		ends, at := notAfter(t, text), time.Unix(number(t, renewAt), 0)
		if rest, want := ends.Sub(at), days*24*time.Hour/3; rest < want-time.Minute || rest > want+time.Minute {
			t.Errorf("%s: the new certificate is renewed %v before its end, want %v", name, rest, want)
		}
	}
	at := func(from time.Duration) map[string]any {
		return map[string]any{"weir.dev/renew-at": strconv.FormatInt(time.Now().Add(from).Unix(), 10)}
	}
	f("before its time", at(time.Hour), true)
	f("after its time", at(-time.Hour), false)
	f("of a chart that wrote no time", map[string]any{}, false)
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func notAfter(t *testing.T, certificate []byte) time.Time {
	t.Helper()
	block, _ := pem.Decode(certificate)
	if block == nil {
		t.Fatalf("no certificate in PEM: %q", certificate)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c.NotAfter
}

// renderedCertificate returns the certificate of the rendered Secret, and when it is renewed. The cluster has
// one object, secret.
func renderedCertificate(t *testing.T, secret any, days int) (certificate, renewAt string) {
	t.Helper()
	values := []string{"--namespace=weir-system", "--set=tls.type=helm,tls.helm.certDurationDays=" + strconv.Itoa(days)}
	answers := discovery(helmTemplate(t, values...))
	answers["/api/v1/namespaces/weir-system/secrets/weir-serving-cert"] = secret
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\ncurrent-context: c\n", server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := helm()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path, "template", "weir", chart, "--dry-run=server", "--disable-openapi-validation", "--kubeconfig="+kubeconfig,
		values[0], values[1]).Output()
	if err != nil {
		t.Fatalf("helm template: %v: %s", err, stderrOf(err))
	}
	for _, document := range documents(out) {
		var o struct {
			Kind     string            `json:"kind"`
			Data     map[string]string `json:"data"`
			Metadata struct {
				Name        string            `json:"name"`
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
		}
		if err := yaml.Unmarshal(document, &o); err == nil && o.Kind == "Secret" && o.Metadata.Name == "weir-serving-cert" {
			return o.Data["tls.crt"], o.Metadata.Annotations["weir.dev/renew-at"]
		}
	}
	t.Fatal("the chart has no Secret weir-serving-cert")
	return "", ""
}

// discovery returns the answers of an API server, by path, that has the kinds of these objects.
func discovery(objects []object) map[string]any {
	answers := map[string]any{
		"/version": map[string]any{"major": "1", "minor": "34", "gitVersion": "v1.34.0"},
		"/api":     map[string]any{"kind": "APIVersions", "versions": []string{"v1"}},
	}
	kinds := map[string][]any{}
	for _, o := range objects {
		version, _ := o["apiVersion"].(string)
		kinds[version] = append(kinds[version], map[string]any{"name": strings.ToLower(o.kind()) + "s", "namespaced": true, "kind": o.kind(), "verbs": []string{"get", "list"}})
	}
	var groups []any
	for version, all := range kinds {
		path := "/api/" + version
		if group, short, named := strings.Cut(version, "/"); named {
			path = "/apis/" + version
			one := map[string]any{"groupVersion": version, "version": short}
			groups = append(groups, map[string]any{"name": group, "versions": []any{one}, "preferredVersion": one})
		}
		answers[path] = map[string]any{"kind": "APIResourceList", "groupVersion": version, "resources": all}
	}
	answers["/apis"] = map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
	return answers
}
