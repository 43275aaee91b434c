package hpaevents

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	core "github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

type noScales struct{}

func (noScales) Get(context.Context, string, autoscalingv2.CrossVersionObjectReference) (core.Scale, *scaleclient.Handle, error) {
	return core.Scale{}, nil, scaleclient.ErrNoSelector
}

// TestNoteIsBounded checks that the API server accepts every note, with any number of pods and
// reasons and with long names, and that the numbers in it add up.
func TestNoteIsBounded(t *testing.T) {
	namespace := strings.Repeat("n", 63)
	for _, length := range []int{1, 40, 253} {
		for _, causes := range []int{1, 3, 30} {
			for _, pods := range []int{1, 2, 11, 50} {
				var gaps []missingPod
				for n := range pods {
					gaps = append(gaps, missingPod{
						pod: metric.PodName(fmt.Sprintf("%0*d", length, n)), reason: metric.Incomplete,
						sentence: fmt.Sprintf("container %d%s has no number", n%causes, strings.Repeat("ü", 63)),
					})
				}
				note := missingNote(namespace, 100000, gaps, 9000000)
				if len(note) > noteLimit || !utf8.ValidString(note) {
					t.Errorf("%d pods with names of %d for %d causes: a note of %d bytes: %q", pods, length, causes, len(note), note)
				}
				if want := fmt.Sprintf("%d of 100000 pods have no CPU or memory. Incomplete (container ", 9000000+pods); !strings.HasPrefix(note, want) {
					t.Errorf("got %q, want it to begin with %q", note, want)
				}
				if want := ". Run: kubectl weir explain namespace " + namespace; !strings.HasSuffix(note, want) {
					t.Errorf("got %q, want it to end with %q", note, want)
				}
			}
		}
	}
}

func TestGapOf(t *testing.T) {
	for name, c := range map[string]struct {
		outcome explain.Outcome
		want    missingPod
	}{
		"of the node": {
			explain.Outcome{Reason: metric.NodeTimeout, Node: "n1"},
			missingPod{pod: "web-1", reason: metric.NodeTimeout, sentence: "the node did not answer in time", severity: metric.Broken},
		},
		"for want of a container": {
			explain.Outcome{Reason: metric.TooYoung, Container: "side"},
			missingPod{pod: "web-1", reason: metric.TooYoung, sentence: "container side: it started too recently for a rate", severity: metric.Temporary},
		},
		"all there was is of an earlier pod": {
			explain.Outcome{Reason: metric.OldPod},
			missingPod{pod: "web-1", reason: metric.OldPod, sentence: "the numbers are of an earlier pod of this name", severity: metric.Temporary},
		},
		"left out on purpose": {
			explain.Outcome{Reason: metric.NodeExcluded},
			missingPod{pod: "web-1", reason: metric.NodeExcluded, sentence: "the configuration excludes the node", severity: metric.None},
		},
		"served by now, though in doubt": {
			explain.Outcome{Reason: metric.Ambiguous, Served: true},
			missingPod{pod: "web-1", reason: metric.Ambiguous, sentence: explain.Message(metric.Ambiguous, metric.CPU, metric.Evidence{}), severity: metric.None},
		},
	} {
		if got := newMissingPod("web-1", c.outcome); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
