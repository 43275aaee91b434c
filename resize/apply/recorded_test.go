package apply

import (
	"bufio"
	"encoding/json"
	"os"
	"path"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/test/capture"
)

// step is one resize of the captures 05-resize, by a real kubelet 1.36.3: the patch, the API
// server's answer, and each change of the pod's status until nothing changed any more.
// testdata/steps.jsonl has one step on each line.
type step struct {
	Pod      string `json:"pod"`
	Step     string `json:"step"`
	Captures string `json:"captures"` // the folder with the rounds
	Patch    struct {
		Spec struct {
			Containers, InitContainers []struct {
				Name      string
				Resources corev1.ResourceRequirements
			}
		}
	} `json:"patch"`
	RC     int      `json:"rc"` // the exit status of kubectl
	Output string   `json:"output"`
	Before moment   `json:"before"`
	Trace  []moment `json:"trace"`
}

// moment is a pod's status at a time.
type moment struct {
	After              float64               `json:"seconds_after"`
	Generation         int64                 `json:"generation"`
	ObservedGeneration int64                 `json:"observedGeneration"`
	Conditions         []corev1.PodCondition `json:"conditions"`
	Containers         []struct {
		Name      string                      `json:"name"`
		Resources corev1.ResourceRequirements `json:"spec.resources"`
	} `json:"containers"`
	ContainerStatuses []corev1.ContainerStatus `json:"containerStatuses"`
}

func (m *moment) after() time.Duration { return time.Duration(m.After * float64(time.Second)) }

// steps reads the recorded steps.
func steps(t *testing.T) (list []*step) {
	t.Helper()
	f, err := os.Open("testdata/steps.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var s step
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		list = append(list, &s)
	}
	if len(list) != 20 {
		t.Fatalf("got %d steps, want 20", len(list))
	}
	return list
}

// changes returns the changes in the step's patch.
func (s *step) changes() (changes []resize.ResourceChange) {
	for _, c := range slices.Concat(s.Patch.Spec.InitContainers, s.Patch.Spec.Containers) {
		for _, r := range resize.Resources() {
			change := resize.ResourceChange{Container: c.Name, Resource: r}
			for list, to := range map[*corev1.ResourceList]*resize.Amount{&c.Resources.Requests: &change.Request, &c.Resources.Limits: &change.Limit} {
				if q, ok := (*list)[corev1.ResourceName(r)]; ok {
					*to = resize.Of(q.Value())
					if r == resize.CPU {
						*to = resize.Of(q.MilliValue())
					}
				}
			}
			if change.Request.Set || change.Limit.Set {
				changes = append(changes, change)
			}
		}
	}
	return changes
}

// podIn returns the pod of that name in a round of a capture, as the API server returned it.
func podIn(t *testing.T, folder, round, name string) *corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := json.Unmarshal(capture.Read(t, path.Join(folder, round, "pods.json")), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Name == name {
			return &list.Items[i]
		}
	}
	t.Fatalf("%s/%s has no pod %s", folder, round, name)
	return nil
}

// at returns the step's pod at a moment: the pod of an earlier round, with the status of the
// moment.
func (s *step) at(t *testing.T, m *moment) *corev1.Pod {
	t.Helper()
	round := "02"
	if s.Captures == "05-resize/more" {
		round = "00"
	}
	p := podIn(t, s.Captures, round, s.Pod)
	p.Generation = m.Generation
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			for _, c := range m.Containers {
				if c.Name == list[i].Name {
					list[i].Resources = c.Resources
				}
			}
		}
	}
	m.overlay(p)
	return p
}

// overlay sets p's status to that of a moment.
func (m *moment) overlay(p *corev1.Pod) {
	p.Status.ObservedGeneration = m.ObservedGeneration
	p.Status.Conditions = slices.DeleteFunc(slices.Clone(p.Status.Conditions), func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress
	})
	p.Status.Conditions = append(p.Status.Conditions, m.Conditions...)
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			for _, s := range m.ContainerStatuses {
				if s.Name == list[i].Name {
					list[i] = s
				}
			}
		}
	}
}
