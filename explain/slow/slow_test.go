package slow_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/explain/slow"
	"github.com/weir-metrics/weir/test/transcript"
)

// TestTranscripts runs the files in testdata. go test PKG -args -rewrite writes their output again.
//
//	decide [window=5m] [nostalls] [cannotname=NAMESPACE]
//	    pod NAMESPACE/NAME KEY=VALUES ...
//	    container NAME KEY=VALUES ...
//	    neighbour NAMESPACE/NAME KEY=VALUES ...
//	    node KEY=VALUES ...                   limits are its capacity, requests what it reserves
//	matrix                                    the cases of TestMatrix
//
// Keys are cpu.some, cpu.full, memory.some, ..., io.full (shares), cpu, throttled, memory, workingset, faults,
// read, write, disk (a name; sda if it is left out, and "-" if it is not known), gone (its requests are not known),
// and the constants cpu.request, cpu.limit, memory.request, memory.limit, hits. VALUES are those of
// readings 15 s apart until 12:00:00: "0.5" is all of them, "0.5x10,0x10" ten of each, "-" none.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "matrix" {
				return matrixText(t)
			}
			return text(slow.Decide(factsOf(t, d)))
		})
	})
}

// text writes an answer.
func text(a slow.Slow) string {
	var s strings.Builder
	fmt.Fprintln(&s, a.Summary)
	if want := a.To.Sub(a.From).Seconds(); a.MeasuredSeconds != want {
		fmt.Fprintf(&s, "  %gs of %gs were measured\n", a.MeasuredSeconds, want)
	}
	for _, stall := range a.Stalls {
		if stall.Some == nil || *stall.Some == 0 {
			continue
		}
		fmt.Fprintf(&s, "  %s %.3f:", stall.Resource, *stall.Some)
		for _, p := range stall.Parts {
			fmt.Fprintf(&s, " %s %.3f", p.Cause, p.Share)
		}
		fmt.Fprintln(&s)
	}
	for _, fact := range a.Evidence {
		fmt.Fprintf(&s, "  - %s\n", fact)
	}
	for _, fact := range a.NotKnown {
		fmt.Fprintf(&s, "  not known: %s\n", fact)
	}
	if a.Advice != "" {
		fmt.Fprintf(&s, "  do: %s\n", a.Advice)
	}
	return s.String()
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const (
	step     = 15 * time.Second
	readings = 20
)

func factsOf(t *testing.T, d *datadriven.TestData) slow.Facts {
	t.Helper()
	window := 5 * time.Minute
	f := slow.Facts{Node: "n1", To: noon}
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "window":
			var err error
			if window, err = time.ParseDuration(arg.Vals[0]); err != nil {
				t.Fatal(err)
			}
		case "nostalls":
			f.NoStalls = "the node reports no stalls."
		case "cannotname":
			f.MayName = func(namespace string) bool { return namespace != arg.Vals[0] }
		default:
			d.Fatalf(t, "%q: unknown argument", arg.Key)
		}
	}
	f.From = noon.Add(-window)
	for _, line := range transcript.Lines(d.Input) {
		words := strings.Fields(line)
		switch words[0] {
		case "pod":
			f.Pod = useOf(t, words[1], words[2:])
		case "container":
			f.Containers = append(f.Containers, useOf(t, words[1], words[2:]))
		case "neighbour":
			f.Neighbours = append(f.Neighbours, useOf(t, words[1], words[2:]))
		case "node":
			f.Whole = useOf(t, "", words[1:])
		default:
			d.Fatalf(t, "%q: unknown line", line)
		}
	}
	return f
}

