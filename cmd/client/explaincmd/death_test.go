package explaincmd

import (
	"context"
	"time"

	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/explain/death"
)

// Deaths returns two ends of namespace shop, and none of others. Namespace storm has too many, and the
// names there are hostile.
func (t *testCluster) Deaths(_ context.Context, q death.Query) (*death.Report, error) {
	r := &death.Report{Namespace: string(q.Namespace), Pod: string(q.Pod), Container: q.Container, At: noon, Since: before(time.Hour), Summary: "Nothing ended in the last hour.", Deaths: []death.Death{}}
	switch {
	case q.Namespace == "storm":
		r.Summary, r.LeftOut = "3,201 deaths in namespace storm in the last hour.", 3200
		r.Deaths = []death.Death{{Namespace: "storm", Pod: "$(reboot)", Container: "b\x1b[2J", At: before(time.Minute), Cause: death.Exited, Confidence: death.Certain, Message: "ended by itself with exit code 3\x1b[31m", Evidence: []death.Evidence{
			{From: "kernel log", Fact: "the kernel killed process \x1b]0;title\x07\u202e\r\n<script> (pid 1)"},
		}}}
	case q.Namespace != "" && q.Namespace != "shop", q.Pod != "" && q.Pod != "web-1":
	case q.Pod != "":
		r.Summary, r.Deaths = "2 deaths in pod shop/web-1 in the last hour.", shopDeaths()
		r.EventsUnread = "weir keeps no Events: with --events it knows failed probes and what its agent evicted."
	default:
		r.Summary, r.Deaths, r.Completed = "2 deaths in the last hour. 4 runs ended without an error.", shopDeaths(), 4
	}
	return r, nil
}

func shopDeaths() []death.Death {
	reading := func(ago time.Duration, value float64) endlog.Reading {
		return endlog.Reading{At: before(ago), Value: value}
	}
	code, started := int32(137), before(14*time.Minute)
	return []death.Death{{
		Namespace: "shop", Pod: "web-1", Container: "app", Node: "n1", At: before(4 * time.Minute), Started: &started,
		Cause: death.ContainerLimit, Confidence: death.Certain, Message: "killed by the kernel: it reached its own memory limit of 64Mi",
		Evidence: []death.Evidence{
			{From: "API server", Fact: "exit code 137 (SIGKILL), reason OOMKilled, after 10m"},
			{From: "weir's memory", Fact: "it used 63Mi at most, and 63Mi in the last reading, 10s before the end"},
		},
		Advice:   "Raise limits.memory of the container if it needs that much (`weir resize` shows what fits).",
		ExitCode: &code, Signal: "SIGKILL", Reason: "OOMKilled",
		Before: &death.Before{Fastest: "container app", Message: "memory of container app rose fastest, from 40Mi to 63Mi in 3m50s", Usage: endlog.Usage{
			Memory: []endlog.Trend{
				{Kind: "container", Name: "app", First: reading(8*time.Minute, 40<<20), Highest: reading(250*time.Second, 63<<20), Last: reading(250*time.Second, 63<<20)},
				{Kind: "node", Name: "n1", First: reading(8*time.Minute, 2<<30), Highest: reading(5*time.Minute, 3<<30), Last: reading(250*time.Second, 2<<30)},
			},
			CPU: []endlog.Trend{{Kind: "container", Name: "app", First: reading(8*time.Minute, 0.1), Highest: reading(5*time.Minute, 0.25), Last: reading(250*time.Second, 0.15)}},
		}},
	}, {
		Namespace: "shop", Pod: "web-1", Node: "n1", At: before(20 * time.Minute), Gone: true, Cause: death.Deleted, Confidence: death.Likely,
		Message:  "deleted by a person or a controller",
		Evidence: []death.Evidence{{From: "API server", Fact: "the pod was missing when weir listed the pods again: its last state may be old"}},
	}}
}
