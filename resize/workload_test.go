package resize_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/resize"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// members describes the pods of all workloads: "Deployment web: web-1, web-0 gone".
func members(g *resize.Groups) string {
	var lines []string
	for _, w := range g.Sorted() {
		var pods []string
		for _, m := range w.Members {
			if m.Gone {
				m.Pod += " gone"
			}
			pods = append(pods, m.Pod)
		}
		lines = append(lines, w.Kind+" "+w.Name+": "+strings.Join(pods, ", "))
	}
	return strings.Join(lines, "\n")
}

// A pod that is gone belongs to the workload that would have named it so, and to none if two would.
func TestPodsThatAreGone(t *testing.T) {
	var g resize.Groups
	for _, known := range []struct{ kind, owner, pod string }{
		{"Deployment", "web", "web-7c5ddbdf54-x2x4z"}, {"StatefulSet", "db", "db-0"}, {"DaemonSet", "log", "log-x2x4z"},
		{"Job", "backup-29451234", "backup-29451234-x2x4z"}, {"Job", "report-20260102", "report-20260102-x2x4z"},
		{"Deployment", "two", "two-7c5ddbdf54-x2x4z"}, {"DaemonSet", "two-5f5f5f5f5", "two-5f5f5f5f5-x2x4z"}, {"", "", "alone"},
	} {
		g.Add(&resize.PodResources{Namespace: "shop", Name: known.pod, Phase: "Running"}, cluster.Owner{Kind: known.kind, Name: known.owner}, noon)
	}
	for _, pod := range []string{
		"web-7c5ddbdf54-x2x4z",                     // known
		"web-5f5f5f5f5-b4b4b", "db-1", "log-b4b4b", // gone
		"backup-29451000-b4b4b",                        // of an earlier Job of the CronJob
		"report-20260102-b4b4b",                        // a date is not a CronJob's number
		"two-5f5f5f5f5-b4b4b",                          // of the Deployment or of the DaemonSet
		"web-7c5ddbdf54-aeiou", "web", "-", "", "db-x", // not random, not a number
	} {
		g.AddGone("shop", pod, "", "app")
	}
	g.AddGone("bank", "web-5f5f5f5f5-b4b4b", "", "app")
	want := `CronJob backup: backup-29451234-x2x4z, backup-29451000-b4b4b gone
DaemonSet log: log-x2x4z, log-b4b4b gone
DaemonSet two-5f5f5f5f5: two-5f5f5f5f5-x2x4z
Deployment two: two-7c5ddbdf54-x2x4z
Deployment web: web-7c5ddbdf54-x2x4z, web-5f5f5f5f5-b4b4b gone
Job report-20260102: report-20260102-x2x4z, report-20260102-b4b4b gone
StatefulSet db: db-0, db-1 gone`
	if got := members(&g); got != want || g.Loose != 1 {
		t.Errorf("%d loose, got\n%s\nwant 1 and\n%s", g.Loose, got, want)
	}
}

// steady returns n readings, every 15 seconds, all the same.
func steady(from time.Time, n int, value float64) (points []resize.UsagePoint) {
	for i := range n {
		points = append(points, resize.UsagePoint{At: from.Add(time.Duration(i) * 15 * time.Second), Value: value})
	}
	return points
}

func workload(pods ...string) *resize.Workload {
	app := resize.ContainerResources{Name: "app", Requests: resize.Amounts{CPU: resize.Of(100), Memory: resize.Of(512 << 20)}}
	w := &resize.Workload{Namespace: "shop", Owner: cluster.Owner{Kind: "Deployment", Name: "web"}, Template: &resize.PodResources{Containers: []resize.ContainerResources{app}}}
	for _, pod := range pods {
		name, gone := strings.CutSuffix(pod, " gone")
		w.Members = append(w.Members, resize.Member{Pod: name, Gone: gone})
	}
	return w
}

// advice describes what is advised: "cpu Shrink 50m".
func advice(rec *resize.PodRecommendation) string {
	var words []string
	for _, a := range rec.Requests {
		text := string(a.Resource) + " " + string(a.Reason)
		if a.Proposed != nil {
			text += " " + a.Proposed.String()
		}
		words = append(words, text)
	}
	return strings.Join(words, ", ")
}

