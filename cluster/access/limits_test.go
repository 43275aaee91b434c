package access_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/cluster/access"
)

// An answer that takes too much memory or time ends with an error that says so. A watch may be silent.
func TestLimits(t *testing.T) {
	const watchSilence = time.Second
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	begin := func(w http.ResponseWriter, body string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, body)
		w.(http.Flusher).Flush()
	}
	const node = `{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"`
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		watch  bool
		want   error
	}{
		"an answer":                 {answer: func(w http.ResponseWriter, _ *http.Request) { begin(w, node+"}}") }},
		"no answer":                 {answer: hang, want: access.ErrSilent},
		"an answer that stops":      {answer: func(w http.ResponseWriter, r *http.Request) { begin(w, node); hang(w, r) }, want: access.ErrSilent},
		"a long answer":             {answer: func(w http.ResponseWriter, _ *http.Request) { begin(w, node+strings.Repeat(" ", 1000)+"}}") }, want: access.ErrTooLarge},
		"a watch without an answer": {answer: hang, watch: true, want: access.ErrSilent},
		"a watch that is silent, long": {watch: true, answer: func(w http.ResponseWriter, _ *http.Request) {
			begin(w, "")
			<-time.After(3 * watchSilence) // the watch must survive it
			begin(w, `{"type": "ADDED", "object": `+node+strings.Repeat(" ", 1000)+"}}}")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			limits := access.Limits{Silence: time.Minute, Bytes: 1000}
			switch {
			case errors.Is(c.want, access.ErrSilent):
				limits.Silence = 100 * time.Millisecond
			case c.watch:
				limits.Silence = watchSilence
			}
			server := httptest.NewServer(c.answer)
			defer server.Close()
			client, err := kubernetes.NewForConfig(limits.Limit(&rest.Config{Host: server.URL}))
			if err != nil {
				t.Fatal(err)
			}
			if !c.watch {
				_, err = client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
			} else if changes, failed := client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{}); failed != nil {
				err = failed
			} else {
				defer changes.Stop()
				if _, ok := <-changes.ResultChan(); !ok {
					err = errors.New("the watch ended without a change")
				}
			}
			if !errors.Is(err, c.want) {
				t.Errorf("the error is %v, want %v", err, c.want)
			}
		})
	}
}
