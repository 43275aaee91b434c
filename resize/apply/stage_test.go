package apply

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/test/capture"
)

// TestStagesOfARealKubelet prints, for each resize that an API server accepted, the pod's status
// over time and the stage that follows from it.
func TestStagesOfARealKubelet(t *testing.T) {
	all := steps(t)
	datadriven.RunTest(t, "testdata/stages.txt", func(t *testing.T, d *datadriven.TestData) string {
		var n int
		d.ScanArgs(t, "n", &n)
		s := all[n-1]
		var out strings.Builder
		fmt.Fprintf(&out, "%s: %s\n", s.Pod, s.Step)
		for i := range s.Trace {
			m := &s.Trace[i]
			state := StageOf(s.at(t, m), s.asked(t))
			fmt.Fprintf(&out, "%6.2fs %s", m.After, state.Stage)
			if state.Message != "" {
				fmt.Fprintf(&out, ": %s", state.Message)
			}
			out.WriteString("\n")
		}
		return out.String()
	})
}

func (s *step) asked(t *testing.T) *PendingResize {
	return &PendingResize{UID: string(s.at(t, &s.Before).UID), Generation: s.Trace[0].Generation, Changes: s.changes()}
}

// TestStagesOfRounds checks that the pods in the round after each resize give the same stage as the
// last recorded status.
func TestStagesOfRounds(t *testing.T) {
	rounds := map[string][]string{}
	for _, folder := range []string{"05-resize", "05-resize/more"} {
		actions := capture.Read(t, folder+"/actions.jsonl")
		for lines := bufio.NewScanner(bytes.NewReader(actions)); lines.Scan(); {
			var action struct {
				Next   int `json:"next_capture"`
				Action string
			}
			if err := json.Unmarshal(lines.Bytes(), &action); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(action.Action, "-> rc=") {
				rounds[folder] = append(rounds[folder], fmt.Sprintf("%02d", action.Next))
			}
		}
	}
	checked := 0
	for _, s := range steps(t) {
		if len(rounds[s.Captures]) == 0 {
			t.Fatalf("%s has fewer actions than steps", s.Captures)
		}
		round := rounds[s.Captures][0]
		rounds[s.Captures] = rounds[s.Captures][1:]
		if _, found := capture.Find(t, path.Join(s.Captures, round, "pods.json")); !found || s.RC != 0 || len(s.changes()) == 0 {
			continue // there is no capture of the next round, or the change was refused
		}
		checked++
		want := StageOf(s.at(t, &s.Trace[len(s.Trace)-1]), s.asked(t)).Stage
		if got := StageOf(podIn(t, s.Captures, round, s.Pod), s.asked(t)); got.Stage != want {
			t.Errorf("%s: %s: round %s is %v, want %s", s.Pod, s.Step, round, got, want)
		}
	}
	if checked < 10 {
		t.Errorf("only %d rounds were checked", checked)
	}
}

// TestStageOfOthers checks other changes of a pod.
func TestStageOfOthers(t *testing.T) {
	s := steps(t)[0]
	f := func(change func(*corev1.Pod), want ResizeState) {
		t.Helper()
		p := s.at(t, &s.Trace[0])
		change(p)
		if got := StageOf(p, s.asked(t)); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	f(func(p *corev1.Pod) { p.UID = "other" }, ResizeState{Gone, "the pod was deleted, and another has its name"})
	f(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, ResizeState{Gone, "the pod ended: its phase is Failed"})
	f(func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = nil },
		ResizeState{Superseded, "a later request changed it: a cpu limit of 0 for main"})
	f(func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible, Message: "no", ObservedGeneration: 2}}
	}, ResizeState{Infeasible, "no"})
	f(func(p *corev1.Pod) {
		// Conditions of an earlier resize are ignored.
		p.Status.ObservedGeneration = 1
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible, ObservedGeneration: 1}}
	}, ResizeState{Stage: Asked})
	f(func(p *corev1.Pod) {
		// An older kubelet reports no generations.
		p.Status.ObservedGeneration, p.Status.Conditions = 0, nil
		p.Status.ContainerStatuses[0].AllocatedResources = nil
	}, ResizeState{Asked, "the kubelet has 0 of cpu allocated to main"})
	f(func(p *corev1.Pod) { p.Status.Conditions = nil }, ResizeState{InProgress, "the kubelet reports a cpu request of 200m for main"})
	if got, want := StageOf(nil, s.asked(t)), (ResizeState{Gone, "the pod was deleted"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestLimitInPages checks the memory limit of a whole pod on nodes with other sizes of pages.
func TestLimitInPages(t *testing.T) {
	for got, want := range map[string]Stage{"500M": Done, "499998720": Done, "499990528": Done, "499974144": Done, "499994624": InProgress, "400M": InProgress} {
		p := &corev1.Pod{Status: corev1.PodStatus{Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(got)}}}}
		if s := podLevelStage(p, resize.ResourceChange{Resource: resize.Memory, Limit: resize.Of(500_000_000)}); s.Stage != want {
			t.Errorf("%s: got %v, want %s", got, s, want)
		}
	}
}
