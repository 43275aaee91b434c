package cluster_test

import (
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric/run"
)

// A container's record has its last run whether that is the previous one or the current state.
func TestRecord(t *testing.T) {
	start, last, end := time.Unix(300, 0), time.Unix(100, 0), time.Unix(200, 0)
	f := func(name string, c *cluster.Container, want run.Record) {
		t.Helper()
		if got := c.Record(); got != want {
			t.Errorf("%s: record %+v, want %+v", name, got, want)
		}
	}
	f("no container", nil, run.Record{})
	f("not mentioned", &cluster.Container{ID: "a"}, run.Record{})
	f("first run", &cluster.Container{State: cluster.StateRunning, ID: "a", StartedAt: start},
		run.Record{State: run.Running, ID: "a", Start: start, First: true})
	f("restarted, the last run unknown", &cluster.Container{State: cluster.StateRunning, ID: "a", StartedAt: start, Restarts: 1},
		run.Record{State: run.Running, ID: "a", Start: start})
	previous := cluster.PreviousRun{LastID: "b", StartedAt: last, EndedAt: end}.OrNil()
	f("restarted", &cluster.Container{State: cluster.StateRunning, ID: "a", StartedAt: start, Previous: previous},
		run.Record{State: run.Running, ID: "a", Start: start, LastID: "b", LastStart: last, LastEnd: end})
	f("waits", &cluster.Container{State: cluster.StateWaiting, ID: "b", Previous: previous},
		run.Record{State: run.Stopped, ID: "b", LastID: "b", LastStart: last, LastEnd: end})
	f("has ended", &cluster.Container{State: cluster.StateTerminated, ID: "a", StartedAt: start, Previous: cluster.PreviousRun{EndedAt: end}.OrNil()},
		run.Record{State: run.Stopped, ID: "a", LastStart: start, LastEnd: end})
}
