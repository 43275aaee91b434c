package resourcemetrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weir-metrics/weir/cluster/resourceusage"
)

// A panic during a write becomes a panic of the goroutine that serves the request, as the
// server expects.
func TestSendPanics(t *testing.T) {
	r := &usageList{}
	for i := range 2000 {
		r.addPod(&resourceusage.PodUsage{Containers: []resourceusage.Usage{{Name: "app"}}}, r.addMeta(newObjectMeta("shop", fmt.Sprint("web-", i), noLabels)), false)
	}
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Errorf("got a panic of %v, want %v", got, http.ErrAbortHandler)
		}
	}()
	err := sendResponse(gone{httptest.NewRecorder()}, "application/json", false, &jsonEncoder{}, &response{kind: podKind, list: true, usageList: r})
	t.Errorf("send returned %v, want a panic", err)
}

// gone is a client that has disconnected, for which a server panics.
type gone struct{ http.ResponseWriter }

func (gone) Write([]byte) (int, error) { panic(http.ErrAbortHandler) }
