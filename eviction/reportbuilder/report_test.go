package reportbuilder

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/test/capture"
	"github.com/weir-metrics/weir/test/cmptest"
)

// noon is the time of each report. Times in transcripts are relative to it.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// TestTranscripts prints reports of rounds of eviction.Decide. The commands are:
//
//	settings [limits] [split] [contention=PERCENT]
//	round [at=-2s] [no-summary] [no-layout] [capture=SCENARIO/ROUND]
//	report [mode=observe] [reclaims] [floor=10s] [all] [json]
//
// settings drops all state and sets thresholds in the form of eviction.ThresholdConfig. round
// decides about the node that the lines below it describe, or about the answers of a real kubelet
// and its API server. In the second case noon is two seconds after the answers:
//
//	memory|allocatable|nodefs|imagefs 93Mi of 8Gi [inodes 10 of 1000]
//	pids 300 of 32768
//	stall memory|io|cpu AVG10 [AVG60]
//	pod shop/hog [memory=1.9Gi] [disk=1Gi] [inodes=10] [processes=3] [cpu=500m] [requests=memory:100Mi,cpu:1]
//	    [priority=-5] [limit=1Gi] [static] [mirror] [nostats] [self] [blockedPrefix]
//	woken memory|stall                what woke the guard; default: the timer
//	watch memory|stall|events
//	unwatched|unread the error
//	since -1m                         the actions repeat those of that time
//	did Blocked shop/web the words    the result of the action; default: that of mode observe
//
// report prints the report of the last round and of the rounds with an action. A line below it is a
// warning.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		s := &scene{}
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "settings":
				s = newScene(t, d)
				return ""
			case "round":
				s.round(t, d)
				return ""
			case "report":
				return s.report(t, d)
			}
			d.Fatalf(t, "unknown command")
			return ""
		})
	})
}

func (s *scene) report(t *testing.T, d *datadriven.TestData) string {
	c := Options{Node: "n1", Mode: "observe", Now: noon, Warnings: strings.Split(d.Input, "\n")}
	if d.Input == "" {
		c.Warnings = nil
	}
	if s.last != nil && s.last.DecidedAt.After(noon) { // the round uses a capture
		c.Now = s.last.DecidedAt.Add(2 * time.Second)
	}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "mode":
			c.Mode = a.Vals[0]
		case "reclaims":
			c.Reclaims = true
		case "floor":
			c.MaxInterval = length(t, a.Vals[0])
		}
	}
	r := New(s.last, s.acts, c)
	again(t, r)
	if d.HasArg("json") {
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		return string(text) + "\n"
	}
	var out bytes.Buffer
	if err := r.WriteText(&out, evictionreport.TextOptions{All: d.HasArg("all")}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// again checks that a report can be encoded as JSON and decoded without a change.
func again(t *testing.T, r *evictionreport.EvictionReport) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var read evictionreport.EvictionReport
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	cmptest.Equal(t, "written and read", r, &read)
}

// captured sets the input to the answers of a real kubelet and its API server, and returns their
// time.
func captured(t *testing.T, round string, in *eviction.Input) time.Time {
	t.Helper()
	read := func(name string, into any) {
		if err := json.Unmarshal(capture.Read(t, round+"/"+name), into); err != nil {
			t.Fatal(err)
		}
	}
	var summary stats.Summary
	var pods corev1.PodList
	read("summary.json", &summary)
	read("pods.json", &pods)
	in.Summary = &summary
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Spec.NodeName == in.Summary.Node.NodeName && p.Status.Phase == corev1.PodRunning {
			in.Pods = append(in.Pods, p)
		}
	}
	var meta struct {
		End int64 `json:"end_ns"`
	}
	read("meta.json", &meta)
	return time.Unix(0, meta.End).UTC()
}
