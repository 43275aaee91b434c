package hpaevents

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/transcript"
)

// What fails is asked again ever more rarely; what was known stands as long as
// nobody says that it is gone.
func TestLookupsBackOff(t *testing.T) {
	c := newTargetSet(30 * time.Minute)
	web := newHPAInfo(hpa("web"))
	c.setHPA(web)
	now := transcript.Epoch
	selector, err := scaleclient.Selector("app=web")
	if err != nil {
		t.Fatal(err)
	}
	look := func(s labels.Selector, err error) (wait time.Duration, known bool) {
		c.recordLookup(web.target, s, err, now)
		_, due, at := c.nextDue(now)
		if due {
			t.Fatalf("it is due at once after %v", err)
		}
		return at.Sub(now), len(c.buildIndex().all) == 1
	}
	if _, due, _ := c.nextDue(now); !due {
		t.Error("a new target is not due")
	}
	away := errors.New("connection refused")
	for n, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute, 30 * time.Minute} {
		if got, known := look(nil, away); got != want || known {
			t.Errorf("failure %d: asked again after %v, known %v; want %v and not", n+1, got, known, want)
		}
	}
	if got, known := look(selector, nil); got > 30*time.Minute || got < 22*time.Minute || !known {
		t.Errorf("after an answer: asked again after %v, known %v; want half an hour less up to a quarter of it", got, known)
	}
	if got, known := look(nil, away); got != time.Minute || !known {
		t.Errorf("then nobody answers: asked again after %v, known %v; want 1m and what was known", got, known)
	}
	if _, known := look(nil, scaleclient.ErrNoSelector); known {
		t.Error("its pods are known although the scale does not tell them any more")
	}
	c.deleteHPA(web.key())
	if _, due, at := c.nextDue(now); due || !at.IsZero() || c.count() != 0 {
		t.Errorf("without autoscalers something is due: %v %v", due, at)
	}
	c.recordLookup(web.target, selector, nil, now) // the answer comes too late
}

// Two autoscalers of one workload have it asked once, and a list of all drops those
// it does not name.
func TestTargetsAreShared(t *testing.T) {
	c := newTargetSet(30 * time.Minute)
	a, b := hpa("a"), hpa("b")
	a.Spec.ScaleTargetRef.Name, b.Spec.ScaleTargetRef.Name = "web", "web"
	c.replaceHPAs([]*hpaInfo{newHPAInfo(a), newHPAInfo(b)})
	selector, _ := scaleclient.Selector("app=web")
	c.recordLookup(newHPAInfo(a).target, selector, nil, transcript.Epoch)
	if got := len(c.buildIndex().all); got != 2 {
		t.Errorf("got %d autoscalers with pods, want both", got)
	}
	c.replaceHPAs([]*hpaInfo{newHPAInfo(b)})
	if got := len(c.buildIndex().all); got != 1 || c.count() != 1 {
		t.Errorf("after a list of one: got %d with pods of %d, want one", got, c.count())
	}
	c.replaceHPAs(nil)
	if got := len(c.mu.lookups); got != 0 {
		t.Errorf("%d lookups are left of none", got)
	}
}

// However selectors are written, a table finds those that match.
func TestTableFindsWhatMatches(t *testing.T) {
	selectors := []string{
		"app=web", "app==web,tier=front", "tier in (front)", "tier in (front,back),app=web", "app!=web", "!tier",
		"tier", "tier notin (back)", "shard>3", "app=web,app=api",
	}
	table := newPodIndex()
	parsed := map[string]labels.Selector{}
	for _, text := range selectors {
		s, err := scaleclient.Selector(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		parsed[text] = s
		table.add(&hpaInfo{namespace: "shop", full: text, pods: true}, s)
	}
	for _, set := range []labels.Set{
		nil, {"app": "web"}, {"app": "api"}, {"app": "web", "tier": "front"}, {"app": "web", "tier": "back", "shard": "4"}, {"tier": "middle", "shard": "3"},
	} {
		var want []string
		for text, s := range parsed {
			if s.Matches(set) {
				want = append(want, text)
			}
		}
		slices.Sort(want)
		pod := &cluster.Pod{PodRef: metric.PodRef{Namespace: "shop", Name: "p"}, Labels: set}
		if got := table.names(pod); !slices.Equal(got, want) {
			t.Errorf("%v: got %q, want %q", set, got, want)
		}
		pod.Namespace = "bank"
		if got := table.names(pod); got != nil {
			t.Errorf("%v in another namespace: got %q", set, got)
		}
	}
}

func TestEmptySelectorsAreRefused(t *testing.T) {
	for _, text := range []string{"", " "} {
		if s, err := scaleclient.Selector(text); !errors.Is(err, scaleclient.ErrNoSelector) {
			t.Errorf("%q: got %v, %v; want that it would match every pod", text, s, err)
		}
	}
}

func TestSpreadIsEven(t *testing.T) {
	sum := 0.0
	for n := range 1000 {
		s := spread(workloadRef{namespace: "shop", apiVersion: "apps/v1", kind: "Deployment", name: fmt.Sprint("web-", n)})
		if s < 0 || s > 1 {
			t.Fatalf("got %v, want 0 to 1", s)
		}
		sum += s
	}
	if mean := sum / 1000; mean < 0.4 || mean > 0.6 {
		t.Errorf("got a mean of %v, want about a half", mean)
	}
}
