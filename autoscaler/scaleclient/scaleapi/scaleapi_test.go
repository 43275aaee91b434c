package scaleapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
)

func ref(apiVersion, kind, name string) autoscalingv2.CrossVersionObjectReference {
	return autoscalingv2.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}
}

// TestScales reads scales from an API server that serves a few real documents. This also tests
// client-go's discovery and decoding.
func TestScales(t *testing.T) {
	const resources = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":%q,"resources":[%s]}`
	const one = `{"name":%q,"singularName":"","namespaced":true,"kind":%q,"verbs":["get"]}`
	const found = `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"x","namespace":"shop"},"spec":{"replicas":1},"status":{"replicas":1,"selector":%q}}`
	group := func(name, version string) string {
		return fmt.Sprintf(`{"name":%q,"versions":[{"groupVersion":"%[1]s/%[2]s","version":%[2]q}],"preferredVersion":{"groupVersion":"%[1]s/%[2]s","version":%[2]q}}`, name, version)
	}
	var rollouts atomic.Bool
	var discoveries atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	defer proxy.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	scales, err := New(&rest.Config{Host: proxy.URL, Transport: transport, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"}})
	if err != nil {
		t.Fatal(err)
	}
	f := func(apiVersion, kind, name, want, wrong string) {
		t.Helper()
		got, _, err := scales.Get(t.Context(), "shop", ref(apiVersion, kind, name))
		selector, wrongSelector := scaleclient.Selector(got.Selector)
		if err == nil {
			err = wrongSelector
		}
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
	f("apps/v1beta1", "Deployment", "web", "app=web,tier in (a,b)", "") // another version, as in old manifests
	f("v1", "ReplicationController", "old", "app=old", "")
	f("a/b/c", "Deployment", "web", "", "parse the target's apiVersion: unexpected GroupVersion string: a/b/c")
	if _, _, err := scales.Get(t.Context(), "shop", ref("apps/v1", "Deployment", "gone")); !apierrors.IsNotFound(err) || !scaleclient.IsPermanent(err) {
		t.Errorf("a workload that is not there: got %v, want NotFound", err)
	}
	before := discoveries.Load()
	// A kind that does not exist leads to one more discovery, and then to none for a while.
	for range 3 {
		if _, _, err := scales.Get(t.Context(), "shop", ref("kruise.io/v1", "CloneSet", "x")); err == nil || !scaleclient.IsPermanent(err) {
			t.Errorf("an unknown kind: got %v, want that it is not there", err)
		}
	}
	if got := discoveries.Load() - before; got != 1 {
		t.Errorf("unknown kinds had the API server asked %d times what it has, want once", got)
	}
	// A custom resource that was installed later is found.
	rollouts.Store(true)
	scales.mu.Lock()
	scales.mu.discovered = scales.mu.discovered.Add(-rediscoverInterval)
	scales.mu.Unlock()
	f("argoproj.io/v1alpha1", "Rollout", "canary", "app=canary", "")
	f("argoproj.io/v1alpha1", "Rollout", "mute", "", scaleclient.ErrNoSelector.Error())
}

// TestScalesOfASilentServer checks that an API server that never answers blocks neither the next
// lookup nor the end of the process.
func TestScalesOfASilentServer(t *testing.T) {
	asked := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.Path:
		default: // one signal is enough
		}
		<-r.Context().Done()
	}))
	defer proxy.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	scales, err := New(&rest.Config{Host: proxy.URL, Transport: transport, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, _, err := scales.Get(ctx, "shop", ref("apps/v1", "Deployment", "web"))
		done <- err
	}()
	<-asked
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's end", err)
	}
}

