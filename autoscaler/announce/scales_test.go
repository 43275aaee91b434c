package announce

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// TestScales asks an API server made of a few documents, as one sends them: what
// client-go makes of discovery and of a scale is part of the test.
func TestScales(t *testing.T) {
	const resources = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":%q,"resources":[%s]}`
	const one = `{"name":%q,"singularName":"","namespaced":true,"kind":%q,"verbs":["get"]}`
	const found = `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"x","namespace":"shop"},"spec":{"replicas":1},"status":{"replicas":1,"selector":%q}}`
	group := func(name, version string) string {
		return fmt.Sprintf(`{"name":%q,"versions":[{"groupVersion":"%[1]s/%[2]s","version":%[2]q}],"preferredVersion":{"groupVersion":"%[1]s/%[2]s","version":%[2]q}}`, name, version)
	}
	var rollouts atomic.Bool
	var discoveries atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		groups := group("apps", "v1")
		if rollouts.Load() {
			groups += "," + group("argoproj.io", "v1alpha1")
		}
		documents := map[string]string{
			"/api":                       `{"kind":"APIVersions","versions":["v1"]}`,
			"/api/v1":                    fmt.Sprintf(resources, "v1", fmt.Sprintf(one, "replicationcontrollers", "ReplicationController")),
			"/apis":                      `{"kind":"APIGroupList","apiVersion":"v1","groups":[` + groups + `]}`,
			"/apis/apps/v1":              fmt.Sprintf(resources, "apps/v1", fmt.Sprintf(one, "deployments", "Deployment")),
			"/apis/argoproj.io/v1alpha1": fmt.Sprintf(resources, "argoproj.io/v1alpha1", fmt.Sprintf(one, "rollouts", "Rollout")),
			"/api/v1/namespaces/shop/replicationcontrollers/old/scale":         fmt.Sprintf(found, "app=old"),
			"/apis/apps/v1/namespaces/shop/deployments/web/scale":              fmt.Sprintf(found, "app=web,tier in (a,b)"),
			"/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/canary/scale": fmt.Sprintf(found, "app=canary"),
			"/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/mute/scale":   fmt.Sprintf(found, ""),
		}
		if r.URL.Path == "/apis" {
			discoveries.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		text, ok := documents[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			text = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
		}
		_, _ = w.Write([]byte(text))
	}))
	defer front.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	scales, err := NewScales(&rest.Config{Host: front.URL, Transport: transport, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"}})
	if err != nil {
		t.Fatal(err)
	}
	f := func(apiVersion, kind, name, want, wrong string) {
		t.Helper()
		selector, err := scales.Selector(t.Context(), "shop", apiVersion, kind, name)
		if wrong != "" {
			if err == nil || err.Error() != wrong {
				t.Errorf("%s %s: got %v, %v; want the error %s", kind, name, selector, err, wrong)
			}
			return
		}
		if err != nil || selector.String() != want {
			t.Errorf("%s %s: got %v, %v; want %s", kind, name, selector, err, want)
		}
	}
	f("apps/v1", "Deployment", "web", "app=web,tier in (a,b)", "")
	f("apps/v1beta1", "Deployment", "web", "app=web,tier in (a,b)", "") // of another version, as old manifests name it
	f("v1", "ReplicationController", "old", "app=old", "")
	f("a/b/c", "Deployment", "web", "", "parse the target's apiVersion: unexpected GroupVersion string: a/b/c")
	if _, err := scales.Selector(t.Context(), "shop", "apps/v1", "Deployment", "gone"); !apierrors.IsNotFound(err) || !final(err) {
		t.Errorf("a workload that is not there: got %v, want NotFound", err)
	}
	before := discoveries.Load()
	// A kind that nobody knows is looked for once more, and then not for a while.
	for range 3 {
		if _, err := scales.Selector(t.Context(), "shop", "kruise.io/v1", "CloneSet", "x"); err == nil || !final(err) {
			t.Errorf("an unknown kind: got %v, want that it is not there", err)
		}
	}
	if got := discoveries.Load() - before; got != 1 {
		t.Errorf("unknown kinds had the API server asked %d times what it has, want once", got)
	}
	// A custom resource that has come since is found.
	rollouts.Store(true)
	scales.mu.Lock()
	scales.mu.discovered = scales.mu.discovered.Add(-rediscover)
	scales.mu.Unlock()
	f("argoproj.io/v1alpha1", "Rollout", "canary", "app=canary", "")
	f("argoproj.io/v1alpha1", "Rollout", "mute", "", errNoSelector.Error())
}

// An API server that never answers keeps nobody: not the next lookup, and not the
// end of the process.
func TestScalesOfASilentServer(t *testing.T) {
	asked := make(chan string, 1)
	front := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.Path:
		default: // one is enough
		}
		<-r.Context().Done()
	}))
	defer front.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	scales, err := NewScales(&rest.Config{Host: front.URL, Transport: transport, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := scales.Selector(ctx, "shop", "apps/v1", "Deployment", "web")
		done <- err
	}()
	<-asked
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's end", err)
	}
}
