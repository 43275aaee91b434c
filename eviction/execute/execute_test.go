package execute

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/eviction"
)

// began is the start of the clock in a test bubble.
var began = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(ActionOutcome{}), cmpopts.IgnoreFields(ActionOutcome{}, "Err")); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

const condition = `{"metadata":{"resourceVersion":"7","uid":"uid-app"},"status":{"conditions":[{"type":"DisruptionTarget","observedGeneration":3,"status":"True","lastProbeTime":null,"lastTransitionTime":"2000-01-01T00:00:00Z","reason":"TerminationByWeir","message":"The node was low on resource: memory. "}]}}`

func TestAHardThresholdMarksThePodAndDeletesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("app"))
		x := executor(t, s, nil)
		o := only(t, x.Execute(t.Context(), decision(0, killOf("app", -5))))
		diff(t, "requests", []string{
			"get web/app",
			"patch web/app/status application/strategic-merge-patch+json " + condition,
			"delete web/app grace=1 uid=uid-app version=8",
			"get web/app",
		}, s.log)
		diff(t, "outcome", ActionOutcome{
			At: began, Result: Killed, Mode: Kill, Hard: true, Signal: "memory.available", GraceSeconds: 1,
			Pod: eviction.PodIdentity{Namespace: "web", Name: "app", UID: "uid-app"}, Removed: true, Waited: time.Second,
			Message: "deleted pod web/app with a grace period of 1 s, for memory.available; it was gone after 1s",
		}, o)
	})
}

func TestTheConditionLeavesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("app"))
		var marked []corev1.PodCondition
		s.before = func(verb string, _ int) error {
			if verb == "delete" {
				marked = s.pods["web/app"].Status.Conditions
			}
			return nil
		}
		executor(t, s, nil).Execute(t.Context(), decision(0, killOf("app", 1)))
		var types []corev1.PodConditionType
		for _, c := range marked {
			types = append(types, c.Type)
		}
		diff(t, "conditions ahead of the deletion", []corev1.PodConditionType{corev1.PodReady, corev1.DisruptionTarget}, sorted(types))
	})
}

func sorted(list []corev1.PodConditionType) []corev1.PodConditionType {
	if len(list) == 2 && list[0] == corev1.DisruptionTarget {
		list[0], list[1] = list[1], list[0]
	}
	return list
}

func TestALimitOfLocalStorageSetsNoCondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("app"))
		k := killOf("app", 1)
		k.Signal, k.Hard, k.Condition = eviction.EmptyDirLimit, true, nil
		o := only(t, executor(t, s, nil).Execute(t.Context(), &eviction.Decision{Acting: -1, Kills: []eviction.Kill{k}}))
		diff(t, "writes", []string{"delete web/app grace=1 uid=uid-app version=7"}, s.wrote())
		if o.Result != Killed || !o.Hard {
			t.Errorf("got %+v, want it killed as hard", o)
		}
	})
}

func TestASoftThresholdAsksTheEvictionAPI(t *testing.T) {
	for _, mode := range []Mode{Evict, Kill} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(pod("app"))
				x := executor(t, s, func(o *Options) { o.Mode = mode })
				o := only(t, x.Execute(t.Context(), decision(time.Minute, killOf("app", 5))))
				diff(t, "writes", []string{"eviction web/app grace=5 uid=uid-app"}, s.wrote())
				diff(t, "words", "evicted pod web/app with a grace period of 5 s, for memory.available; it was gone after 5s", o.Message)
			})
		})
	}
}

func TestModeEvictNeverDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("app"))
		x := executor(t, s, func(o *Options) { o.Mode = Evict })
		o := only(t, x.Execute(t.Context(), decision(0, killOf("app", 1))))
		diff(t, "writes", []string{"eviction web/app grace=1 uid=uid-app"}, s.wrote())
		if o.Result != Evicted || !o.Hard {
			t.Errorf("got %+v, want it evicted, and hard", o)
		}
	})
}

