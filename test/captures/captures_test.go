// Package captures replays the captured answers of a real kubelet through
// identity and rate, and compares every number with the kernel's own counters.
package captures

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
	"github.com/weir-metrics/weir/test/cmptest"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// The allowed difference between a served rate and the kernel's count. The
// kernel's counters were read some seconds before or after the kubelet's, and
// the load is not even.
const (
	relativeTolerance = 0.15
	absoluteTolerance = 12 // millicores
)

// mixed lists the endpoints of scenarios in which no reader can be right,
// because the node itself mixes two cgroups of one name: there is a second
// cgroup with the ID of a running container. /metrics/resource and
// /stats/summary then report sometimes the one and sometimes the other in the
// same line. Only /metrics/cadvisor has paths, which distinguish them. The
// golden page contains the numbers.
var mixed = map[string][]string{"03f-one-container-two-paths": {"resource", "summary"}}

// returns maps a scenario to a container that is the living instance again
// after another of its name was: the second one was stopped, and the API server
// reports that.
var returns = map[string]string{"03d-two-instances-one-pod": "main"}

// TestReplay compares each scenario with a golden page. For each endpoint and
// round, the page has the number of served entities, the largest error, and
// what was missing or rejected, with the reasons.
func TestReplay(t *testing.T) {
	for _, scenario := range scenarios(t) {
		t.Run(scenario, func(t *testing.T) {
			list := rounds(t, scenario)
			k := account(list)
			var page strings.Builder
			for i := range endpoints {
				mayErr := slices.Contains(mixed[scenario], endpoints[i].name)
				replay(t, &endpoints[i], list, k, &page, mayErr, returns[scenario])
			}
			golden := filepath.Join("testdata", scenario+".txt")
			if *rewrite {
				if err := os.WriteFile(golden, []byte(page.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			cmptest.Equal(t, fmt.Sprintf("go test -rewrite writes %s again", golden), string(want), page.String())
		})
	}
}

// The endpoints have different starts of one node: the summary the boot, cAdvisor the time at which its cgroup changed.
func TestTwoEndpointsOfANode(t *testing.T) {
	sink := memory.New(memory.Options{})
	pipelines := []*processors.Pipeline{processors.New(processors.Options{}), processors.New(processors.Options{})}
	for _, r := range rounds(t, "10-version-2")[:3] {
		for i, e := range endpoints[1:] {
			b := new(metric.Batch)
			e.fill(t, r, e.parser(), b)
			pipelines[i].Process(r.facts, b, b.Ended)
			if err := sink.Write(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
	}
	s, ok := sink.Snapshot().Lookup(metric.Entity{Kind: metric.Node, Node: node})
	for _, id := range []metric.ID{metric.FilesystemUsage, metric.CPUUsage} {
		if !ok || !s.Values.Has(id) {
			t.Errorf("the node has no %v", id)
		}
	}
	// The root cgroup of this capture changed 38 s after the boot.
	boot := time.Unix(1795464950, 0)
	if got := time.Unix(0, s.Instance.Start); got.Sub(boot).Abs() > 2*time.Second {
		t.Errorf("the node started at %v, want %v", got, boot)
	}
}

func replay(t *testing.T, e *endpoint, list []*round, k kernel, page *strings.Builder, mayErr bool, returns string) {
	fmt.Fprintf(page, "== %s\n", e.name)
	pipeline := processors.New(processors.Options{})
	p, secondParser := e.parser(), endpoints[1].parser()
	var b, w metric.Batch
	chosen := believed{}
	for _, r := range list {
		if r.meta.Endpoints[e.file].Start == 0 {
			fmt.Fprintf(page, "%s: not captured\n", filepath.Base(r.dir))
			continue
		}
		e.fill(t, r, p, &b)
		now := b.Ended
		if now.IsZero() || now.Unix() <= 0 {
			t.Fatalf("%s: no time for %s", r.dir, e.file)
		}
		if pipeline.NeedsCrossCheck(r.facts, &b, now) && e.name == "resource" {
			endpoints[1].fill(t, r, secondParser, &w)
			b.CrossCheck = &w
		}
		pipeline.Process(r.facts, &b, now)
		judge(t, e, r, &b, k, page, mayErr)
		chosen.follow(t, e, r, &b, returns)
		checkLosers(t, e, r, &b)
	}
}

// judge compares every served container with the kernel's count and writes the
// lines of the round.
func judge(t *testing.T, e *endpoint, r *round, b *metric.Batch, k kernel, page *strings.Builder, mayErr bool) {
	served, judged := 0, 0
	var lines []string
	have := map[metric.Entity]bool{}
	for i := range b.Samples {
		s := &b.Samples[i]
		if s.Entity.Part != "" || isPartial(s) {
			continue
		}
		if s.Rejected() {
			lines = append(lines, fmt.Sprintf("  %v turned away: %s", name(s), describeReason(b, s, metric.CPU)))
			continue
		}
		if s.Entity.Kind != metric.Container {
			continue
		}
		if !s.Servable(metric.CPU) {
			have[s.Entity] = true
			if s.Times[metric.CPU] != 0 {
				lines = append(lines, fmt.Sprintf("  %v no cpu: %s", name(s), describeReason(b, s, metric.CPU)))
			}
			continue
		}
		have[s.Entity] = true
		served++
		if s.Reasons[metric.CPU] == metric.Ambiguous {
			lines = append(lines, fmt.Sprintf("  %v is ambiguous", s.Entity))
		}
		if s.LastKnown != 0 {
			lines = append(lines, fmt.Sprintf("  %v last number stands", s.Entity))
		}
		pod := r.facts.Pod(s.Entity.PodRef())
		c := pod.Container(s.Entity.Name)
		if pod == nil {
			lines = append(lines, fmt.Sprintf("  %v served; the API server does not know the pod (yet, or any more)", s.Entity))
			continue
		}
		if c == nil || c.State != cluster.StateRunning {
			lines = append(lines, fmt.Sprintf("  %v served though it does not run", s.Entity))
			continue
		}
		got, _ := s.Values.Get(metric.CPUUsageRate)
		got /= 1e6
		window := s.Rates[metric.CPU]
		want, ok := k.used(containerKey{podcgroup.QoS(pod.QoS), pod.ReportedUID(), c.ID}, window.End-int64(window.Length), window.End)
		if !ok {
			continue
		}
		judged++
		diff := math.Abs(got - want)
		if diff > absoluteTolerance && diff > relativeTolerance*want {
			lines = append(lines, fmt.Sprintf("  WRONG %v: %.0fm, the kernel counted %.0fm", s.Entity, got, want))
		}
	}
	for _, pod := range r.facts.PodsOn(node) {
		for i := range pod.Containers {
			c := &pod.Containers[i]
			entity := metric.Entity{Kind: metric.Container, Node: node, Namespace: pod.Namespace, Pod: pod.Name, Name: c.Name}
			if c.Required() && pod.Phase == cluster.Running && !have[entity] {
				lines = append(lines, fmt.Sprintf("  %v missing: %s", entity, missing(b, entity)))
			}
		}
	}
	slices.Sort(lines)
	fmt.Fprintf(page, "%s: %d pods served; %d containers served, %d judged%s\n", filepath.Base(r.dir), wholePods(t, r, b), served, judged, failure(b))
	for _, l := range lines {
		fmt.Fprintln(page, l)
		if !mayErr && strings.Contains(l, "WRONG") || strings.Contains(l, "though it does not run") {
			t.Errorf("%s, round %s:%s", e.name, filepath.Base(r.dir), l)
		}
	}
}

// wholePods counts the pods that are served. It checks that each served pod is
// the sum of its containers and includes all required ones.
func wholePods(t *testing.T, r *round, b *metric.Batch) (served int) {
	t.Helper()
	for i := range b.Samples {
		p := &b.Samples[i]
		if p.Entity.Kind != metric.Pod || p.Entity.Part != "" || !p.Servable(metric.CPU) {
			continue
		}
		served++
		sum, have := 0.0, map[string]bool{}
		for j := range b.Samples {
			c := &b.Samples[j]
			if c.Entity.Kind == metric.Container && c.Entity.Part == "" && c.Entity.PodRef() == p.Entity.PodRef() && c.Servable(metric.CPU) {
				rate, _ := c.Values.Get(metric.CPUUsageRate)
				sum += rate
				have[c.Entity.Name] = true
			}
		}
		if got, _ := p.Values.Get(metric.CPUUsageRate); math.Abs(got-sum) > 1 {
			t.Errorf("%s: %v is served with %.0f nanocores, its containers use %.0f", r.dir, p.Entity, got, sum)
		}
		facts := r.facts.Pod(p.Entity.PodRef())
		if facts == nil {
			continue // the pod is not in the facts, which is allowed for one resolution
		}
		for k := range facts.Containers {
			if c := &facts.Containers[k]; c.Required() && !have[c.Name] {
				t.Errorf("%s: %v is served without %s", r.dir, p.Entity, c.Name)
			}
		}
	}
	return served
}

func name(s *metric.Sample) string {
	n := s.Entity.String()
	if s.Instance.UID != "" {
		n += " uid " + string(s.Instance.UID[:4])
	}
	if s.Instance.ID != "" {
		n += " id " + string(s.Instance.ID[:4])
	}
	return n
}

func describeReason(b *metric.Batch, s *metric.Sample, g metric.Group) string {
	for i := range b.Verdicts {
		v := &b.Verdicts[i]
		if v.Entity == s.Entity && v.Group == g && v.Reason == s.Reasons[g] && v.Instance.Line == s.Instance.Line && v.Evidence.Rule != "" {
			return fmt.Sprintf("%v, rule %s", v.Reason, v.Evidence.Rule)
		}
	}
	return s.Reasons[g].String()
}

func missing(b *metric.Batch, e metric.Entity) string {
	for i := range b.Verdicts {
		if v := &b.Verdicts[i]; v.Entity == e && v.Group == metric.CPU {
			return v.Reason.String()
		}
	}
	return "not reported"
}

func failure(b *metric.Batch) string {
	if b.Err == nil {
		return ""
	}
	return ", " + b.Err.Error()
}
