package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
		large := newBudget(1 << 20)
		time.AfterFunc(time.Second, func() {
			large.mu.Lock()
			large.left += 7 << 20
			large.mu.Unlock()
			large.wake()
		})
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
			large.giveBack(b)
		}
		wantFree(t, large, 8<<20)
	})
}

// wantFree checks that nothing of a budget is taken.
func wantFree(t *testing.T, a *memoryBudget, want int64) {
	t.Helper()
	if a.left != want || len(a.holders) != 0 || a.waiting != 0 {
		t.Errorf("%d bytes are free, %d buffers have some and %d reads wait; want %d, 0 and 0", a.left, len(a.holders), a.waiting, want)
	}
}

// TestHugeAnswersLeaveMemoryToOthers has more nodes than fit into the memory send an answer that is large and
// then does not end. Another node's payload of 3 MiB does not wait for them.
func TestHugeAnswersLeaveMemoryToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, sent, size, slow, total = 24 << 20, 8<<20 - 64<<10, 3 << 20, 10 * time.Second, 89 << 20
		all := newBudget(total)
		deadline, stop := context.WithTimeout(t.Context(), slow)
		defer stop()
		var ended sync.WaitGroup
		for range 12 {
			endless, w := io.Pipe()
			ctx, end := context.WithCancelCause(deadline)
			defer end(nil)
			ended.Go(func() {
				chunk := make([]byte, 64<<10)
				for n := 0; n < sent; n += len(chunk) {
					if _, err := w.Write(chunk); err != nil {
						return
					}
				}
				<-ctx.Done()
				_ = w.CloseWithError(context.Cause(ctx)) // a pipe cannot fail
			})
			ended.Go(func() {
				defer end(nil)
				defer endless.Close()
				b := &buffer{end: end}
				err := b.readBody(ctx, &http.Response{Body: endless, Header: http.Header{}}, most, all)
				if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errOutgrown) && !errors.Is(err, errStuck) {
					t.Errorf("an answer without an end: got %v, want an error of the budget or of the time", err)
				}
				all.giveBack(b)
			})
		}
		synctest.Wait()
		began, b := time.Now(), &buffer{}
		resp := &http.Response{Body: io.NopCloser(strings.NewReader(strings.Repeat("x", size))), Header: http.Header{}}
		if err := b.readBody(deadline, resp, most, all); err != nil || b.body.Len() != size || time.Since(began) != 0 {
			t.Errorf("a payload of %d bytes: got %d after %v, and %v; want all at once", size, b.body.Len(), time.Since(began), err)
		}
		all.giveBack(b)
		ended.Wait()
		wantFree(t, all, total)
	})
}

// TestStuckReadsEnd has two reads hold all memory while both need more: one ends, and the other goes on.
func TestStuckReadsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, a, b := newBudget(8<<20), &buffer{}, &buffer{}
		for _, one := range []*buffer{a, b} {
			if err := all.take(t.Context(), one, 4<<20); err != nil {
				t.Fatal(err)
			}
			all.grown(one, 4<<20)
		}
		first := make(chan error, 1)
		go func() { first <- all.take(t.Context(), a, 4<<20) }()
		synctest.Wait()
		if err := all.take(t.Context(), b, 4<<20); !errors.Is(err, errStuck) {
			t.Errorf("the second read: got %v, want %v", err, errStuck)
		}
		all.giveBack(b)
		if err := <-first; err != nil {
			t.Errorf("the first read: got %v, want the memory that the second had", err)
		}
		all.grown(a, 4<<20)
		all.giveBack(a)
		wantFree(t, all, 8<<20)
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
		p := s.newEndpoint(endpoint, Target{}, "").parser
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
