package execute

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestTheAnswerOfABudgetOverHTTP uses a real client over HTTP, because the fake client does not
// encode requests and decode answers.
func TestTheAnswerOfABudgetOverHTTP(t *testing.T) {
	var asked []string
	var refused apierrors.APIStatus
	if !errors.As(refusal("The disruption budget front needs 2 healthy pods and has 1 currently", 0), &refused) {
		t.Fatal("no status")
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			p := pod("app")
			p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
			if err := json.NewEncoder(w).Encode(p); err != nil {
				t.Error(err)
			}
			return
		}
		diff(t, "body", `{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"app","namespace":"web"},"deleteOptions":{"gracePeriodSeconds":5,"preconditions":{"uid":"uid-app"}}}`+"\n", string(body))
		status := refused.Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		w.WriteHeader(http.StatusTooManyRequests)
		if err := json.NewEncoder(w).Encode(status); err != nil {
			t.Error(err)
		}
	}))
	defer srv.Close()
	client, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: srv.URL}, srv.Client())
	if err != nil {
		t.Fatal(err)
	}
	x, err := New(Options{Mode: Evict, Client: client, Node: node, Self: "uid-weir"})
	if err != nil {
		t.Fatal(err)
	}
	o := only(t, x.Execute(t.Context(), decision(time.Minute, killOf("app", 5))))
	diff(t, "requests", []string{"GET /api/v1/namespaces/web/pods/app", "POST /api/v1/namespaces/web/pods/app/eviction"}, asked)
	if o.Result != Blocked || o.Budget != "front" {
		t.Errorf("got %+v, want it blocked by budget front", o)
	}
}
