//go:build e2e

package node

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/kubeletapi"
	"github.com/weir-metrics/weir/test/differences"
)

// compareSummaries compares /stats/summary of the agent with the kubelet's,
// field by field: which fields the node and each pod have, and the values of the
// pods of a namespace, which are frozen.
func (w *testCluster) compareSummaries(t *testing.T, namespace string) {
	list, err := w.kube.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var ofHost []string // the paths of networks of pods in the host's network
	for i := range list.Items {
		if p := &list.Items[i]; p.Spec.HostNetwork {
			ofHost = append(ofHost, fmt.Sprintf("pods[%s/%s].network.", p.Namespace, p.Name))
		}
	}
	differs := func(at, name string, kind differences.Kind) bool {
		return slices.ContainsFunc(differences.Summary, func(d differences.Difference) bool {
			if d.Name == "pods.network.*" && !slices.ContainsFunc(ofHost, func(p string) bool { return strings.HasPrefix(at, p) }) {
				return false
			}
			if strings.Contains(d.Why, "version 1") && w.v2 {
				return false
			}
			return d.Kind == kind && d.Is(name)
		})
	}
	// The kubelet reads a cgroup every 10 to 15 s, and an agent disks once a minute.
	eventually(t, "the agent says what the kubelet says", 3*time.Minute, func() error {
		kubelet, agent, err := w.askBoth(t.Context(), kubeletapi.SummaryPath)
		if err != nil {
			return err
		}
		theirs, err := summaryFields(kubelet)
		if err != nil {
			return err
		}
		ours, err := summaryFields(agent)
		if err != nil {
			return err
		}
		var found []string
		same := 0
		for _, at := range slices.Sorted(maps.Keys(theirs)) {
			want := theirs[at]
			got, ok := ours[at]
			switch {
			case !ok && !differs(at, want.name, differences.NotServed):
				found = append(found, "the agent lacks "+at)
			case !ok || !strings.HasPrefix(at, "pods["+namespace+"/") || strings.HasSuffix(at, ".time") || differs(at, want.name, differences.OtherValue):
			case !sameValue(want.name, got.value, want.value):
				found = append(found, fmt.Sprintf("%s is %s, the kubelet's is %s", at, got.value, want.value))
			default:
				same++
			}
		}
		for _, at := range slices.Sorted(maps.Keys(ours)) {
			if _, ok := theirs[at]; !ok {
				found = append(found, "the kubelet lacks "+at)
			}
		}
		if len(found) > 0 || same < 60 {
			return fmt.Errorf("%d values are equal, %d differences:\n%s", same, len(found), strings.Join(found[:min(40, len(found))], "\n"))
		}
		t.Logf("%d values of the frozen pod are equal; all %d fields of the node and its pods are there, or listed", same, len(theirs))
		return nil
	})
}

// sameValue reports whether two values of a field are equal. Others write to the
// disk between two reads of what is left on it, so that may differ by a MiB. An
// average of the pressure of a frozen pod only falls, to less than three quarters
// of the kubelet's, which is up to 15 s old, only over ten seconds or a minute.
func sameValue(name, ours, theirs string) bool {
	average := strings.Contains(name, ".psi.") && strings.Contains(name, ".avg")
	isDisk := !strings.HasSuffix(name, ".memory.availableBytes") && (strings.HasSuffix(name, ".availableBytes") || strings.HasSuffix(name, ".inodesFree"))
	if ours == theirs || !average && !isDisk {
		return ours == theirs
	}
	x, err1 := strconv.ParseFloat(ours, 64)
	y, err2 := strconv.ParseFloat(theirs, 64)
	switch {
	case err1 != nil || err2 != nil:
		return false
	case isDisk:
		return math.Abs(x-y) <= float64(mi)
	default:
		return x <= y+0.01 && (x >= 0.75*y-0.01 || !strings.HasSuffix(name, ".avg300"))
	}
}

// summaryField is a value of a summary. Its name is its path in the form of
// differences.Difference.
type summaryField struct{ name, value string }

// summaryFields returns the values of a summary by their paths. Elements of a
// list are known by their name.
func summaryFields(body string) (map[string]summaryField, error) {
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber()
	var all any
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf("read summary: %w", err)
	}
	found := map[string]summaryField{}
	var add func(path, name string, v any)
	add = func(path, name string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, in := range v {
				add(strings.TrimPrefix(path+"."+key, "."), strings.TrimPrefix(name+"."+key, "."), in)
			}
		case []any:
			for _, in := range v {
				element := fmt.Sprintf("[%s]", elementName(in))
				if name == "node.systemContainers" {
					add(path+element, name+element, in)
				} else {
					add(path+element, name, in)
				}
			}
		default:
			found[path] = summaryField{name, fmt.Sprint(v)}
		}
	}
	add("", "", all)
	return found, nil
}

// elementName returns the name of an element of a list in a summary.
func elementName(v any) string {
	of, _ := v.(map[string]any)
	if pod, ok := of["podRef"].(map[string]any); ok {
		return fmt.Sprintf("%v/%v", pod["namespace"], pod["name"])
	}
	return fmt.Sprint(of["name"])
}
