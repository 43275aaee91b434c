package docs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/test/docs"
)

func TestKubeletDifferencesAreUpToDate(t *testing.T) {
	page := read(t, "../../docs/agent-as-kubelet.md")
	want, err := docs.KubeletDifferences(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, page); diff != "" {
		t.Errorf("docs/agent-as-kubelet.md lags behind api/kubeletapi; run make generate (-want +got):\n%s", diff)
	}
	if _, err := docs.KubeletDifferences("no marks"); err == nil {
		t.Error("a page without marks gives no error")
	}
}
