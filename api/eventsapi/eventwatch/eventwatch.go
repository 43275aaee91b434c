// Package eventwatch is the feature that keeps the cluster's last Events in memory, and serves them.
package eventwatch

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/api/eventsapi"
	"github.com/weir-metrics/weir/cluster/eventlog"
	"github.com/weir-metrics/weir/internal/feature"
)

// Watch is the feature.
type Watch struct {
	// On is the flag. Others that need Events set it, too, and WantedBy to their name.
	On       bool
	WantedBy string

	watcher *eventlog.Watcher // nil unless open
}

// Flags adds the flag.
func (w *Watch) Flags(f *pflag.FlagSet) {
	f.BoolVar(&w.On, "events", false, "keep the cluster's last Events in memory, at most 10,000 of the last hour; weir explain and the page show those on a pod, node or autoscaler to callers that may list Events")
}

// Check checks the flag.
func (w *Watch) Check(in *feature.Setting) error {
	if !w.On && w.WantedBy == "" || in.HasCluster {
		return nil
	}
	flag := "--events"
	if !in.Given("events") {
		flag = w.WantedBy
	}
	return feature.NeedsCluster(flag, "whose Events it keeps")
}

// Open opens the memory of Events, if they are wanted.
func (w *Watch) Open(_ context.Context, h *feature.Host) error {
	if !w.On && w.WantedBy == "" {
		return nil
	}
	kube, err := h.Cluster.RESTConfig()
	if err != nil {
		return err
	}
	client, err := eventlog.NewClient(kube)
	if err != nil {
		return fmt.Errorf("create API client for Events: %w", err)
	}
	w.watcher = eventlog.NewWatcher(eventlog.Options{Client: client, Logger: h.Log, Registerer: h.Registry})
	h.Add(feature.Part{Name: "Events", Run: w.watcher.Run})
	return nil
}

// Watcher returns the memory of Events, or nil if they are not kept.
func (w *Watch) Watcher() *eventlog.Watcher { return w.watcher }

// Handler returns the handler of the API.
func (w *Watch) Handler() http.Handler {
	if w.watcher == nil { // a nil pointer in an interface would not be nil
		return eventsapi.NewHandler(nil)
	}
	return eventsapi.NewHandler(w.watcher)
}
