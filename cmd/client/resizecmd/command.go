// Package resizecmd is the "resize" command of weir and of kubectl-weir: it recommends smaller
// requests, and changes the requests of a pod in place. The programs differ only in how they find
// weir and the cluster. It also scores the rules for such recommendations on traces.
//
// "recommend" and "replay" change nothing. "apply" changes nothing without --yes: it only makes a dry run at the
// API server.
//
// Files: recommend.go, apply.go and replay.go have the commands, applyworkload.go
// and watch.go apply to a whole workload and watch it, prometheus.go
// reads usage from a Prometheus, reserved.go proposes what kubelets should reserve, text.go writes the text. workloads.go recommends for whole workloads by
// their templates and what the cluster restricts, pair.go also the target of an HPA; patch.go writes that as patches, and manifest.go as a diff of
// a file of manifests.
package resizecmd

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/explain/slow"
	"github.com/weir-metrics/weir/internal/trace"
	"github.com/weir-metrics/weir/resize/apply"
)

// Asker asks weir. *cli.Weir implements it.
type Asker interface {
	List(ctx context.Context, r usage.Resource, q usage.Query) (*usage.List, error)
	Recommend(ctx context.Context, r resizeapi.Request) (*resizeapi.RecommendationList, error)
	Slow(ctx context.Context, q slow.Query) (*slow.Report, error)
	Deaths(ctx context.Context, q death.Query) (*death.Report, error)
	// PodCgroups returns the inspector's report of a node, as JSON.
	PodCgroups(ctx context.Context, node string) (json.RawMessage, error)
}

// Pods reads and resizes pods, and reads their owners. *cli.Kube implements it.
type Pods interface {
	apply.PodClient
	apply.ObjectClient
}

// RecordedUsage returns what the containers of a recording used, of one namespace unless it is empty.
type RecordedUsage func(ctx context.Context, path, namespace string, line *cli.Progress) ([]trace.Entity, error)

// Options adapt the command to its program.
type Options struct {
	// Connect returns the weir to ask.
	Connect func() (Asker, error)
	// Cluster returns a client of the cluster's API server.
	Cluster func() (Pods, error)
	// Namespace returns the default namespace, or "" for all namespaces. Nil means all.
	Namespace func() (string, error)
	// Recorded reads recordings; nil if the program plays none.
	Recorded RecordedUsage
	// Wait waits between two looks at a change, until the context ends. Default a timer.
	Wait func(ctx context.Context, d time.Duration) error
	// Program is the command before "resize". Default "weir".
	Program string
}

// NewCommand returns "resize".
func NewCommand(o Options) *cobra.Command {
	o.Program = cmp.Or(o.Program, "weir")
	if o.Wait == nil {
		o.Wait = sleep
	}
	return cli.Group("resize", "Find requests that fit what is used, and change them in place",
		`Find requests that fit what is used, and change them in place: no container restarts,
and the pod keeps its QoS class and so its cgroup. "recommend" shows which requests
could be smaller and what that frees; "apply" changes those of one pod or of a workload,
follows the kubelet until it has done it, and checks that nothing was restarted. "reserved" proposes
what kubelets should reserve outside pods. "replay" scores the rules that recommend, on
what a Prometheus or a recording has of the past.`,
		newRecommend(o), newApply(o), newReserved(o), newReplay(o))
}
