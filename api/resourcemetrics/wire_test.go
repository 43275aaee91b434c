package resourcemetrics_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/client-go/rest"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/weir-metrics/weir/api/resourcemetrics"
	"github.com/weir-metrics/weir/test/cmptest"
)

const (
	apiPath = "/apis/metrics.k8s.io/v1beta1"
	podsIn  = apiPath + "/namespaces/shop/pods"
)

// get sends a request as a plain HTTP client.
func get(t testing.TB, config *rest.Config, path string, header ...string) (*http.Response, []byte) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := config.Transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, body
}

func TestBytes(t *testing.T) {
	config := serve(t, village(t).options())
	for path, want := range map[string]string{
		podsIn + "/web-0": `{"kind":"PodMetrics","apiVersion":"metrics.k8s.io/v1beta1",` +
			`"metadata":{"name":"web-0","namespace":"shop","creationTimestamp":"2026-01-02T12:00:01Z","labels":{"app":"web","tier":"front"}},` +
			`"timestamp":"2026-01-02T11:59:55Z","window":"20s","containers":[` +
			`{"name":"app","usage":{"cpu":"12345679n","memory":"100000000"}},` +
			`{"name":"mesh","usage":{"cpu":"500n","memory":"1Mi"}}]}`,
		apiPath + "/nodes/n1": `{"kind":"NodeMetrics","apiVersion":"metrics.k8s.io/v1beta1",` +
			`"metadata":{"name":"n1","creationTimestamp":"2026-01-02T12:00:01Z","labels":{"zone":"a"}},` +
			`"timestamp":"2026-01-02T11:59:58Z","window":"15s","usage":{"cpu":"1234567891n","memory":"3Gi"}}`,
		apiPath + "/namespaces/kube-system/pods": `{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[` +
			`{"metadata":{"name":"agent","namespace":"kube-system","creationTimestamp":"2026-01-02T12:00:01Z","labels":{"app":"agent"}},` +
			`"timestamp":"2026-01-02T11:59:57Z","window":"15s","containers":[{"name":"agent","usage":{"cpu":"7m","memory":"8Mi"}}]}]}`,
		apiPath + "/namespaces/nowhere/pods": `{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[]}`,
	} {
		response, got := get(t, config, path)
		if diff := cmp.Diff(want+"\n", string(got)); response.StatusCode != http.StatusOK || diff != "" {
			t.Errorf("%s: status %d (-want +got):\n%s", path, response.StatusCode, diff)
		}
	}
}

// TestEncodings requests the same list in every encoding.
func TestEncodings(t *testing.T) {
	config := serve(t, village(t).options())
	scheme, err := resourcemetrics.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.WithSerializer(cbor.NewSerializerInfo)).UniversalDeserializer()
	var want runtime.Object
	for _, contentType := range []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor"} {
		response, body := get(t, config, podsIn, "Accept", contentType)
		if got := response.Header.Get("Content-Type"); got != contentType {
			t.Errorf("asked for %s, got %s: %s", contentType, got, body)
			continue
		}
		got, _, err := decoder.Decode(body, nil, nil)
		if err != nil {
			t.Errorf("decode %s: %v", contentType, err)
			continue
		}
		if n := len(got.(*v1beta1.PodMetricsList).Items); n != 2 {
			t.Errorf("%s: got %d pods, want 2", contentType, n)
		}
		if want == nil {
			want = got
		} else if !apiequality.Semantic.DeepEqual(want, got) {
			t.Errorf("%s and JSON differ:\ngot  %v\nwant %v", contentType, got, want)
		}
	}
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		c, _ := client(t, config, contentType)
		got, err := c.MetricsV1beta1().PodMetricses("shop").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Errorf("list as %s: %v", contentType, err)
		} else if !apiequality.Semantic.DeepEqual(want.(*v1beta1.PodMetricsList).Items, got.Items) {
			t.Errorf("the typed client got %v as %s, want %v", got, contentType, want)
		}
	}
	if response, body := get(t, config, podsIn, "Accept", "text/csv"); response.StatusCode != http.StatusNotAcceptable {
		t.Errorf("asked for CSV, got status %d: %s", response.StatusCode, body)
	}
}

func TestGzip(t *testing.T) {
	w := newFixture()
	fill(t, w, 4, 200, 2) // the library does not compress small answers
	config := serve(t, w.options())
	_, plain := get(t, config, apiPath+"/pods", "Accept-Encoding", "identity")
	response, body := get(t, config, apiPath+"/pods", "Accept-Encoding", "gzip")
	if got := response.Header.Get("Content-Encoding"); got != "gzip" {
		t.Fatalf("got encoding %q, want gzip", got)
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(plain), string(unpacked)); diff != "" {
		t.Errorf("gzip and identity differ:\n%s", diff)
	}
}

const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" // what kubectl requests

func TestTables(t *testing.T) {
	config := serve(t, village(t).options())
	for path, want := range map[string][][]any{
		podsIn:                               {{"api", "0", "4Ki", "15s"}, {"web-0", "12346179n", "101048576", "20s"}},
		podsIn + "/web-0":                    {{"web-0", "12346179n", "101048576", "20s"}},
		apiPath + "/nodes":                   {{"n1", "1234567891n", "3Gi", "15s"}},
		apiPath + "/nodes/n1":                {{"n1", "1234567891n", "3Gi", "15s"}},
		apiPath + "/namespaces/nowhere/pods": nil,
	} {
		_, body := get(t, config, path, "Accept", asTable)
		var table metav1.Table
		if err := json.Unmarshal(body, &table); err != nil || table.Kind != "Table" {
			t.Errorf("%s: got %v: %s", path, err, body)
			continue
		}
		var columns []string
		for _, c := range table.ColumnDefinitions {
			columns = append(columns, c.Name)
		}
		cmptest.Equal(t, fmt.Sprintf("%s: columns", path), []string{"Name", "cpu", "memory", "Window"}, columns)
		var rows [][]any
		for _, r := range table.Rows {
			rows = append(rows, r.Cells)
			// kubectl reads the namespace from it.
			var o metav1.PartialObjectMetadata
			if err := json.Unmarshal(r.Object.Raw, &o); err != nil || o.Kind != "PartialObjectMetadata" || o.Name != r.Cells[0] {
				t.Errorf("%s: row %v has the object %s (%v)", path, r.Cells, r.Object.Raw, err)
			}
		}
		cmptest.Equal(t, fmt.Sprintf("%s: rows", path), want, rows)
	}
	_, body := get(t, config, podsIn+"/web-0?includeObject=Object", "Accept", asTable)
	var table metav1.Table
	var o v1beta1.PodMetrics
	if err := json.Unmarshal(body, &table); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(table.Rows[0].Object.Raw, &o); err != nil || o.Kind != "PodMetrics" || len(o.Containers) != 2 {
		t.Errorf("a whole object in the row: got %s (%v)", table.Rows[0].Object.Raw, err)
	}
}

func TestPartialObjectMetadata(t *testing.T) {
	_, body := get(t, serve(t, village(t).options()), podsIn, "Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 2 || list.Items[1].Name != "web-0" || list.Items[1].Labels["tier"] != "front" {
		t.Errorf("got %s", body)
	}
}
