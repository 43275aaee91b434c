//go:build e2e

package apis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/metric"
)

// faults is the table of the causes that were injected, with weir's reasons.
type faults struct {
	w         *testCluster
	t         *testing.T
	namespace string
	rows      []*fault
	began     time.Time
}

// fault is a cause that was injected, and the reason that is correct for it.
type fault struct {
	cause, of, want string
	asks            explainer
	passing         bool

	got     string
	took    time.Duration
	message string
}

// explain returns the name of the reason why a pod, or a container
// "pod/container", has no CPU, and its message. The reason is "Measured" if
// there is a number.
func (f *faults) explain(asks explainer, of string) (reason, message string) {
	name, inside, isContainer := strings.Cut(of, "/")
	ref := metric.PodRef{Namespace: metric.Namespace(f.namespace), Name: metric.PodName(name)}
	e, err := asks.Pod(f.t.Context(), ref)
	if isContainer {
		e, err = asks.Container(f.t.Context(), ref, inside)
	}
	if err != nil {
		return "no explanation", err.Error()
	}
	return reasonIn(e)
}

// expect asks a weir until it gives the reason for a pod or container, but not
// longer than within.
func (f *faults) expect(cause, of, want string, asks explainer, within time.Duration) {
	f.t.Helper()
	row := &fault{cause: cause, of: of, want: want, asks: asks}
	f.rows = append(f.rows, row)
	began := time.Now()
	for {
		row.got, row.message = f.explain(asks, of)
		row.took = time.Since(began)
		if row.got == want || row.took > within {
			break
		}
		wait(f.t, 200*time.Millisecond)
	}
	f.t.Logf("%6.1fs  %s: %s", time.Since(f.began).Seconds(), cause, row.got)
	if row.got != want {
		f.t.Errorf("%s: weir says %s after %.0fs, want %s: %s", cause, row.got, row.took.Seconds(), want, row.message)
	}
}

// expectState is like expect, for a reason that must match the container's
// state at the API server. That state must be the same before and after weir is
// asked. It may soon change, so expectLastKnown does not ask again.
func (f *faults) expectState(cause, of, container string, asks explainer) {
	f.t.Helper()
	row := &fault{cause: cause, of: of, asks: asks, passing: true}
	f.rows = append(f.rows, row)
	began := time.Now()
	eventually(f.t, cause+" is known", resolution, func() error {
		row.want = f.stateOf(container)
		row.got, row.message = f.explain(asks, of)
		row.took = time.Since(began)
		if after := f.stateOf(container); row.want == "Measured" || row.got != row.want || after != row.want {
			return fmt.Errorf("weir says %s: %s; by the API server it is %s, then %s", row.got, row.message, row.want, after)
		}
		return nil
	})
	f.t.Logf("%6.1fs  %s: %s", time.Since(f.began).Seconds(), cause, row.got)
}

// expectOneOf is like expect, for a fault with several correct reasons. The
// message must contain words.
func (f *faults) expectOneOf(cause, of, words string, asks explainer, reasons ...string) {
	f.t.Helper()
	row := &fault{cause: cause, of: of, asks: asks, want: reasons[0], passing: true}
	f.rows = append(f.rows, row)
	began := time.Now()
	eventually(f.t, cause+" is told", 3*resolution, func() error {
		row.got, row.message = f.explain(asks, of)
		row.took = time.Since(began)
		if !slices.Contains(reasons, row.got) || !strings.Contains(row.message, words) {
			return fmt.Errorf("weir says %s: %s; want one of %v, and %q", row.got, row.message, reasons, words)
		}
		row.want = row.got
		return nil
	})
	f.t.Logf("%6.1fs  %s: %s", time.Since(f.began).Seconds(), cause, row.got)
}

// passes says that the last row's reason may soon change.
func (f *faults) passes() { f.rows[len(f.rows)-1].passing = true }

// expectLastKnown asks again for every row that may not change. The reason must
// still be the same.
func (f *faults) expectLastKnown() {
	f.t.Helper()
	for _, row := range f.rows {
		if row.passing {
			continue
		}
		if got, message := f.explain(row.asks, row.of); got != row.want {
			row.got, row.message = got, message
			f.t.Errorf("%s: weir says %s now, want %s: %s", row.cause, got, row.want, message)
		}
	}
}

// table prints the rows.
func (f *faults) table() {
	var table strings.Builder
	out := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "injected cause\treported reason\tafter\tin words")
	right := 0
	for _, row := range f.rows {
		reported := row.got
		if row.got != row.want {
			reported += ", want " + row.want
		} else {
			right++
		}
		words, _, _ := strings.Cut(row.message, "\n")
		fmt.Fprintf(out, "%s\t%s\t%.1fs\t%s\n", row.cause, reported, row.took.Seconds(), words)
	}
	out.Flush()
	f.t.Logf("%d of %d causes are named, %d%%:\n%s", right, len(f.rows), 100*right/max(1, len(f.rows)), table.String())
}

// stateOf returns the reason that matches the state of a pod's container at the
// API server. A container that crashes again and again is terminated for a
// while, and then waits.
func (f *faults) stateOf(of string) string {
	f.t.Helper()
	name, inside, _ := strings.Cut(of, "/")
	p, err := f.w.kube.CoreV1().Pods(f.namespace).Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, c := range p.Status.ContainerStatuses {
		switch {
		case c.Name != inside:
		case c.State.Waiting != nil:
			return "ContainerNotStarted"
		case c.State.Terminated != nil:
			return "ContainerFinished"
		}
	}
	return "Measured"
}

// nodeIs waits until the real node's Ready condition has that status at the API
// server.
func (f *faults) nodeIs(want corev1.ConditionStatus) {
	f.t.Helper()
	eventually(f.t, "the node's condition Ready is "+string(want), 3*time.Minute, func() error {
		node, err := f.w.kube.CoreV1().Nodes().Get(f.t.Context(), f.w.Node(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				if c.Status != want {
					return fmt.Errorf("it is %s: %s", c.Status, c.Message)
				}
				return nil
			}
		}
		return errors.New("it has none")
	})
}