// The readings of all pods are one set: nine of ten readings are small, so the 95th percentile is not.
// The highest memory may be that of a pod that is gone.
func TestReadingsOfAllPods(t *testing.T) {
	use := func(m resize.Member, _ string, r resize.Resource) []resize.UsagePoint {
		value := map[string]map[resize.Resource]float64{
			"small": {resize.CPU: 0.010, resize.Memory: 50 << 20}, "large": {resize.CPU: 0.040, resize.Memory: 60 << 20}, "old": {resize.CPU: 0.010, resize.Memory: 200 << 20},
		}[m.Pod][r]
		n := map[string]int{"small": 80, "large": 10, "old": 10}[m.Pod]
		return steady(noon, n, value)
	}
	rec := resize.RecommendWorkload(workload("small", "large", "old gone", "never gone"), use, resize.Defaults())
	if got, want := advice(rec), "cpu Shrink 46m, memory Shrink 240Mi"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if w := rec.Workload; w.Pods != 2 || w.GonePods != 1 || rec.Frees.CPU.String() != "108m" || rec.Frees.Memory.String() != "544Mi" {
		t.Errorf("got %+v and frees %v %v, want 2 pods, 1 gone, 108m and 544Mi", w, &rec.Frees.CPU, &rec.Frees.Memory)
	}
	again := workload().Reconsider(rec, resize.Defaults())
	if got := advice(again); got != advice(rec) || again.Workload.Pods != 2 || !again.Workload.FromTemplate {
		t.Errorf("with a template of the same requests: %s of %+v, want %s", got, again.Workload, advice(rec))
	}
}

// The 10m of least saving are of all pods together.
func TestLeastSavingOfAWorkload(t *testing.T) {
	o := resize.Defaults()
	o.Resources = []resize.Resource{resize.CPU}
	use := func(resize.Member, string, resize.Resource) []resize.UsagePoint { return steady(noon, 60, 0.080) } // 92m, of 100m
	for pods, want := range map[string]string{"a": "cpu Fits", "a,b": "cpu Shrink 92m", "a,b gone": "cpu Fits"} {
		if got := advice(resize.RecommendWorkload(workload(strings.Split(pods, ",")...), use, o)); got != want {
			t.Errorf("%s: got %s, want %s", pods, got, want)
		}
	}
}

// Histories that are too short are refused with what is missing.
func TestShortHistories(t *testing.T) {
	f := func(name string, use func(m resize.Member) []resize.UsagePoint, reason resize.AdviceReason, want string) {
		t.Helper()
		rec := resize.RecommendWorkload(workload("a", "b", "c gone"), func(m resize.Member, _ string, _ resize.Resource) []resize.UsagePoint { return use(m) }, resize.Defaults())
		for _, a := range rec.Requests {
			if a.Reason != reason || !strings.Contains(a.Message, want) || a.Proposed != nil {
				t.Errorf("%s: got %s %q, want %s with %q", name, a.Reason, a.Message, reason, want)
			}
		}
	}
	f("none", func(resize.Member) []resize.UsagePoint { return nil }, resize.NoHistory, "no pod's container of this name was measured")
	f("impossible", func(resize.Member) []resize.UsagePoint { return steady(noon, 60, math.NaN()) }, resize.NoHistory, "no pod's")
	f("a minute", func(resize.Member) []resize.UsagePoint { return steady(noon, 5, 0.1) }, resize.ShortHistory, "measured for 1m, and at least 10m are needed")
	f("Jobs of seconds", func(m resize.Member) []resize.UsagePoint {
		return steady(noon.Add(map[string]time.Duration{"b": time.Hour}[m.Pod]), 2, 0.1)
	}, resize.ShortHistory, "none of its 3 pods was measured for longer than 15s")
}

// Shares of pods, and their order, do not matter: only readings do.
func TestSplittingAPodChangesNothing(t *testing.T) {
	points := steady(noon, 60, 0)
	for i := range points {
		points[i].Value = float64(i*7919%60) / 1000
	}
	f := func(parts ...[]resize.UsagePoint) string {
		w := workload()
		for i := range parts {
			w.Members = append(w.Members, resize.Member{Pod: fmt.Sprint(i)})
		}
		rec := resize.RecommendWorkload(w, func(m resize.Member, _ string, r resize.Resource) []resize.UsagePoint {
			i := slices.Index(w.Members, m)
			if r == resize.Memory {
				return nil
			}
			return parts[i]
		}, resize.Defaults())
		return advice(rec)
	}
	whole := f(points)
	if !strings.Contains(whole, "cpu Shrink") {
		t.Fatalf("got %s, want a smaller request", whole)
	}
	for _, at := range []int{10, 29, 55} {
		if got := f(points[at:], points[:at]); got != whole {
			t.Errorf("split at %d: got %s, want %s", at, got, whole)
		}
	}
}
