package explaincmd

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/weir-metrics/weir/api/eventsapi"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster/eventlog/event"
	"github.com/weir-metrics/weir/cmd/client/cli"
)

// Events returns the Events on the pod shop/new and on the HPA shop/web. The caller has no right to
// those on nodes, and weir does not keep any of other objects.
func (t *testCluster) Events(_ context.Context, o event.Object) (*eventsapi.List, error) {
	switch o.Kind + " " + o.Namespace + "/" + o.Name {
	case "Pod shop/new":
		all := []event.Event{
			{Type: "Warning", Reason: "Failed", Part: "app", Source: "kubelet", Count: 7, First: before(12 * time.Minute), Last: before(40 * time.Second),
				Message: "Failed to pull image \"shop/new:1\"\x1b[2J: not found"},
			{Type: "Normal", Reason: "Scheduled", Source: "default-scheduler", Count: 1, First: before(12 * time.Minute), Last: before(12 * time.Minute), Message: "Successfully assigned shop/new to n1"},
		}
		for i := range maxEvents {
			all = append(all, event.Event{Type: "Normal", Reason: "Old", Count: 1, Last: before(time.Hour), Message: fmt.Sprint("number ", i)})
		}
		return &eventsapi.List{Items: all}, nil
	case "HorizontalPodAutoscaler shop/web":
		return &eventsapi.List{Unread: "weir cannot read the cluster's Events now, and shows those it has: its log has the error.", Items: []event.Event{
			{Type: "Normal", Reason: "SuccessfulRescale", Source: "horizontal-pod-autoscaler", Count: 1, Last: before(time.Minute), Message: "New size: 2"}}}, nil
	case "Node default/n2":
		return nil, cli.Advised(&weirdev.Problem{Status: http.StatusForbidden, Message: "forbidden"})
	}
	return nil, cli.Advised(&weirdev.Problem{Status: http.StatusNotFound, Message: "404 page not found"})
}
