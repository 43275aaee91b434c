package replaycmd

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/autoscaler/replay"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/client/recordingcmd"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/sinks/memory"
)

// replayManifest is an HPA on half of the requested CPU.
const replayManifest = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 10
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
`

var recorded = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

// recordRun records ten minutes of two pods that request one core each. Together they use one core
// and, from the fifth minute on, three.
func recordRun(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := recording.NewWriter(file, recording.Options{Begin: recorded})
	if err != nil {
		t.Fatal(err)
	}
	var pods []*cluster.Pod
	for _, name := range []string{"web-5d4f8c7b9-aaaaa", "web-5d4f8c7b9-bbbbb"} {
		p := &cluster.Pod{
			PodRef: metric.PodRef{Namespace: "shop", Name: metric.PodName(name)}, UID: metric.PodUID(name), Node: "n1", Phase: cluster.Running,
			Started: recorded.Add(-time.Hour), Ready: cluster.ReadyTrue, ReadySince: recorded.Add(-time.Hour), KnownAt: recorded.Add(-time.Hour),
			Containers: []cluster.Container{{Name: "app", State: cluster.StateRunning, ID: metric.ContainerID("id-" + name), StartedAt: recorded.Add(-time.Hour)}},
		}
		p.Containers[0].Spec.Set(metric.CPURequest, 1e9)
		pods = append(pods, p)
	}
	facts := (*cluster.Facts)(nil).With(cluster.FactsChange{Synced: true, At: recorded, Pods: pods, Nodes: []*cluster.Node{{Name: "n1", Ready: true}}})
	used := 100e9 // nanoseconds, for each pod
	for now := recorded; now.Before(recorded.Add(10 * time.Minute)); now = now.Add(15 * time.Second) {
		b := &metric.Batch{Source: "kubelet:resource", Node: "n1", Began: now, Ended: now, Interval: 15 * time.Second, Resolution: time.Millisecond}
		for _, p := range pods {
			s := b.Add(metric.Entity{Kind: metric.Container, Node: "n1", Namespace: p.Namespace, Pod: p.Name, Name: "app"})
			s.Instance.UID, s.Instance.ID, s.Instance.Start = p.UID, p.Containers[0].ID, recorded.Add(-time.Hour).UnixNano()
			s.Values.Set(metric.CPUUsage, used)
			s.Values.Set(metric.MemoryWorkingSet, 64<<20)
			s.Times[metric.CPU], s.Times[metric.Memory] = now.UnixNano(), now.UnixNano()
		}
		if err := w.Round(b, facts, now); err != nil {
			t.Fatal(err)
		}
		cores := 0.5
		if now.Sub(recorded) >= 5*time.Minute {
			cores = 1.5
		}
		used += cores * 15e9
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// newRoot returns a command weir with only replay.
func newRoot() *cobra.Command {
	root := &cobra.Command{Use: "weir"}
	root.AddCommand(NewCommand(pipeline))
	return root
}

func pipeline(manager.Spec) (steps []manager.Processor) {
	for _, step := range processors.New(processors.Options{}).Steps() {
		steps = append(steps, step)
	}
	return steps
}

// A recording goes through the pipeline, the model and the decision. The output is a table, CSV,
// JSON and a chart.
func TestReplayOfARecording(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	recordRun(t, path("run.weir"))
	if err := os.WriteFile(path("new.yaml"), []byte(replayManifest), 0o600); err != nil {
		t.Fatal(err)
	}
	careful := strings.Replace(replayManifest, "averageUtilization: 50", "averageUtilization: 75", 1)
	if err := os.WriteFile(path("old.yaml"), []byte(careful), 0o600); err != nil {
		t.Fatal(err)
	}
	weir := func(words ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		words = append([]string{"replay", "--recording", path("run.weir"), "-f", path("new.yaml")}, words...)
		if status := cli.Main(t.Context(), newRoot(), words, &out, &errs); status != 0 || errs.Len() > 0 {
			t.Fatalf("weir %v: exit status %d\n%s", words, status, errs.String())
		}
		return out.String()
	}

	table := weir("--against", path("old.yaml"), "--svg", path("chart.svg"), "--csv", path("syncs.csv"), "--startup", "0s")
	// Three cores on two pods are 150%: a target of 50% needs 6 pods, and one of 75% needs 4.
	for _, want := range []string{"shop Deployment/web from 2026-01-05 10:00:", "RECORDED   old.yaml   new.yaml", "cpu 150% of 50% asks for 6", "cpu 150% of 75% asks for 4", "2 to 6"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	file, err := os.ReadFile(path("syncs.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(file)).ReadAll()
	if last := rows[len(rows)-1]; err != nil || last[1] != "new.yaml" || last[3] != "6" {
		t.Errorf("the CSV ends with %v, %v, want 6 replicas of new.yaml", last, err)
	}
	if toStdout := weir("--csv", "-"); !strings.HasPrefix(toStdout, "time,spec,current,") {
		t.Errorf("--csv - gave %.80q", toStdout)
	}
	svg, err := os.Open(path("chart.svg"))
	if err != nil {
		t.Fatal(err)
	}
	defer svg.Close()
	d := xml.NewDecoder(svg)
	for err == nil {
		_, err = d.Token()
	}
	if !errors.Is(err, io.EOF) {
		t.Errorf("the chart is no XML: %v", err)
	}
	var report replay.Comparison
	if err := json.Unmarshal([]byte(weir("-o", "json")), &report); err != nil || len(report.Runs) != 1 || report.Runs[0].Totals.Peak != 6 {
		t.Errorf("JSON: got %+v, %v, want a peak of 6", report.Runs, err)
	}
	// With a request of 2 cores, half of it is one core: 3 cores need 3 pods.
	if table := weir("--request", "cpu=2", "--initial-replicas", "3"); !strings.Contains(table, "3 to 3") {
		t.Errorf("with other requests and a beginning of 3:\n%s", table)
	}
}

// While a long recording is played, a terminal shows how much was read. Each frame takes a second
// here.
func TestProgressOfARecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "run.weir")
		recordRun(t, path)
		var out bytes.Buffer
		line := cli.NewProgress(&out, func() int { return 500 })
		frames := 0
		err := recordingcmd.Play(t.Context(), path, line, pipeline, func(*recording.Frame, *memory.Snapshot) error {
			frames++
			time.Sleep(time.Second)
			return nil
		})
		line.Stop()
		if err != nil || frames < 40 {
			t.Fatalf("%d frames, %v", frames, err)
		}
		shown := regexp.MustCompile(`run\.weir (\d+)%`).FindAllStringSubmatch(out.String(), -1)
		if len(shown) == 0 {
			t.Fatalf("the terminal got %q", out.String())
		}
		if !strings.HasSuffix(out.String(), " \r") {
			t.Errorf("the line was not removed: %q", out.String())
		}
	})
}

// What containers used and requested in a recording is a trace: CPU has a value from the second round on.
func TestUsageOfARecording(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.weir")
	recordRun(t, path)
	entities, err := recordingcmd.Usage(t.Context(), path, "shop", nil, pipeline)
	if err != nil || len(entities) != 2 {
		t.Fatalf("%d containers, %v", len(entities), err)
	}
	for i, name := range []string{"shop/web-5d4f8c7b9-aaaaa/app", "shop/web-5d4f8c7b9-bbbbb/app"} {
		e := &entities[i]
		cpu, memory, requests := e.Metrics["cpu"], e.Metrics["memory"], e.Metrics["cpu_request"]
		if e.Name != name || len(cpu) != 39 || len(memory) != 40 || len(requests) != 1 || requests[0].Value != 1 || len(e.Metrics["memory_request"]) != 0 {
			t.Fatalf("container %d is %s with %d readings of CPU, %d of memory, and the requests %v", i, e.Name, len(cpu), len(memory), requests)
		}
		for _, r := range cpu {
			want := 0.5
			if r.At.After(recorded.Add(5 * time.Minute)) {
				want = 1.5
			}
			if math.Abs(r.Value-want) > 1e-6 {
				t.Errorf("%s used %v CPUs at %v, want %v", name, r.Value, r.At, want)
			}
		}
		if last := memory[39]; last.Value != 64<<20 || !last.At.Equal(recorded.Add(39*15*time.Second)) {
			t.Errorf("the last reading of memory is %v", last)
		}
	}
	if _, err := recordingcmd.Usage(t.Context(), path, "bank", nil, pipeline); err == nil || !strings.Contains(err.Error(), "no use of containers of namespace bank") {
		t.Errorf("another namespace: %v", err)
	}
}

func TestReplayMistakes(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	recordRun(t, path("run.weir"))
	for name, text := range map[string]string{
		"new.yaml":   replayManifest,
		"other.yaml": strings.Replace(replayManifest, "kind: Deployment, name: web", "kind: Deployment, name: api", 1),
		"queue.yaml": strings.Replace(replayManifest, "type: Resource\n    resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}", `type: External
    external: {metric: {name: queue}, target: {type: AverageValue, averageValue: "1"}}`, 1),
		"homeless.yaml": strings.Replace(replayManifest, ", namespace: shop", "", 1),
	} {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ args, want string }{
		{"--recording run.weir", "which manifest? Name a file with -f"},
		{"-f new.yaml", "what is to be replayed? Give --recording or --prometheus"},
		{"-f new.yaml --recording run.weir --prometheus http://127.0.0.1:1", "cannot both be replayed"},
		{"-f new.yaml --recording run.weir --against other.yaml", "they cannot be compared"},
		{"-f new.yaml --recording none", "open the recording"},
		{"-f new.yaml --recording run.weir -n bank", "has no pods of Deployment/web in namespace bank"},
		{"-f new.yaml --recording run.weir --from 2026-01-06T00:00:00Z --to 2026-01-05T00:00:00Z", "is not after --from"},
		{"-f new.yaml --recording run.weir --from 2026-01-06T00:00:00Z", "no round in that time"},
		{"-f new.yaml --recording run.weir --from yesterday", "or a duration from the beginning such as 90m"},
		{"-f new.yaml --recording run.weir --from 7d", "no round in that time"},
		{"-f new.yaml --recording none --from 1m", "no such file"},
		{"-f new.yaml --prometheus http://127.0.0.1:1 --from yesterday", "write 2026-01-02T12:00:00Z, 36h or 7d"},
		{"-f new.yaml --recording run.weir --query a=b", "--selector chooses pods"},
		{"-f new.yaml --recording run.weir --request cpu=none", `"none" is not a quantity above zero`},
		{"-f new.yaml --recording run.weir --request proxy/cpu=1", "no container proxy"},
		{"-f queue.yaml --recording run.weir", "use --prometheus"},
		{"-f queue.yaml --prometheus http://127.0.0.1:1", "add its query with --query queue=PROMQL"},
		{"-f queue.yaml --prometheus http://127.0.0.1:1 --query queue", "write NAME=PROMQL"},
		{"-f new.yaml --prometheus http://127.0.0.1:1 --from 1h", "connection refused"},
		{"-f new.yaml --prometheus http://127.0.0.1:1 --header Authorization=x", "use --token-file"},
		{"-f new.yaml --history prometheus:http://127.0.0.1:1 --from 1h", "connection refused"},
		{"-f new.yaml --history prometheus:http://127.0.0.1:1?header=authorization=x", "use --token-file"},
		{"-f new.yaml --history prometheus:http://127.0.0.1:1 --prometheus http://127.0.0.1:1", "choose one"},
		{"-f new.yaml --history prometheus:http://127.0.0.1:1 --token-file token", "are for --prometheus"},
		{"-f new.yaml --history prometheus:http://127.0.0.1:1?token-file=a&token-file=b", "option token-file is given 2 times: give it once"},
		{"-f new.yaml --history graphite:http://127.0.0.1:1", "prometheus"},
		{"-f new.yaml --history prometheus:http://127.0.0.1:1 -l app=web", "--pods chooses pods"},
		{"-f homeless.yaml --recording run.weir", "the manifest has no namespace: set --namespace"},
		{"-f new.yaml --recording run.weir --startup -1s", "--startup cannot be -1s"},
		{"-f new.yaml --recording run.weir -o xml", "--output"},
	} {
		words := []string{"replay"}
		for _, word := range strings.Fields(test.args) {
			if _, err := os.Stat(path(word)); err == nil {
				word = path(word)
			}
			words = append(words, word)
		}
		var out bytes.Buffer
		if status := cli.Main(t.Context(), newRoot(), words, &out, &out); status != 1 || !strings.Contains(out.String(), test.want) {
			t.Errorf("%s: exit status %d, want 1 and %q in\n%s", test.args, status, test.want, out.String())
		}
	}
}
