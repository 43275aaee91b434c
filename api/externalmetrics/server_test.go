package externalmetrics

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	"k8s.io/metrics/pkg/client/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	generatedcore "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core"
	generated "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/externalmetrics"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The generic server starts these and has no way to stop them.
		goleak.IgnoreAnyFunction("k8s.io/apiserver/pkg/server/filters.(*requestWatermark).tick"),
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		goleak.IgnoreAnyFunction("k8s.io/client-go/util/workqueue.(*Typed[...]).updateUnfinishedWorkLoop"),
	)
}

func definitions(ref openapicommon.ReferenceCallback) map[string]openapicommon.OpenAPIDefinition {
	all := generated.GetOpenAPIDefinitions(ref)
	for name, d := range generatedcore.GetOpenAPIDefinitions(ref) {
		all[name] = d
	}
	return all
}

// serve starts a real API server with the external metrics of p, and returns how
// to reach it.
func serve(t *testing.T, p *Provider) *rest.Config {
	t.Helper()
	config := genericserver.NewConfig(apiserver.Codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.ExternalAddress = "weir.test:443"
	config.LoopbackClientConfig = &rest.Config{}
	namer := openapinamer.NewDefinitionNamer(apiserver.Scheme)
	config.OpenAPIConfig = genericserver.DefaultOpenAPIConfig(definitions, namer)
	config.OpenAPIV3Config = genericserver.DefaultOpenAPIV3Config(definitions, namer)
	server, err := config.Complete(nil).New("test", genericserver.NewEmptyDelegate())
	if err != nil {
		t.Fatalf("make a server: %v", err)
	}
	t.Cleanup(server.Destroy)
	if err := Install(server, p); err != nil {
		t.Fatal(err)
	}
	server.PrepareRun()
	front := httptest.NewServer(server.Handler)
	t.Cleanup(front.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &rest.Config{Host: front.URL, Transport: transport, QPS: -1}
}

// client returns the client that kube-controller-manager's autoscaler uses.
func client(t *testing.T, p *Provider) external_metrics.ExternalMetricsClient {
	t.Helper()
	c, err := external_metrics.NewForConfig(serve(t, p))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// write writes a file of rules into a folder of its own and returns its name.
func write(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// provide returns a Provider with the rules.
func provide(t *testing.T, o Options, rules string) *Provider {
	t.Helper()
	o.File = write(t, rules)
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}
