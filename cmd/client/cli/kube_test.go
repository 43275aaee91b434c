package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// A command may ask about each node of a large cluster. client-go by itself would let it wait 18 s here.
func TestKubeDoesNotWait(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "{}")
	}))
	defer server.Close()
	k, err := NewKube(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for i := range 100 {
		var node corev1.Node
		if err := k.Get(ctx, "/api/v1/nodes/n", &node); err != nil {
			t.Fatalf("request %d: %v", i+1, err)
		}
	}
}
