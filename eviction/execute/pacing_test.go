package execute

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/eviction"
)

func TestOnePodARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("a", func(p *corev1.Pod) { p.Spec.NodeName = "n2" }), pod("b"), pod("c"))
		list := executor(t, s, nil).Execute(t.Context(), decision(0, killOf("a", 1), killOf("b", 1), killOf("c", 1)))
		var result []Result
		for _, o := range list {
			result = append(result, o.Result)
		}
		diff(t, "did", []Result{Refused, Killed, Deferred}, result)
		diff(t, "words", "did not evict pod web/c: one pod is evicted at a time, and another eviction is in progress", list[2].Message)
	})
}

func TestOnePodAtATimeFromManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("a"), pod("b"))
		x := executor(t, s, nil)
		first := make(chan []ActionOutcome)
		go func() { first <- x.Execute(t.Context(), decision(0, killOf("a", 1))) }()
		synctest.Wait() // the first call waits for the pod
		second := only(t, x.Execute(t.Context(), decision(0, killOf("b", 1))))
		if o := only(t, <-first); o.Result != Killed || second.Result != Deferred {
			t.Errorf("got %s and %s, want Killed and Deferred", o.Result, second.Result)
		}
		diff(t, "words of the second", "did not evict pod web/b: one pod is evicted at a time, and another eviction is in progress", second.Message)
	})
}

func TestTheGapAndTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		x := executor(t, s, func(o *Options) { o.MinGap, o.MaxPerWindow, o.Window = 5*time.Second, 2, time.Minute })
		n := 0
		var log []string
		for range 200 { // one decision in each second
			name := fmt.Sprint("p", n)
			s.put(pod(name))
			at := time.Since(began)
			if o := only(t, x.Execute(t.Context(), decision(0, killOf(name, 1)))); o.Result == Killed {
				log = append(log, at.String())
				n++
			} else if len(log) == 1 && at == 2*time.Second {
				diff(t, "words in the gap", "did not evict pod web/p1 before 2000-01-01T00:00:06Z: the last eviction was less than 5s ago", o.Message)
			} else if len(log) == 2 && at == 30*time.Second {
				diff(t, "words in the window", "did not evict pod web/p2 before 2000-01-01T00:01:00Z: 2 pods were evicted in the last 1m0s, which is the limit", o.Message)
			}
			time.Sleep(time.Until(began.Add(at + time.Second)))
			if time.Since(began) > 130*time.Second {
				break
			}
		}
		// Each pod takes a second to end, and the gap begins at its end.
		diff(t, "times of evictions", []string{"0s", "6s", "1m0s", "1m6s", "2m0s", "2m6s"}, log)
	})
}

func TestWaitsForTheStatistics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("app"))
		s.linger = 3 * time.Second
		x := executor(t, s, func(o *Options) {
			o.OnNode = func(_ context.Context, uid types.UID) (bool, error) {
				if uid != "uid-app" {
					t.Errorf("asked for %s", uid)
				}
				if time.Since(began) < 6*time.Second {
					return false, errors.New("no summary")
				}
				return time.Since(began) < 9*time.Second, nil
			}
		})
		o := only(t, x.Execute(t.Context(), decision(0, killOf("app", 1))))
		if !o.Removed || o.Waited != 9*time.Second {
			t.Errorf("got %+v, want it gone after 9s", o)
		}
	})
}

func TestAPodThatStaysIsNotWaitedForForEver(t *testing.T) {
	f := func(name string, linger time.Duration, onNode func() (bool, error), words string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(pod("app"))
				s.linger = linger
				x := executor(t, s, func(o *Options) {
					o.OnNode = func(context.Context, types.UID) (bool, error) { return onNode() }
				})
				o := only(t, x.Execute(t.Context(), decision(time.Minute, killOf("app", 20))))
				if o.Result != Evicted || o.Removed || o.Waited != 50*time.Second || !strings.HasSuffix(o.Message, words) {
					t.Errorf("got %+v\nwant it evicted, there after 50s, and words that end in %q", o, words)
				}
			})
		})
	}
	f("in the API", time.Hour, nil, "; after 50s it was still in the API: stopped waiting for it")
	f("on the node", time.Second, func() (bool, error) { return true, nil }, "; after 50s it was still in the node's statistics: stopped waiting for it")
	f("unknown", time.Second, func() (bool, error) { return false, errors.New("no summary") },
		"; after 50s it was gone from the API, and the node's statistics could not be read (no summary): stopped waiting for it")
}

// TestAPodThatHasEndedIsGone checks a pod with containers that have ended, but with an object that
// a finalizer keeps.
func TestAPodThatHasEndedIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("app"))
		s.linger = time.Hour
		s.before = func(string, int) error {
			if time.Since(began) > 4500*time.Millisecond {
				p := s.pods["web/app"].DeepCopy()
				p.Status.Phase = corev1.PodFailed
				s.put(p)
			}
			return nil
		}
		o := only(t, executor(t, s, nil).Execute(t.Context(), decision(0, killOf("app", 1))))
		if !o.Removed || o.Waited != 5*time.Second {
			t.Errorf("got %+v, want it gone after 5s", o)
		}
	})
}

func TestStoppingEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("app"))
		s.linger = time.Hour
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2500*time.Millisecond, cancel)
		o := only(t, executor(t, s, nil).Execute(ctx, decision(0, killOf("app", 1))))
		diff(t, "words", "deleted pod web/app with a grace period of 1 s, for memory.available; after 2.5s it was still in the API: stopped waiting for it", o.Message)
	})
}

// TestAnAnswerThatIsLostCounts checks that a request without an answer counts as an eviction,
// because it may have succeeded: no other pod is evicted.
func TestAnAnswerThatIsLostCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("a"), pod("b"))
		s.before = func(verb string, n int) error {
			if verb == "delete" && n == 1 {
				return context.DeadlineExceeded
			}
			return nil
		}
		x := executor(t, s, nil)
		list := x.Execute(t.Context(), decision(0, killOf("a", 1), killOf("b", 1)))
		next := only(t, x.Execute(t.Context(), decision(0, killOf("b", 1))))
		diff(t, "did", []Result{Failed, Deferred, Deferred}, []Result{list[0].Result, list[1].Result, next.Result})
	})
}

// TestAReadThatFailsDoesNotCount checks that a failed read has sent no eviction: the next pod may
// be evicted.
func TestAReadThatFailsDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("a"), pod("b"))
		s.before = func(verb string, n int) error {
			if verb == "get" && n == 1 {
				return errors.New("connection refused")
			}
			return nil
		}
		list := executor(t, s, nil).Execute(t.Context(), decision(0, killOf("a", 1), killOf("b", 1)))
		diff(t, "did", []Result{Failed, Killed}, []Result{list[0].Result, list[1].Result})
		if want := list[0].At.Add(time.Second); !list[0].NotBefore.Equal(want) {
			t.Errorf("got it tried again at %v, want %v", list[0].NotBefore, want)
		}
	})
}

// TestAnAwayServerIsAskedAgainSoon checks that the pod is not skipped while the API server does not
// answer, so the request is soon repeated.
func TestAnAwayServerIsAskedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := func(answer error, want time.Duration) {
			t.Helper()
			s := newServer(pod("app"))
			s.before = func(string, int) error { return answer }
			x := executor(t, s, nil)
			var o ActionOutcome
			for range 12 {
				o = only(t, x.Execute(t.Context(), decision(0, killOf("app", 1))))
				time.Sleep(time.Until(o.NotBefore))
			}
			diff(t, answer.Error(), want, o.NotBefore.Sub(o.At))
		}
		f(errors.New("connection refused"), 30*time.Second)
		f(apierrors.NewForbidden(corev1.Resource("pods"), "app", errors.New("by policy")), 5*time.Minute)
	})
}

func TestBackoffIsBoundedAndForgets(t *testing.T) {
	b := retryBackoff{}
	key := attempt{uid: "u"}
	now := began
	var got []time.Duration
	for range 100 {
		until := b.failed(key, now, 10*time.Second, 5*time.Minute, 0, ActionOutcome{})
		got = append(got, until.Sub(now))
		now = until
	}
	diff(t, "waits", []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 300 * time.Second}, got[:6])
	diff(t, "the last wait", 300*time.Second, got[99])
	b.next(attempt{uid: "other"}, now.Add(5*time.Minute+1))
	if len(b) > 0 {
		t.Errorf("got %d remembered long after, want none", len(b))
	}
}

type reclaimer map[eviction.Collection]error

func (r reclaimer) Reclaim(_ context.Context, c eviction.Collection) (Freed, error) {
	return Freed{Items: 2, Bytes: 300}, r[c]
}

func TestReclaim(t *testing.T) {
	d := decision(0)
	d.Reclaim = []eviction.Collection{eviction.UnusedContainers, eviction.UnusedImages}
	f := func(name string, r Reclaimer, want ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			x := executor(t, newServer(), func(o *Options) { o.Reclaimer = r })
			var words []string
			for _, o := range x.Reclaim(t.Context(), d) {
				words = append(words, string(o.Result)+": "+o.Message)
			}
			diff(t, "words", want, words)
		})
	}
	f("nobody", nil,
		"NoReclaimer: did not remove every ended container for memory.available: --eviction-reclaim is not set",
		"NoReclaimer: did not remove every unused image for memory.available: --eviction-reclaim is not set")
	f("one fails", reclaimer{eviction.UnusedContainers: errors.New("socket closed")},
		"Failed: removed 2 unused containers (300 bytes) for memory.available, not all: remove unused containers: socket closed",
		"Collected: removed 2 unused images (300 bytes) for memory.available")
}
