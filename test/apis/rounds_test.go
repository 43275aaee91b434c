//go:build e2e

package apis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/weir-metrics/weir/metric"
	model "github.com/weir-metrics/weir/metric/run"
)

// podReading is the answer of one server in a round: a claim, or the reason why
// there is none.
type podReading struct {
	claim
	reason string // empty: there is a claim
}

// ask gets one container from a server.
func ask(ctx context.Context, c *metricsclient.Clientset, d *duplicate) podReading {
	m, err := c.MetricsV1beta1().PodMetricses(d.namespace).Get(ctx, d.pod, metav1.GetOptions{})
	if err != nil {
		return podReading{reason: reasonOf(err)}
	}
	for i := range m.Containers {
		if c := &m.Containers[i]; c.Name == d.container {
			return podReading{claim: claimOf(m, c)}
		}
	}
	return podReading{reason: "without the container"}
}

// claimOf returns what an answer says about a container.
func claimOf(p *metricsv1beta1.PodMetrics, c *metricsv1beta1.ContainerMetrics) claim {
	return claim{p.Timestamp.Time, p.Window.Duration, use{
		c.Usage.Cpu().AsApproximateFloat64() * 1000, c.Usage.Memory().AsApproximateFloat64(),
	}}
}

// reasonOf returns the reason in an error of metrics.k8s.io, or the text of the
// error if it has none.
func reasonOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		if s := status.Status(); s.Details != nil && len(s.Details.Causes) == 1 {
			return string(s.Details.Causes[0].Type)
		}
		if apierrors.IsNotFound(err) {
			return "none"
		}
	}
	return err.Error()
}

// compare gets a container from both servers in rounds, and then compares the
// answers with the kernel's counters. No round is left out.
func (w *testCluster) compare(t *testing.T, d duplicate) {
	type round struct {
		age           time.Duration
		lines         int
		event         string
		weir, metrics podReading
	}
	rounds := make([]round, duplicateRounds)
	for i := range rounds {
		if i > 0 {
			wait(t, duplicateApart)
		}
		r := &rounds[i]
		if then := d.then[i]; then != nil {
			r.event = then()
		}
		r.age = time.Since(d.born)
		r.lines = w.linesOf(t, &d)
		r.weir, r.metrics = ask(t.Context(), w.weir, &d), ask(t.Context(), w.peer, &d)
		if d.twice > 0 && i == duplicateRounds-4 {
			w.expectDuplicates(t, &d)
		}
	}
	wait(t, 2*time.Second) // the last window may end within a second

	var table strings.Builder
	out := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "round\tage\tlines\tkernel\tweir\toff\tkernel\tweir\toff\tmetrics-server\toff\t\toff\t")
	twice, worst, events := 0, use{}, []string(nil)
	for i, r := range rounds {
		if r.lines > 1 {
			twice++
		}
		fmt.Fprintf(out, "%d\t%.0fs\t%d\t", i+1, r.age.Seconds(), r.lines)
		truth, off, err := d.judge(r.weir.claim)
		switch {
		case r.weir.reason != "":
			fmt.Fprintf(out, "\t%s\t\t\t\t\t", r.weir.reason)
			if r.age > d.grace || r.weir.reason == "none" {
				t.Errorf("round %d, %.0fs after the container's start: weir has no metrics: %s", i+1, r.age.Seconds(), r.weir.reason)
			}
		case err != nil:
			fmt.Fprintf(out, "\t%.1fm\t%v\t\t%.1fMi\t\t", r.weir.millicores, err, r.weir.bytes/mebi)
			t.Errorf("round %d: weir says %.1fm at %v over %v: %v", i+1, r.weir.millicores, r.weir.at, r.weir.window, err)
		default:
			fmt.Fprintf(out, "%.1fm\t%.1fm\t%s\t%.1fMi\t%.1fMi\t%s\t", truth.millicores, r.weir.millicores, percent(off.millicores),
				truth.bytes/mebi, r.weir.bytes/mebi, percent(off.bytes))
			worst = use{max(worst.millicores, off.millicores), max(worst.bytes, off.bytes)}
			if off.millicores > 0.03 {
				t.Errorf("round %d: weir says %.2fm, %v until %v; the kernel counted %.2fm", i+1, r.weir.millicores,
					r.weir.window, r.weir.at, truth.millicores)
			}
			if off.bytes > 0.05 {
				t.Errorf("round %d: weir says %.1f Mi, the kernel counted %.1f Mi", i+1, r.weir.bytes/mebi, truth.bytes/mebi)
			}
		}
		_, off, err = d.judge(r.metrics.claim)
		switch {
		case r.metrics.reason != "":
			fmt.Fprintf(out, "%s\t\t\t\t", r.metrics.reason)
		case err != nil:
			fmt.Fprintf(out, "%.1fm\told\t%.1fMi\t\t", r.metrics.millicores, r.metrics.bytes/mebi)
		default:
			fmt.Fprintf(out, "%.1fm\t%s\t%.1fMi\t%s\t", r.metrics.millicores, percent(off.millicores), r.metrics.bytes/mebi, percent(off.bytes))
		}
		fmt.Fprintln(out)
		if r.event != "" {
			events = append(events, fmt.Sprintf("before round %d: %s", i+1, r.event))
		}
	}
	out.Flush()
	t.Logf("%s: in %d rounds weir is at most %s off in CPU and %s in memory:\n%s%s", d.what, len(rounds),
		percent(worst.millicores), percent(worst.bytes), table.String(), strings.Join(events, "\n"))
	if twice < d.twice {
		t.Errorf("the kubelet named the container twice in %d rounds, want %d: there was no duplicate to tell apart", twice, d.twice)
	}
}

// expectDuplicates checks that weir reports the other instance, and why it is
// not the living one.
func (w *testCluster) expectDuplicates(t *testing.T, d *duplicate) {
	t.Helper()
	e, err := w.itself(t).Container(t.Context(), metric.PodRef{Namespace: metric.Namespace(d.namespace), Name: metric.PodName(d.pod)}, d.container)
	if err != nil {
		t.Error(err)
		return
	}
	if len(e.Duplicates) == 0 {
		t.Errorf("weir explain names no duplicate: %s", e.Summary)
	}
	for _, r := range e.Duplicates {
		t.Logf("weir explain: a duplicate, %s by the rule %q: %s", r.Reason, r.Rule, r.Message)
	}
}

// judge returns the truth of a claim and its error, for the container's present
// run. For a claim from before that run it uses the earlier run.
func (d *duplicate) judge(c claim) (truth, off use, err error) {
	if truth, off, err = d.truth.judge(c, model.CounterLag); err != nil && d.earlier != nil && c.at.Before(d.born) {
		return d.earlier.judge(c, model.CounterLag)
	}
	return truth, off, err
}

// linesOf returns how many CPU lines the kubelet's /metrics/resource has for
// the container at present.
func (w *testCluster) linesOf(t *testing.T, d *duplicate) int {
	t.Helper()
	body, err := w.metricsResource(t.Context())
	if err != nil {
		t.Error(err)
	}
	return strings.Count(body, fmt.Sprintf("\ncontainer_cpu_usage_seconds_total{container=%q,namespace=%q,pod=%q}", d.container, d.namespace, d.pod))
}
