package resourcemetrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weir-metrics/weir/cluster/served"
)

// What panics while bytes are sent panics where the request is served, which is where the
// server expects it.
func TestSendPanics(t *testing.T) {
	r := &readings{}
	for i := range 2000 {
		r.addPod(&served.PodUse{Uses: []served.Use{{Name: "app"}}}, r.add(newSubject("shop", fmt.Sprint("web-", i), noLabels)))
	}
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Errorf("got a panic of %v, want %v", got, http.ErrAbortHandler)
		}
	}()
	err := send(gone{httptest.NewRecorder()}, "application/json", false, &jsonEncoding{}, &document{kind: podKind, list: true, readings: r})
	t.Errorf("send returned %v, want a panic", err)
}

// gone is a client in whose absence a server panics.
type gone struct{ http.ResponseWriter }

func (gone) Write([]byte) (int, error) { panic(http.ErrAbortHandler) }
