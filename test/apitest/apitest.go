// Package apitest helps to test the Kubernetes APIs: it has a real generic API
// server with one API, and collects the warnings that a client gets.
package apitest

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/common"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core"
)

// Main runs the tests of a package. It fails if a goroutine still runs at the
// end.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The generic server starts these and cannot stop them.
		goleak.IgnoreAnyFunction("k8s.io/apiserver/pkg/server/filters.(*requestWatermark).tick"),
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		goleak.IgnoreAnyFunction("k8s.io/client-go/util/workqueue.(*Typed[...]).updateUnfinishedWorkLoop"),
	)
}

// Serve starts an API server and returns the configuration of its clients.
// install installs an API with types that scheme and definitions describe.
func Serve(t testing.TB, scheme *runtime.Scheme, definitions common.GetOpenAPIDefinitions, install func(*genericapiserver.GenericAPIServer) error) *rest.Config {
	t.Helper()
	all := func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		d := core.GetOpenAPIDefinitions(ref)
		maps.Copy(d, definitions(ref))
		return d
	}
	config := genericapiserver.NewConfig(serializer.NewCodecFactory(scheme))
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.ExternalAddress = "weir.test:443"
	config.LoopbackClientConfig = &rest.Config{}
	namer := openapi.NewDefinitionNamer(scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(all, namer)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(all, namer)
	server, err := config.Complete(nil).New("test", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatalf("make a server: %v", err)
	}
	t.Cleanup(server.Destroy)
	if err := install(server); err != nil {
		t.Fatal(err)
	}
	server.PrepareRun()
	frontServer := httptest.NewServer(server.Handler)
	t.Cleanup(frontServer.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &rest.Config{Host: frontServer.URL, Transport: transport, QPS: -1}
}

// Warnings collects the warnings that a client gets. It is the WarningHandler
// of its rest.Config. Several goroutines may use it.
type Warnings struct {
	mu struct {
		sync.Mutex
		texts []string
	}
}

// HandleWarningHeader records a text, with its code and agent if they are not
// weir's.
func (w *Warnings) HandleWarningHeader(code int, agent, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code != 299 || agent != "weir" {
		text = fmt.Sprintf("code %d of %s: %s", code, agent, text)
	}
	w.mu.texts = append(w.mu.texts, text)
}

// Take returns the texts since the last call.
func (w *Warnings) Take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.mu.texts
	w.mu.texts = nil
	return texts
}
