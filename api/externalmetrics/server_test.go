package externalmetrics

import (
	"os"
	"path/filepath"
	"testing"

	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/metrics/pkg/client/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	generated "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/externalmetrics"

	"github.com/weir-metrics/weir/test/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// serve starts a real API server with the external metrics of p, and returns the configuration of a
// client.
func serve(t *testing.T, p *Provider) *rest.Config {
	t.Helper()
	return apitest.Serve(t, apiserver.Scheme, generated.GetOpenAPIDefinitions, func(s *genericserver.GenericAPIServer) error {
		return Install(s, p)
	})
}

// client returns the client that the autoscaler of kube-controller-manager uses.
func client(t *testing.T, p *Provider) external_metrics.ExternalMetricsClient {
	t.Helper()
	c, err := external_metrics.NewForConfig(serve(t, p))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// write writes a file of rules into a new folder and returns its name.
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
