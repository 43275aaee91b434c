// Package catalogue tests that the catalogue of metrics can grow: a new rate
// and a new group need only a few lines in package metric, and no change in the
// processors or the memory sink.
package catalogue

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// added has the lines to add: each after the first line that is equal to its
// key.
var added = map[string]map[string]string{
	"metric/catalogue.go": {
		"	CPUPressureFullRate":  "	CPUUserRate",
		"	AcceleratorDutyCycle": "	ThermalTemperature",
		"var Catalogue = [NumMetrics]Descriptor{": `	CPUUserRate: notInHeapster(rateOf(CPUUser, "cpu/user_rate", "cpu_user_cores", Nanocores, CPU, runningKinds, "CPU time used in user mode in each second of the window.")),
	ThermalTemperature: notInHeapster(gauge("thermal/temperature", "thermal_temperature", Count, Thermal, onNode, "Temperature.")),`,
	},
	"metric/sample.go": {"	Accelerator": "	Thermal"},
}

// replaced has the texts to replace, for lists that are written in one line.
var replaced = map[string][2]string{
	"metric/sample.go": {`"accelerator", "spec"`, `"accelerator", "thermal", "spec"`},
}

// program measures a container that used 3 s of CPU time in user mode within
// 15 s, and a node with a temperature of 40 degrees.
const program = `package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/sinks/memory"
)

func main() {
	p := processors.New(processors.Options{})
	store := memory.New(memory.Options{HistoryMetrics: []metric.ID{metric.CPUUserRate, metric.ThermalTemperature}})
	begin := time.Unix(1_700_000_000, 0)
	for round := range 3 {
		now := begin.Add(time.Duration(round) * 15 * time.Second)
		b := &metric.Batch{Node: "n1", Interval: 15 * time.Second, Resolution: time.Millisecond, Cores: 4}
		s := b.Add(metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: "web", Name: "app"})
		s.Instance.ID = "a"
		s.Values.Set(metric.CPUUsage, float64(round+1)*6e9)
		s.Values.Set(metric.CPUUser, float64(round+1)*3e9)
		s.Values.Set(metric.MemoryWorkingSet, 1)
		s.Times[metric.CPU], s.Times[metric.Memory] = now.UnixNano(), now.UnixNano()
		n := b.Add(metric.Entity{Kind: metric.Node, Node: "n1"})
		n.Values.Set(metric.CPUUsage, float64(round+1)*6e9)
		n.Times[metric.CPU] = now.UnixNano()
		if round > 0 { // the first read has no temperature
			n.Values.Set(metric.ThermalTemperature, 40)
			n.Times[metric.Thermal] = now.UnixNano()
		}
		p.Process(nil, b, now)
		b.Source, b.Ended = "kubelet", now
		if err := store.Write(context.Background(), b); err != nil {
			fmt.Println(err)
		}
		if round == 1 {
			user, ok := b.Samples[0].Values.Get(metric.CPUUserRate)
			fmt.Println(user, ok, b.Samples[0].Reasons[metric.CPU])
			warm, ok := b.Samples[1].Values.Get(metric.ThermalTemperature)
			fmt.Println(warm, ok, b.Samples[1].Reasons[metric.Thermal], metric.Thermal, metric.ThermalTemperature)
		}
	}
	stored := store.Snapshot()
	for _, of := range []struct {
		entity metric.Entity
		metric metric.ID
	}{
		{metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: "web", Name: "app"}, metric.CPUUserRate},
		{metric.Entity{Kind: metric.Node, Node: "n1"}, metric.ThermalTemperature},
	} {
		s, ok := stored.Lookup(of.entity)
		if !ok {
			fmt.Println("no sample of", of.metric)
			continue
		}
		value, ok := s.Values.Get(of.metric)
		group := of.metric.Describe().Group
		read := s.Time(group).Sub(begin)
		points := stored.History(of.entity, of.metric, begin, begin.Add(time.Hour))
		fmt.Println("stored", value, ok, "read after", read, "points", len(points))
	}
}
`

func TestCatalogueGrows(t *testing.T) {
	module := t.TempDir()
	for _, dir := range []string{"metric", "cluster", "processors", "internal/humanize", "internal/options", "sinks/memory"} {
		if err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/informer/") {
				return err
			}
			return copyFile(t, module, path)
		}); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(module, "go.mod"), "module github.com/weir-metrics/weir\n\ngo 1.26.0\n")
	write(t, filepath.Join(module, "grown", "main.go"), program)
	run := exec.Command("go", "run", "./grown")
	run.Dir, run.Env = module, append(os.Environ(), "GOFLAGS=", "GOPROXY=off", "CGO_ENABLED=0")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const want = `2e+08 true Measured
40 true Measured thermal thermal/temperature
stored 2e+08 true read after 30s points 2
stored 40 true read after 30s points 2
`
	if string(out) != want {
		t.Errorf("with a rate and a group more, the pipeline prints\n%swant\n%s", out, want)
	}
}

// copyFile copies a file of the repository into the module and adds the lines.
func copyFile(t *testing.T, module, path string) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	text := string(src)
	for after, line := range added[name] {
		if !strings.Contains(text, "\n"+after+"\n") {
			t.Fatalf("%s has no line %q", name, after)
		}
		text = strings.Replace(text, "\n"+after+"\n", "\n"+after+"\n"+line+"\n", 1)
	}
	if r, ok := replaced[name]; ok {
		if !strings.Contains(text, r[0]) {
			t.Fatalf("%s has no %s", name, r[0])
		}
		text = strings.Replace(text, r[0], r[1], 1)
	}
	write(t, filepath.Join(module, name), text)
	return nil
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
