package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/api/autoscaling"
	"github.com/weir-metrics/weir/api/eventsapi"
	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/api/usage"
)

// Discovery announces exactly the paths that are served.
func TestOwnGroup(t *testing.T) {
	g := ownGroup()
	prefix := "/apis/" + g.String() + "/"
	var want []string
	for i := range g.Resources {
		r := &g.Resources[i]
		switch resource, sub, _ := strings.Cut(r.Name, "/"); {
		case sub != "" && r.Namespaced:
			want = append(want, prefix+"namespaces/{namespace}/"+resource+"/{name}/"+sub)
		case sub != "":
			want = append(want, prefix+resource+"/{name}/"+sub)
		case slices.Contains(r.Verbs, "create"): // a request for an answer, in one namespace
			want = append(want, prefix+"namespaces/{namespace}/"+resource)
		default:
			want = append(want, prefix+resource)
			if r.Namespaced {
				want = append(want, prefix+"namespaces/{namespace}/"+resource)
			}
			if slices.Contains(r.Verbs, "get") {
				want = append(want, prefix+"namespaces/{namespace}/"+resource+"/{name}")
			}
		}
	}
	got := slices.Concat(usage.Paths(), explainapi.Paths(), explainapi.DeathPaths(), explainapi.SlowPaths(), eventsapi.Paths(), autoscaling.Paths(), nodeapi.Paths(), resizeapi.Paths())
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("served (-announced +served):\n%s", diff)
	}
}