// server is an API server with Deployments that have a scale. Other clients can change a scale
// between a read and a write.
type server struct {
	mu       sync.Mutex
	replicas int
	version  int
	meddle   int // the number of writes that find a change by another client
	leaves   int // the count that the other client wrote, unless it is 0
	gets     int
	updates  int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	write := func(code int, text string) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
	}
	switch {
	case r.URL.Path == "/api":
		write(200, `{"kind":"APIVersions","versions":["v1"]}`)
	case r.URL.Path == "/api/v1":
		write(200, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[]}`)
	case r.URL.Path == "/apis":
		write(200, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`)
	case r.URL.Path == "/apis/apps/v1":
		write(200, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[
			{"name":"deployments","singularName":"","namespaced":true,"kind":"Deployment","verbs":["get"]},
			{"name":"deployments/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","update"]}]}`)
	case r.URL.Path != "/apis/apps/v1/namespaces/shop/deployments/web/scale":
		write(404, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	case r.Method == http.MethodGet:
		s.gets++
		write(200, s.scale())
	case r.Method == http.MethodPut:
		s.updates++
		if s.meddle > 0 {
			s.meddle--
			s.version++
			if s.leaves > 0 {
				s.replicas = s.leaves
			}
		}
		var put autoscalingv1.Scale
		if err := json.NewDecoder(r.Body).Decode(&put); err != nil {
			write(400, err.Error())
			return
		}
		if put.ResourceVersion != strconv.Itoa(s.version) {
			write(409, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"the object has been modified"}`)
			return
		}
		s.replicas = int(put.Spec.Replicas)
		s.version++
		write(200, s.scale())
	}
}

func (s *server) scale() string {
	return fmt.Sprintf(`{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"web","namespace":"shop","resourceVersion":"%d"},"spec":{"replicas":%d},"status":{"replicas":2,"selector":"app=web"}}`, s.version, s.replicas)
}

// TestUpdate checks that a scale is written with the version that was read. After a conflict it is
// read again, at most five times, and another count is not overwritten.
func TestUpdate(t *testing.T) {
	f := func(meddle, leaves, gets, updates, replicas int, wrong string) {
		t.Helper()
		s := &server{replicas: 3, version: 7, meddle: meddle, leaves: leaves}
		proxy := httptest.NewServer(s)
		defer proxy.Close()
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		scales, err := New(&rest.Config{Host: proxy.URL, Transport: transport, QPS: -1})
		if err != nil {
			t.Fatal(err)
		}
		got, h, err := scales.Get(t.Context(), "shop", ref("apps/v1", "Deployment", "web"))
		if err != nil {
			t.Fatal(err)
		}
		if want := (autoscaler.Scale{SpecReplicas: 3, StatusReplicas: 2, Selector: "app=web"}); got != want {
			t.Errorf("got the scale %+v, want %+v", got, want)
		}
		if got, want := h.String(), "deployments.apps shop/web"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		id, err := scales.WorkloadID(t.Context(), "shop", ref("apps/v1beta2", "Deployment", "web"))
		if err != nil || id != h.WorkloadID {
			t.Errorf("named with another version: got %v, %v; want %v", id, err, h.WorkloadID)
		}
		err = scales.Update(t.Context(), h, 5)
		switch {
		case wrong == "" && err != nil, wrong != "" && (err == nil || apierrors.IsConflict(err) != (leaves == 0) || !strings.HasPrefix(err.Error(), wrong)):
			t.Errorf("with %d conflicts: got %v, want %q", meddle, err, wrong)
		}
		if s.gets != gets || s.updates != updates || s.replicas != replicas {
			t.Errorf("with %d conflicts: got %d reads, %d writes and %d replicas; want %d, %d and %d", meddle, s.gets, s.updates, s.replicas, gets, updates, replicas)
		}
	}
	f(0, 0, 1, 1, 5, "")
	f(2, 0, 3, 3, 5, "")
	f(9, 0, 6, 5, 3, "change the scale of deployments.apps shop/web: ")
	f(1, 4, 2, 1, 4, "change the scale of deployments.apps shop/web: another client changed the count from 3 to 4 meanwhile")
	f(1, 5, 2, 1, 5, "") // the other client wrote the same count

	if err := (&Client{}).Update(t.Context(), nil, 5); err == nil {
		t.Error("a scale that was not read can be changed")
	}
}
