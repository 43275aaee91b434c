package kubelet

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// TestAnswersAreBoundedByThePods reads an answer of 3 MB of a node with ten pods and of one with 30.
func TestAnswersAreBoundedByThePods(t *testing.T) {
	a := newAuthority(t)
	address := a.kubelet("n1", answer(tiny+strings.Repeat("# 12345678901234\n", 3<<20/17)))
	f := func(o Options, facts *cluster.Facts, want metric.Reason) {
		t.Helper()
		s := a.scraper(o)
		s.Targets(facts)
		_, err := read(t, s, Target{Node: "n1", Address: address})
		if want == metric.Unjudged {
			if err != nil {
				t.Errorf("with %d pods: %v", len(facts.PodsOn("n1")), err)
			}
			return
		}
		wantReason(t, err, want, "larger than max-bytes")
	}
	with := func(pods int) *cluster.Facts {
		change := cluster.FactsChange{Nodes: []*cluster.Node{{Name: "n1"}}}
		for i := range pods {
			change.Pods = append(change.Pods, &cluster.Pod{PodRef: metric.PodRef{Namespace: "default", Name: metric.PodName(fmt.Sprint("p", i))}, Node: "n1"})
		}
		return (*cluster.Facts)(nil).With(change)
	}
	f(Options{}, nil, metric.Unjudged) // 250 pods are assumed
	f(Options{}, with(10), metric.NodeBadPayload)
	f(Options{}, with(30), metric.Unjudged)
	f(Options{MaxBytes: 4 << 20}, with(10), metric.Unjudged)
	s := a.scraper(Options{})
	if got, want := s.boundsOf("target", Resource), (bounds{2<<20 + 250*64<<10, 2048 + 250*64}); got != want {
		t.Errorf("the bounds of a target that no API server has are %+v, want %+v", got, want)
	}
}

// TestLargeBuffersWait reads a body that is larger than what other bodies leave of the memory for all.
func TestLargeBuffersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := semaphore.NewWeighted(8 << 20)
		if !large.TryAcquire(7 << 20) {
			t.Fatal("no memory")
		}
		time.AfterFunc(time.Second, func() { large.Release(7 << 20) })
		began := time.Now()
		for _, size := range []int{smallBytes / 4, 3 << 20} {
			b := &buffer{}
			body := strings.Repeat("x", size)
			resp := &http.Response{Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}
			if err := b.readBody(t.Context(), resp, 4<<20, large); err != nil || b.body.String() != body {
				t.Errorf("%d bytes: got %d and %v", size, b.body.Len(), err)
			}
			if waited, want := time.Since(began), time.Second; (waited >= want) != (size > smallBytes) {
				t.Errorf("%d bytes: waited %v", size, waited)
			}
			large.Release(b.large)
		}
		if !large.TryAcquire(8 << 20) {
			t.Error("memory was not given back")
		}
	})
}

// TestLongNamesAreDropped gives each parser a pod with a name that is too long beside one that is not.
func TestLongNamesAreDropped(t *testing.T) {
	long := strings.Repeat("x", 254)
	line := func(pod string) string {
		return fmt.Sprintf("container_cpu_usage_seconds_total{id=\"/kubepods/%.3s\",container=\"app\",namespace=\"default\",pod=%q} 1 1795234949671\n", pod, pod)
	}
	object := func(pod string) string {
		return fmt.Sprintf(`{"podRef":{"name":%q,"namespace":"default","uid":"u"},"containers":[{"name":"app","cpu":{"time":"2026-01-01T00:00:00Z","usageCoreNanoSeconds":1}}]}`, pod)
	}
	text := line("web") + line(long)
	for endpoint, body := range map[Endpoint]string{
		Resource: text, CAdvisor: text,
		Summary: `{"node":{"nodeName":"n1"},"pods":[` + object("web") + "," + object(long) + `]}`,
	} {
		s := newScraper(t, Options{Insecure: true})
		p := s.newEndpoint(endpoint).parser
		for range 3 { // the second time, names are known
			b := &metric.Batch{Node: "n1"}
			if err := p.Parse([]byte(body), payload.Request{Node: "n1"}, b); err != nil {
				t.Fatalf("%s: %v", endpoint, err)
			}
			found := false
			for i := range b.Samples {
				if e := &b.Samples[i].Entity; len(e.Pod) > 253 {
					t.Errorf("%s: a sample of a pod with a name of %d bytes", endpoint, len(e.Pod))
				} else if e.Pod == "web" {
					found = true
				}
			}
			if !found {
				t.Errorf("%s: no sample of the other pod", endpoint)
			}
			if len(b.Verdicts) != 1 || b.Verdicts[0].Reason != metric.OverLimit || b.Verdicts[0].Evidence.Rule != metric.RuleNames || b.Verdicts[0].Evidence.Got.Value < 1 {
				t.Errorf("%s: verdicts %+v, want one about names", endpoint, b.Verdicts)
			}
		}
	}
}
