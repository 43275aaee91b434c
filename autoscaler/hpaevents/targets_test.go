package hpaevents

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	core "github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
)

// flaky implements Scales with one answer that can change.
type flaky struct {
	selector string
	err      error
	asked    []time.Time
}

func (f *flaky) Get(context.Context, string, autoscalingv2.CrossVersionObjectReference) (core.Scale, *scaleclient.Handle, error) {
	f.asked = append(f.asked, time.Now())
	return core.Scale{Selector: f.selector}, nil, f.err
}

// TestLookupsBackOff checks that failed reads are repeated at growing intervals. The last known
// selector stays until an answer says that the workload is gone.
func TestLookupsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flaky{err: errors.New("connection refused")}
		c := newTargetSet(f)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.refreshSelectors(ctx, func(workloadRef, error) {})
		}()
		pass := func(d time.Duration) (known bool) {
			time.Sleep(d) // the time of the bubble
			synctest.Wait()
			return len(c.withSelector()) == 1 && c.index.Len() == 1
		}
		web := newHPAInfo(hpa("web"))
		c.setHPA(web)
		if known := pass(3 * time.Hour); known {
			t.Error("the selector is known although nobody answered")
		}
		var waits []time.Duration
		for i := range f.asked[1:] {
			waits = append(waits, f.asked[i+1].Sub(f.asked[i]))
		}
		want := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute, 30 * time.Minute, 30 * time.Minute, 30 * time.Minute}
		if !slices.Equal(waits, want) {
			t.Errorf("after failures it was read after %v, want %v", waits, want)
		}

		f.selector, f.err = "app=web", nil
		if known := pass(30 * time.Minute); !known {
			t.Error("the selector is not known after an answer")
		}
		answered := len(f.asked)
		pass(10 * time.Hour)
		if n := len(f.asked) - answered; n < 20 || n > 27 {
			t.Errorf("it was read %d times in ten hours, want every half hour less up to a quarter of it", n)
		}
		f.err = errors.New("connection refused")
		if known := pass(time.Hour); !known {
			t.Error("a failure made what was known unknown")
		}
		f.selector, f.err = "", nil
		if known := pass(time.Hour); known {
			t.Error("its pods are known although the scale has no selector any more")
		}
		c.deleteHPA(web.NamespacedName)
		asked := len(f.asked)
		pass(10 * time.Hour)
		if n := len(f.asked) - asked; n != 0 || c.count() != 0 {
			t.Errorf("without autoscalers it was read %d times", n)
		}
		cancel()
		<-ended
	})
}

// TestTargetsAreShared checks that the workload of two autoscalers is read once.
func TestTargetsAreShared(t *testing.T) {
	c := newTargetSet(&flaky{})
	defer c.queue.ShutDown()
	a, b := hpa("a"), hpa("b")
	a.Spec.ScaleTargetRef.Name, b.Spec.ScaleTargetRef.Name = "web", "web"
	c.setHPA(newHPAInfo(a))
	c.setHPA(newHPAInfo(b))
	if got := c.queue.Len(); got != 1 {
		t.Errorf("%d workloads are to be read, want one", got)
	}
	selector, _ := scaleclient.Selector("app=web")
	c.recordLookup(newHPAInfo(a).target, selector, nil)
	if got := c.index.Len(); got != 2 {
		t.Errorf("got %d autoscalers with pods, want both", got)
	}
	c.deleteHPA(newHPAInfo(a).NamespacedName)
	if got := c.index.Len(); got != 1 || c.count() != 1 {
		t.Errorf("after one is deleted: got %d with pods of %d, want one", got, c.count())
	}
	c.deleteHPA(newHPAInfo(b).NamespacedName)
	if got := len(c.mu.workloads); got != 0 {
		t.Errorf("%d workloads are left of none", got)
	}
	c.recordLookup(newHPAInfo(a).target, selector, nil) // the answer comes too late
}

func TestEmptySelectorsAreRefused(t *testing.T) {
	for _, text := range []string{"", " "} {
		if s, err := scaleclient.Selector(text); !errors.Is(err, scaleclient.ErrNoSelector) {
			t.Errorf("%q: got %v, %v; want that it would match every pod", text, s, err)
		}
	}
}