func TestObserveAsksNothing(t *testing.T) {
	s := newServer(pod("app"))
	x := executor(t, s, func(o *Options) { o.Mode = Observe })
	d := decision(0, killOf("app", 1), killOf("weir", 1))
	d.Reclaim = []eviction.Collection{eviction.UnusedImages}
	reclaimed := only(t, x.Reclaim(t.Context(), d))
	list := x.Execute(t.Context(), d)
	diff(t, "requests", []string(nil), s.log)
	diff(t, "words", []string{
		"would remove every unused image for memory.available; the mode is observe",
		"would evict pod web/app with a grace period of 1 s, for memory.available; the mode is observe",
		"did not evict pod web/weir: it is the agent's own pod",
	}, []string{reclaimed.Message, list[0].Message, list[1].Message})
}

// TestPodIsReadAgain checks that pods that the decision would evict are refused because of their
// current state.
func TestPodIsReadAgain(t *testing.T) {
	critical := int32(2_000_000_000)
	annotate := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} }
	}
	f := func(name string, change func(*corev1.Pod), result Result, words string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			for _, grace := range []time.Duration{0, time.Minute} {
				s := newServer(pod("app", change))
				o := only(t, executor(t, s, nil).Execute(t.Context(), decision(grace, killOf("app", 1))))
				diff(t, "requests", []string{"get web/app"}, s.log)
				if o.Result != result || o.Message != "did not evict pod web/app: "+words {
					t.Errorf("got %s: %s; want %s: ...%s", o.Result, o.Message, result, words)
				}
			}
		})
	}
	f("static", annotate("kubernetes.io/config.source", "file"), Refused, "it is a static pod, which no controller would replace")
	f("mirror", annotate(corev1.MirrorPodAnnotationKey, "x"), Refused, "it is the mirror of a static pod, which no controller would replace")
	f("critical", func(p *corev1.Pod) { p.Spec.Priority = &critical }, Refused, "its priority is that of system-cluster-critical, or higher")
	f("elsewhere", func(p *corev1.Pod) { p.Spec.NodeName = "n2" }, Refused, `it is on node "n2", not on "n1"`)
	f("replaced", func(p *corev1.Pod) { p.UID = "uid-new" }, Gone, "it is gone, and another (UID uid-new) has its name")
	f("replaced by the agent", func(p *corev1.Pod) { p.UID = "uid-weir" }, Gone, "it is gone, and another (UID uid-weir) has its name")
	f("ended", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, Gone, "it has ended (Failed)")
}

func TestAPodThatIsGone(t *testing.T) {
	s := newServer()
	o := only(t, executor(t, s, nil).Execute(t.Context(), decision(0, killOf("app", 1))))
	if o.Result != Gone || o.Message != "did not evict pod web/app: it is gone" || o.Err != nil {
		t.Errorf("got %+v, want Gone", o)
	}
}

func TestAKillWithoutUID(t *testing.T) {
	s := newServer(pod("app"))
	k := killOf("app", 1)
	k.Pod.UID = ""
	o := only(t, executor(t, s, nil).Execute(t.Context(), decision(0, k)))
	if o.Result != Refused || len(s.log) > 0 {
		t.Errorf("got %+v after %v, want it refused without a request", o, s.log)
	}
}

func TestAPodThatEndsAlready(t *testing.T) {
	f := func(name string, grace time.Duration, had int64, result Result, words string, writes ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(pod("app", func(p *corev1.Pod) {
					p.DeletionTimestamp = &metav1.Time{Time: began.Add(time.Hour)}
					p.DeletionGracePeriodSeconds = &had
				}))
				o := only(t, executor(t, s, nil).Execute(t.Context(), decision(grace, killOf("app", 2))))
				if o.Result != result || o.Message != words {
					t.Errorf("got %s: %s\nwant %s: %s", o.Result, o.Message, result, words)
				}
				var deletions []string
				for _, l := range s.wrote() {
					if !strings.HasPrefix(l, "patch") {
						deletions = append(deletions, l)
					}
				}
				diff(t, "deletions", writes, deletions)
			})
		})
	}
	const refusal = "did not evict pod web/app: it is already terminating, until 2000-01-01T01:00:00Z; after 30s it was still in the API: stopped waiting for it"
	f("soft", time.Minute, 3600, Terminating, refusal)
	f("soon enough", 0, 2, Terminating, refusal)
	f("hard, and it takes too long", 0, 3600, Killed,
		"deleted pod web/app with a grace period of 2 s, for memory.available; it was already terminating, with a grace period of 3600 s; it was gone after 2s",
		"delete web/app grace=2 uid=uid-app version=8")
}

