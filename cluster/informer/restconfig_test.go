package informer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-metrics/weir/cluster/access"
	"github.com/weir-metrics/weir/cluster/informer"
)

func newClient(t *testing.T, url string) *kubernetes.Clientset {
	t.Helper()
	config, err := informer.RESTConfig(informer.Options{Master: url})
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Many HPAs ask in the same second. client-go by itself would let the last request here wait 18 s.
func TestRequestsDoNotWaitForEachOther(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Node"}`)
	}))
	defer server.Close()
	client := newClient(t, server.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for i := range 100 {
		if _, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{}); err != nil {
			t.Fatalf("request %d: %v", i+1, err)
		}
	}
}

// Each client that weir makes of its configuration keeps the limits of answers.
func TestRequestsEnd(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	defer func(before access.Limits) { access.DefaultLimits = before }(access.DefaultLimits)
	access.DefaultLimits.Silence = 100 * time.Millisecond
	client := newClient(t, server.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{}); !errors.Is(err, access.ErrSilent) {
		t.Errorf("a server that does not answer: %v, want %v", err, access.ErrSilent)
	}
}