func useOf(t *testing.T, name string, words []string) (u slow.Use) {
	t.Helper()
	namespace, pod, ok := strings.Cut(name, "/")
	if u.Namespace, u.Name = namespace, pod; !ok {
		u.Namespace, u.Name = "", name
	}
	u.Disks = map[string]float64{"sda": 1}
	for _, word := range words {
		key, values, _ := strings.Cut(word, "=")
		switch key {
		case "gone":
			u.NoRequests, u.Disks = true, nil
			continue
		case "disk":
			if u.Disks = nil; values != "-" {
				u.Disks = map[string]float64{values: 1}
			}
			continue
		}
		series := seriesOf(t, values)
		constant := 0.0
		if len(series) > 0 {
			constant = series[0].Value
		}
		switch key {
		case "cpu":
			u.CPU = series
		case "throttled":
			u.Throttled = series
		case "memory":
			u.Memory = series
		case "workingset":
			u.WorkingSet = series
		case "faults":
			u.MajorFaults = series
		case "read":
			u.Read = series
		case "write":
			u.Write = series
		case "cpu.some", "memory.some", "io.some":
			u.Some[index(key)] = series
		case "cpu.full", "memory.full", "io.full":
			u.Full[index(key)] = series
		case "cpu.request":
			u.CPURequest = constant
		case "cpu.limit":
			u.CPULimit = constant
		case "memory.request":
			u.MemoryRequest = constant
		case "memory.limit":
			u.MemoryLimit = constant
		case "hits":
			u.LimitHits = constant
		default:
			t.Fatalf("%q: unknown key", word)
		}
	}
	return u
}

func index(key string) int {
	return slices.Index([]string{"cpu", "memory", "io"}, strings.SplitN(key, ".", 2)[0])
}

func seriesOf(t *testing.T, text string) (s slow.Series) {
	t.Helper()
	var values []float64
	missing := []bool{}
	for part := range strings.SplitSeq(text, ",") {
		value, times := part, readings
		if number, count, ok := strings.Cut(part, "x"); ok {
			value = number
			var err error
			if times, err = strconv.Atoi(count); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
		}
		v := 0.0
		if value != "-" {
			q, err := resource.ParseQuantity(value)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			v = q.AsApproximateFloat64()
		}
		for range times {
			values, missing = append(values, v), append(missing, value == "-")
		}
	}
	for i, v := range values {
		if !missing[i] {
			s = append(s, slow.Point{At: noon.Add(-step * time.Duration(len(values)-1-i)), Value: v})
		}
	}
	return s
}