// TestConflictsAreTriedAgain checks conflicts with the kubelet, which often writes the status of a
// pod with problems.
func TestConflictsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("app"))
		s.before = func(verb string, n int) error {
			if verb == "patch" && n == 1 || verb == "delete" && n == 1 {
				s.put(s.pods["web/app"]) // this makes a new version
			}
			return nil
		}
		o := only(t, executor(t, s, nil).Execute(t.Context(), decision(0, killOf("app", 1))))
		diff(t, "verbs", []string{
			"get", "patch", // another client wrote the pod in between
			"get", "patch", "delete", // another client wrote it again
			"get", "delete", // the condition is already there
			"get",
		}, verbs(s.log))
		if o.Result != Killed {
			t.Errorf("got %+v, want it killed", o)
		}
	})
}

func verbs(log []string) (list []string) {
	for _, l := range log {
		list = append(list, strings.Fields(l)[0])
	}
	return list
}

func TestConflictsWithoutEndFail(t *testing.T) {
	s := newServer(pod("app"))
	s.before = func(verb string, _ int) error {
		if verb == "delete" {
			return conflict("app")
		}
		return nil
	}
	o := only(t, executor(t, s, nil).Execute(t.Context(), decision(0, killOf("app", 1))))
	if o.Result != Failed || !apierrors.IsConflict(o.Err) || len(s.log) != 2*maxAttempts+1 {
		t.Errorf("got %+v after %d requests, want it failed after %d", o, len(s.log), 2*maxAttempts+1)
	}
}

// TestAConflictOfTheUIDSparesTheOther checks a pod that was replaced between the read and the
// deletion: the new pod is not deleted.
func TestAConflictOfTheUIDSparesTheOther(t *testing.T) {
	for _, grace := range []time.Duration{0, time.Minute} {
		s := newServer(pod("app"))
		s.before = func(verb string, n int) error {
			if verb != "get" && n == 1 {
				s.put(pod("app", func(p *corev1.Pod) { p.UID = "uid-new" }))
			}
			return nil
		}
		o := only(t, executor(t, s, nil).Execute(t.Context(), decision(grace, killOf("app", 1))))
		if o.Result != Gone || s.pods["web/app"].DeletionTimestamp != nil {
			t.Errorf("grace %v: got %+v, want Gone and the other left", grace, o)
		}
	}
}

func TestWithoutTheConditionThePodStays(t *testing.T) {
	s := newServer(pod("app"))
	s.before = func(verb string, _ int) error {
		if verb == "patch" {
			return apierrors.NewForbidden(corev1.Resource("pods/status"), "app", errors.New("no"))
		}
		return nil
	}
	o := only(t, executor(t, s, nil).Execute(t.Context(), decision(0, killOf("app", 1))))
	diff(t, "verbs", []string{"get", "patch"}, verbs(s.log))
	diff(t, "words", `could not evict pod web/app: set its condition DisruptionTarget: pods/status "app" is forbidden: no (the agent's role, or an admission policy, lacks this right)`, o.Message)
}

func refusal(message string, seconds int) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", seconds)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: message})
	return err
}

func TestABudgetBlocksAndIsAskedAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const reason = "The disruption budget front needs 2 healthy pods and has 2 currently"
		s := newServer(pod("app"))
		s.before = func(verb string, n int) error {
			if verb == "evict" && n <= 3 {
				return refusal(reason, 0)
			}
			return nil
		}
		x := executor(t, s, func(o *Options) { o.Mode = Evict })
		round := func() ActionOutcome {
			return only(t, x.Execute(t.Context(), decision(time.Minute, killOf("app", 1))))
		}
		words := "did not evict pod web/app for memory.available: PodDisruptionBudget web/front does not allow it (" + reason + ")"
		for _, wait := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
			o := round()
			diff(t, "outcome", ActionOutcome{
				At: time.Now(), Result: Blocked, Mode: Evict, Signal: "memory.available", GraceSeconds: 1, Pod: killOf("app", 1).Pod,
				Budget: "front", NotBefore: time.Now().Add(wait), Message: words,
			}, o)
			asked := len(s.log)
			time.Sleep(wait - time.Nanosecond)
			o = round()
			if o.Result != Deferred || o.Budget != "front" || len(s.log) != asked || !strings.HasSuffix(o.Message, words) {
				t.Errorf("just before its time: got %+v and %d requests, want it deferred with the budget, and none", o, len(s.log)-asked)
			}
			time.Sleep(time.Nanosecond)
		}
		if o := round(); o.Result != Evicted {
			t.Errorf("got %+v, want it evicted when the budget allows", o)
		}
	})
}

func TestABudgetInTheWayOfASoftThresholdDoesNotHoldUpAHardOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("app"))
		s.before = func(verb string, _ int) error {
			if verb == "evict" {
				return refusal("The disruption budget front does not allow evicting pods currently", 0)
			}
			return nil
		}
		x := executor(t, s, nil)
		soft := only(t, x.Execute(t.Context(), decision(time.Minute, killOf("app", 1))))
		hard := only(t, x.Execute(t.Context(), decision(0, killOf("app", 1))))
		if soft.Result != Blocked || hard.Result != Killed {
			t.Errorf("got %s, then %s; want Blocked, then Killed", soft.Result, hard.Result)
		}
	})
}

func TestBudgetNames(t *testing.T) {
	f := func(message, want string) {
		t.Helper()
		if got := budgetName(message); got != want {
			t.Errorf("budget(%q): got %q, want %q", message, got, want)
		}
	}
	f("The disruption budget front needs 2 healthy pods and has 2 currently", "front")
	f("The disruption budget a.b-c is still being processed by the server.", "a.b-c")
	f("The disruption budget front", "")
	f("Something else", "")
	f("", "")
}

// TestSeveralBudgetsBlock checks the answer of Kubernetes 1.36 if several budgets select a pod:
// status 500, without a reason.
func TestSeveralBudgetsBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("app"), pod("b"))
		s.before = func(verb string, n int) error {
			if verb == "evict" && n == 1 {
				return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500,
					Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}}
			}
			return nil
		}
		list := executor(t, s, nil).Execute(t.Context(), decision(time.Minute, killOf("app", 1), killOf("b", 1)))
		diff(t, "did", []Result{Blocked, Evicted}, []Result{list[0].Result, list[1].Result})
		diff(t, "words", "did not evict pod web/app for memory.available: several PodDisruptionBudgets select it, and the Eviction API then refuses: keep only one of them", list[0].Message)
		diff(t, "next", 10*time.Second, list[0].NotBefore.Sub(list[0].At))
	})
}

func TestAnOverloadedServerIsNoBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("app"))
		s.before = func(verb string, _ int) error {
			if verb == "evict" {
				return apierrors.NewTooManyRequests("busy", 7)
			}
			return nil
		}
		o := only(t, executor(t, s, nil).Execute(t.Context(), decision(time.Minute, killOf("app", 1))))
		if o.Result != Failed || o.Budget != "" || !o.NotBefore.Equal(time.Now().Add(7*time.Second)) {
			t.Errorf("got %+v, want it failed, to be tried in the 7s that the server asked for", o)
		}
	})
}
