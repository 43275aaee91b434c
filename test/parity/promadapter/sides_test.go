package promadapter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/common"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	customdefinitions "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/custommetrics"
	externaldefinitions "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/externalmetrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
	promclient "sigs.k8s.io/prometheus-adapter/pkg/client"
	"sigs.k8s.io/prometheus-adapter/pkg/config"
	adaptercustom "sigs.k8s.io/prometheus-adapter/pkg/custom-provider"
	adapterexternal "sigs.k8s.io/prometheus-adapter/pkg/external-provider"
	"sigs.k8s.io/prometheus-adapter/pkg/naming"

	"github.com/weir-metrics/weir/api/custommetrics"
	"github.com/weir-metrics/weir/api/externalmetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/client/importcmd"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/test/apitest"
)

// side is one of the two adapters: a server with both APIs.
type side struct {
	url      string
	client   *http.Client
	custom   []provider.CustomMetricInfo
	external []provider.ExternalMetricInfo
}

// serve starts a server with both APIs.
func serve(t testing.TB, c provider.CustomMetricsProvider, e provider.ExternalMetricsProvider) *side {
	definitions := func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		all := customdefinitions.GetOpenAPIDefinitions(ref)
		maps.Copy(all, externaldefinitions.GetOpenAPIDefinitions(ref))
		return all
	}
	server := apitest.Serve(t, apiserver.Scheme, definitions, func(s *genericserver.GenericAPIServer) error {
		if err := custommetrics.Install(s, c); err != nil {
			return err
		}
		return externalmetrics.Install(s, e)
	})
	return &side{url: server.Host, client: &http.Client{Transport: server.Transport}}
}

// withoutTimeout leaves out the parameter timeout. The adapter computes a negative one, which its own version of
// prometheus/common writes as nothing, and the version of this module as a number that Prometheus refuses.
type withoutTimeout struct{ promclient.GenericAPIClient }

func (w withoutTimeout) Do(ctx context.Context, verb, endpoint string, query url.Values) (promclient.APIResponse, error) {
	query.Del("timeout")
	return w.GenericAPIClient.Do(ctx, verb, endpoint, query)
}

// adapterSide starts prometheus-adapter with a configuration. It returns when the adapter has listed the series.
func adapterSide(t testing.TB, content []byte, prometheus, objectsURL string) *side {
	t.Helper()
	c, err := config.FromYAML(content)
	if err != nil {
		t.Fatalf("%v in\n%s", err, content)
	}
	mapper := newMapper()
	objects, err := dynamic.NewForConfig(&rest.Config{Host: objectsURL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	base, err := url.Parse(prometheus)
	if err != nil {
		t.Fatal(err)
	}
	asks := promclient.NewClientForAPI(withoutTimeout{promclient.NewGenericAPIClient(http.DefaultClient, base, nil)}, http.MethodPost)
	namers := func(rules []config.DiscoveryRule) []naming.MetricNamer {
		all, err := naming.NamersFromConfig(rules, mapper)
		if err != nil {
			t.Fatalf("%v in\n%s", err, content)
		}
		return all
	}
	const relist = 10 * time.Minute
	custom, customLister := adaptercustom.NewPrometheusProvider(mapper, objects, asks, namers(c.Rules), relist, relist)
	external, externalLister := adapterexternal.NewExternalPrometheusProvider(asks, namers(c.ExternalRules), relist, relist)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	customLister.RunUntil(ctx.Done())
	externalLister.RunUntil(ctx.Done())
	for len(c.Rules) > 0 && len(custom.ListAllMetrics()) == 0 || len(c.ExternalRules) > 0 && len(external.ListAllExternalMetrics()) == 0 {
		select {
		case <-ctx.Done():
			t.Fatal("prometheus-adapter has listed no series in a minute")
		case <-time.After(10 * time.Millisecond):
		}
	}
	s := serve(t, custom, external)
	s.custom, s.external = custom.ListAllMetrics(), external.ListAllExternalMetrics()
	return s
}

// weirSide starts weir with the rules that weir import writes from the configuration. It also returns what weir import
// says, and the rules.
func weirSide(t testing.TB, content []byte, objects []object, prometheus, objectsURL string) (s *side, notes, rules string) {
	t.Helper()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "adapter.yaml"), filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(from, content, 0o600); err != nil {
		t.Fatal(err)
	}
	root := &cobra.Command{Use: "weir"}
	root.AddCommand(importcmd.NewCommand())
	var out, errOut bytes.Buffer
	cli.Main(t.Context(), root, []string{"import", "prometheus-adapter", from, "--url=" + prometheus, "--custom-resource=replicators.example.com,policies.example.com"}, &out, &errOut)
	if err := os.WriteFile(to, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	external, err := externalmetrics.New(externalmetrics.Options{File: to})
	if err != nil {
		t.Fatalf("%v after %s in\n%s", err, errOut.String(), out.String())
	}
	t.Cleanup(external.Close)
	client, err := metadata.NewForConfig(&rest.Config{Host: objectsURL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	mapper, known := newMapper(), facts(objects)
	custom := custommetrics.New(custommetrics.Options{
		View: func() custommetrics.SampleReader { return nil }, Facts: func() *cluster.Facts { return known }, Sources: func() []explain.SourceState { return nil }, Rules: external,
		Objects: &custommetrics.ClusterObjects{Client: client, Resource: func(_ context.Context, r schema.GroupResource) (schema.GroupVersionResource, error) {
			return mapper.ResourceFor(r.WithVersion(""))
		}},
	})
	s = serve(t, custom, external)
	s.custom, s.external = external.ListObjectMetrics(), external.ListAllExternalMetrics()
	return s, errOut.String(), out.String()
}

// answer is what a side says to a question.
type answer struct {
	status int
	// values are in thousandths, by the objects or labels that they are of.
	values  map[string]int64
	message string
}

func (a *answer) String() string {
	if a.status != http.StatusOK {
		return fmt.Sprintf("%d %s", a.status, a.message)
	}
	return fmt.Sprintf("%d %v", a.status, a.values)
}

// ask returns the answer to a GET.
func (s *side) ask(t testing.TB, path string) *answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var list struct {
		Message string
		Items   []struct {
			DescribedObject struct{ Kind, Namespace, Name string }
			Metric          json.RawMessage
			MetricName      string
			MetricLabels    map[string]string
			Value           resource.Quantity
		}
	}
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatalf("%s: %v in %s", path, err, body)
	}
	a := &answer{status: response.StatusCode, values: map[string]int64{}, message: list.Message}
	for _, item := range list.Items {
		id := strings.TrimSpace(fmt.Sprint(item.DescribedObject, string(item.Metric), item.MetricName, item.MetricLabels))
		if _, twice := a.values[id]; twice {
			t.Errorf("%s: two values of %s", path, id)
		}
		a.values[id] = item.Value.MilliValue()
	}
	return a
}