// TestEveryCauseIsShown checks that each cause is the result of a transcript, and that the README has a row for each
// cause, and for no other.
func TestEveryCauseIsShown(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile(filepath.Join("testdata", "causes"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range slow.Causes() {
		if !strings.Contains(string(all), ": "+string(c)+" ") {
			t.Errorf("no transcript in testdata/causes has %s first: write one", c)
		}
		if !strings.Contains(string(readme), "| `"+string(c)+"` |") {
			t.Errorf("README.md has no row for %s", c)
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(string(readme), -1) {
		if !slices.Contains(slow.Causes(), slow.Cause(row[1])) {
			t.Errorf("README.md has a row for %s, which is not a cause", row[1])
		}
	}
}

// TestShares checks with random readings, also impossible ones, that the parts of a stall are its parts, that
// neighbours have no more than the part that is due to them, and that a pod that is alone has none.
func TestShares(t *testing.T) {
	for seed := range uint64(3000) {
		f := randomFacts(rand.New(rand.NewPCG(seed, 1)))
		checkShares(t, fmt.Sprintf("seed %d", seed), &f)
	}
}

// FuzzShares is TestShares with a seed of the fuzzer's.
func FuzzShares(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		facts := randomFacts(rand.New(rand.NewPCG(a, b)))
		checkShares(t, fmt.Sprintf("seed %d, %d", a, b), &facts)
	})
}

func checkShares(t *testing.T, what string, f *slow.Facts) {
	t.Helper()
	const tolerance = 1e-9
	a := slow.Decide(*f)
	for _, s := range a.Stalls {
		if s.Some == nil {
			if len(s.Parts)+len(s.Neighbours) > 0 {
				t.Errorf("%s: %s was not measured, and has %v, %v", what, s.Resource, s.Parts, s.Neighbours)
			}
			continue
		}
		sum, byNeighbours := 0.0, 0.0
		for _, p := range s.Parts {
			if !(p.Share >= 0) {
				t.Errorf("%s: %s has a part %v", what, s.Resource, p)
			}
			sum += p.Share
			if p.Cause == slow.Neighbours {
				byNeighbours = p.Share
			}
		}
		if !(*s.Some >= 0 && *s.Some <= 1+tolerance && (s.Full == nil || *s.Full <= *s.Some+tolerance)) {
			t.Errorf("%s: %s some %v, full %v", what, s.Resource, *s.Some, *s.Full)
		}
		if !(math.Abs(sum-*s.Some) <= tolerance) {
			t.Errorf("%s: the parts of %s are %v, together %v; want %v", what, s.Resource, s.Parts, sum, *s.Some)
		}
		named := 0.0
		for _, n := range s.Neighbours {
			named += n.Share
			if !(n.Above <= n.Used+math.Abs(n.Used)*tolerance) {
				t.Errorf("%s: %s: neighbour %+v is above its request by more than it used", what, s.Resource, n)
			}
		}
		if !(named <= byNeighbours+tolerance) {
			t.Errorf("%s: %s: neighbours have %v, more than %v", what, s.Resource, named, byNeighbours)
		}
		if len(f.Neighbours) == 0 && (byNeighbours > 0 || named > 0) {
			t.Errorf("%s: the pod is alone, and %s has neighbours: %v", what, s.Resource, s.Neighbours)
		}
	}
	if a.Lost < 0 || a.Lost > 1+tolerance || a.Summary == "" || (a.Lost > 0) != (a.Resource != "") {
		t.Errorf("%s: lost %v of %q: %q", what, a.Lost, a.Resource, a.Summary)
	}
	if f.NoStalls == "" && strings.Contains(a.Summary, "because of ") && len(f.Neighbours) == 0 && !strings.Contains(a.Summary, "because of processes") {
		t.Errorf("%s: the pod is alone: %s", what, a.Summary)
	}
}

func randomFacts(r *rand.Rand) slow.Facts {
	series := func(most float64) (s slow.Series) {
		if r.IntN(5) == 0 {
			return nil
		}
		at := noon.Add(-time.Duration(300+r.IntN(100)) * time.Second)
		for at.Before(noon.Add(time.Minute)) {
			at = at.Add(time.Duration(1+r.IntN(30000)) * time.Millisecond)
			v := r.Float64() * most
			switch r.IntN(8) {
			case 0:
				v = 0
			case 1:
				v = most
			case 2:
				v = -v
			}
			s = append(s, slow.Point{At: at, Value: v})
		}
		return s
	}
	use := func(name string) (u slow.Use) {
		u = slow.Use{Namespace: "shop", Name: name, CPU: series(4), Throttled: series(3), Memory: series(1 << 30), WorkingSet: series(1 << 30),
			MajorFaults: series(100), Read: series(1 << 27), Write: series(1 << 27)}
		for i := range u.Some {
			u.Some[i], u.Full[i] = series(1.2), series(1.2)
		}
		for _, p := range []*float64{&u.CPURequest, &u.CPULimit} {
			*p = max(0, r.Float64()*6-2)
		}
		for _, p := range []*float64{&u.MemoryRequest, &u.MemoryLimit} {
			*p = max(0, r.Float64()*(2<<30)-(1<<29))
		}
		for _, disk := range []string{"sda", "sdb"} {
			if r.IntN(3) > 0 {
				if u.Disks == nil {
					u.Disks = map[string]float64{}
				}
				u.Disks[disk] = 0.5
			}
		}
		u.NoRequests = r.IntN(5) == 0
		return u
	}
	f := slow.Facts{Node: "n1", From: noon.Add(-5 * time.Minute), To: noon, Pod: use("web"), Whole: use("")}
	for i := range r.IntN(3) {
		f.Containers = append(f.Containers, use(fmt.Sprint("c", i)))
	}
	for i := range r.IntN(4) {
		f.Neighbours = append(f.Neighbours, use(fmt.Sprint("other-", i)))
	}
	return f
}
