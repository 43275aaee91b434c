package resize_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/resize"
)

// scaled is a workload of pods with containers of the same requests, and what one of its HPAs scales by.
type scaled struct {
	template    []resize.ContainerResources
	injected    []resize.ContainerResources // of the pods, not of the template
	use         func(m resize.Member, container string, r resize.Resource) []resize.UsagePoint
	targets     []resize.UtilizationTarget
	limitRanges []corev1.LimitRange
	podLevel    bool
	noLoads     bool
}

// requesting returns a container that requests millicores, and as many MiB.
func requesting(name string, request int64) resize.ContainerResources {
	return resize.ContainerResources{Name: name, Requests: resize.Amounts{CPU: resize.Of(request), Memory: resize.Of(request << 20)}}
}

// target returns the target of an HPA for the pod or, if it is named, a container.
func target(r resize.Resource, container string, percent int32) resize.UtilizationTarget {
	to := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}
	m := autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceName(r), Target: to}}
	if container != "" {
		m = autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType,
			ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: corev1.ResourceName(r), Container: container, Target: to}}
	}
	return resize.UtilizationTarget{Autoscaler: "web", Resource: r, Container: container, Percent: percent,
		Spec: &autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 10, Metrics: []autoscalingv2.MetricSpec{m}}}
}

// tolerating returns the target of an HPA with a tolerance of its own.
func tolerating(t resize.UtilizationTarget, tolerance string) resize.UtilizationTarget {
	q := resource.MustParse(tolerance)
	t.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{Tolerance: &q}}
	return t
}

// recommend returns the recommendation for a resource, with pairs.
func (s *scaled) recommend(r resize.Resource) *resize.PodRecommendation {
	o := resize.Defaults()
	o.Resources = []resize.Resource{r}
	w := workload("a", "b", "c gone")
	w.Template = &resize.PodResources{Containers: append(append([]resize.ContainerResources{}, s.template...), s.injected...)}
	rec := resize.RecommendWorkload(w, s.use, o)
	if !s.noLoads {
		rec.Loads = w.Loads(s.use, &o)
	}
	of := &resize.Workload{Namespace: w.Namespace, Owner: w.Owner, Template: &resize.PodResources{Containers: s.template}, Autoscalers: s.targets, LimitRanges: s.limitRanges}
	if s.podLevel {
		of.Template.PodLevel.Set, of.Template.PodLevel.Requests.Memory = true, resize.Of(1<<30)
	}
	return of.Reconsider(rec, o)
}

// describePair describes a pair: "app 400→115 60%→209% 240m→240350u +0.1458% 60 times", or why there is none.
func describePair(p *resize.Pair) string {
	if p.Refused != "" {
		return p.Refused
	}
	var words []string
	for i := range p.Requests {
		c := &p.Requests[i]
		words = append(words, fmt.Sprintf("%s %s→%s", c.Container, &c.Request, &c.Proposed))
	}
	return fmt.Sprintf("%s %d%%→%d%% %s→%s %+.2g%% %d times", strings.Join(words, " "), p.Target, p.NewTarget, p.Product, p.NewProduct, p.DifferencePercent, p.Compared)
}

func TestPairs(t *testing.T) {
	// flat has the containers use the same all the time: millicores, and as many MiB.
	flat := func(used map[string]float64) func(resize.Member, string, resize.Resource) []resize.UsagePoint {
		return func(_ resize.Member, container string, r resize.Resource) []resize.UsagePoint {
			value, ok := used[container]
			switch {
			case !ok:
				return nil
			case r == resize.Memory:
				return steady(noon, 60, value*(1<<20))
			}
			return steady(noon, 60, value/1000)
		}
	}
	app, log := requesting("app", 400), requesting("log", 100)
	guaranteed := app
	guaranteed.Limits = guaranteed.Requests
	unset := requesting("log", 0)
	unset.Requests = resize.Amounts{}
	sidecar, start := requesting("log", 100), requesting("start", 900)
	sidecar.Role, start.Role = cluster.Sidecar, cluster.Init
	most := corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")}}}}}
	most.Name = "most"
	one := []resize.ContainerResources{app}
	for _, c := range []struct {
		name string
		r    resize.Resource
		s    scaled
		want []string
	}{
		{"a step above what is needed is exact", resize.CPU, scaled{template: one, use: flat(map[string]float64{"app": 100}), targets: []resize.UtilizationTarget{target(resize.CPU, "", 60)}},
			[]string{"app 400m→120m 60%→200% 240m→240m +0% 60 times"}},
		{"the request of an injected container is in the sum", resize.CPU, scaled{template: one, injected: []resize.ContainerResources{log}, use: flat(map[string]float64{"app": 100, "log": 98}), targets: []resize.UtilizationTarget{target(resize.CPU, "", 60)}},
			[]string{"app 400m→119m 60%→137% 300m→300030u +0.01% 60 times"}},
		{"but not in that of one container", resize.CPU, scaled{template: one, injected: []resize.ContainerResources{log}, use: flat(map[string]float64{"app": 100, "log": 98}), targets: []resize.UtilizationTarget{target(resize.CPU, "app", 60)}},
			[]string{"app 400m→120m 60%→200% 240m→240m +0% 60 times"}},
		{"both containers shrink", resize.CPU, scaled{template: []resize.ContainerResources{start, sidecar, app}, use: flat(map[string]float64{"app": 100, "log": 20}), targets: []resize.UtilizationTarget{target(resize.CPU, "", 60)}},
			[]string{"log 100m→23m app 400m→116m 60%→216% 300m→300240u +0.08% 60 times"}},
		{"memory", resize.Memory, scaled{template: one, use: flat(map[string]float64{"app": 100}), targets: []resize.UtilizationTarget{target(resize.Memory, "", 60)}},
			[]string{"app 400Mi→120Mi 60%→200% 240Mi→240Mi +0% 60 times"}},
		{"two targets of two containers", resize.CPU, scaled{template: []resize.ContainerResources{app, log}, use: flat(map[string]float64{"app": 100, "log": 20}),
			targets: []resize.UtilizationTarget{target(resize.CPU, "app", 60), target(resize.CPU, "log", 50)}},
			[]string{"app 400m→120m 60%→200% 240m→240m +0% 60 times", "log 100m→24m 50%→208% 50m→49920u -0.16% 60 times"}},
		{"two targets of one", resize.CPU, scaled{template: one, use: flat(map[string]float64{"app": 100}), targets: []resize.UtilizationTarget{target(resize.CPU, "app", 60), target(resize.CPU, "", 60)}},
			[]string{"another target of HPA web is a share of the same request", "another target of HPA web is a share of the same request"}},
		{"what fits has no pair", resize.CPU, scaled{template: one, use: flat(map[string]float64{"app": 350}), targets: []resize.UtilizationTarget{target(resize.CPU, "", 60)}}, nil},
		{"what an HPA does not scale by, neither", resize.Memory, scaled{template: one, use: flat(map[string]float64{"app": 100}), targets: []resize.UtilizationTarget{target(resize.CPU, "", 60)}}, nil},
		{"no tolerance", resize.CPU, scaled{template: []resize.ContainerResources{requesting("app", 499)}, use: flat(map[string]float64{"app": 100}), targets: []resize.UtilizationTarget{tolerating(target(resize.CPU, "", 61), "0")}},
			[]string{"a target is a whole number, and with 258% request × target would differ by 0.016%, which is more than the HPA's tolerance of 0%"}},
		{"a small target", resize.CPU, scaled{template: []resize.ContainerResources{requesting("app", 150)}, use: flat(map[string]float64{"app": 90}), targets: []resize.UtilizationTarget{target(resize.CPU, "", 1)}},
			[]string{"a target is a whole number, and with 1% request × target would differ by 27%, which is more than the HPA's tolerance of 10%"}},
		{"not measured", resize.CPU, scaled{template: []resize.ContainerResources{app, log}, use: flat(map[string]float64{"app": 100}), targets: []resize.UtilizationTarget{target(resize.CPU, "", 60)}},
			[]string{"container log was not measured"}},
		{"no request", resize.CPU, scaled{template: []resize.ContainerResources{app, unset}, use: flat(map[string]float64{"app": 100, "log": 20}), targets: []resize.UtilizationTarget{target(resize.CPU, "", 60)}},
			[]string{"container log requests no cpu"}},
		{"no loads", resize.CPU, scaled{template: one, noLoads: true, use: flat(map[string]float64{"app": 100}), targets: []resize.UtilizationTarget{target(resize.CPU, "", 60)}},
			[]string{"the readings of each time are not known: name the workload, and ask a weir of the same version"}},
		{"a Guaranteed pod", resize.CPU, scaled{template: []resize.ContainerResources{guaranteed}, use: flat(map[string]float64{"app": 100}), targets: []resize.UtilizationTarget{target(resize.CPU, "", 60)}},
			[]string{"its pods are Guaranteed, and their limits would have to change, too"}},
		{"requests of the pod", resize.CPU, scaled{template: one, podLevel: true, use: flat(map[string]float64{"app": 100}), targets: []resize.UtilizationTarget{target(resize.CPU, "", 60)}},
			[]string{"the pod has requests of its own (spec.resources)"}},
		{"a LimitRange", resize.CPU, scaled{template: one, limitRanges: []corev1.LimitRange{most}, use: flat(map[string]float64{"app": 100}), targets: []resize.UtilizationTarget{target(resize.CPU, "", 60)}},
			[]string{"LimitRange most allows at most 50m"}},
	} {
		rec := c.s.recommend(c.r)
		var got []string
		for i := range rec.Pairs {
			got = append(got, describePair(&rec.Pairs[i]))
		}
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		if len(rec.Changes()) > 0 && c.name != "what an HPA does not scale by, neither" {
			t.Errorf("%s: %s: a pair changes no request", c.name, advice(rec))
		}
	}
}

// varied has all three pods use the same, and something else at some of sixty times.
func varied(used float64, other map[int]float64) func(resize.Member, string, resize.Resource) []resize.UsagePoint {
	return func(resize.Member, string, resize.Resource) []resize.UsagePoint {
		points := steady(noon, 60, used/1000)
		for i, value := range other {
			points[i].Value = value / 1000
		}
		return points
	}
}

// The HPA must have wanted the same at each time: a utilization is a whole number, too, so it is rounded
// in another way with another request. What is tried are all requests of up to 5% more.
func TestPairsAtEachTime(t *testing.T) {
	gap := func(m resize.Member, _ string, _ resize.Resource) []resize.UsagePoint {
		points := steady(noon, 60, 0.1)
		if m.Pod == "b" {
			points = append(points[:20:20], points[30:]...)
		}
		return points
	}
	for name, c := range map[string]struct {
		use  func(resize.Member, string, resize.Resource) []resize.UsagePoint
		want string
	}{
		"at no time":            {varied(300, nil), "app 400m→353m 60%→68% 240m→240040u +0.017% 60 times"},
		"at one, with the best": {varied(300, map[int]float64{30: 323}), "app 400m→348m 60%→69% 240m→240120u +0.05% 60 times"},
		"at one, with all":      {varied(300, map[int]float64{30: 267, 31: 268}), "at 2026-01-02 12:07:30 UTC 3 pods used 801m: that was 66% of the request, and with a target of 60% the HPA wanted 3 pods; it would have been 75%, and with a target of 68% it would have wanted 4 pods"},
		// With 100% of its request, or the target if that is more, the HPA assumes less for a pod without
		// a reading.
		"a pod without a reading": {gap, "at 2026-01-02 12:05:45 UTC 2 pods used 200m, and 1 more had no reading: that was 25% of the request, and with a target of 60% the HPA wanted 3 pods; it would have been 83%, and with a target of 200% it would have wanted 2 pods"},
	} {
		s := scaled{template: []resize.ContainerResources{requesting("app", 400)}, use: c.use, targets: []resize.UtilizationTarget{target(resize.CPU, "", 60)}}
		if got := describePair(&s.recommend(resize.CPU).Pairs[0]); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// wantedBy is how many pods an HPA wants of n that all have a reading, computed in another way than by
// package autoscaler.
func wantedBy(n, milli, request int64, target int64) int64 {
	percent := milli * 100 / (n * request)
	if 10*percent >= 9*target && 10*percent <= 11*target {
		return n
	}
	return (percent*n + target - 1) / target
}

// On random loads a pair is accepted only if the HPA would have wanted the same at each time, and a refusal
// names a time at which it would not.
func TestPairsOfRandomLoads(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	const loads = 300
	for range loads {
		request, percent := 100+random.Int64N(900), int32(30+random.IntN(60))
		level, noise := float64(request)*(0.1+0.6*random.Float64()), random.Float64()
		var used [3][60]int64
		for i := range used {
			for j := range used[i] {
				used[i][j] = int64(level * (1 + noise*(random.Float64()-0.5)))
			}
		}
		s := scaled{template: []resize.ContainerResources{requesting("app", request)}, targets: []resize.UtilizationTarget{target(resize.CPU, "", percent)},
			use: func(m resize.Member, _ string, _ resize.Resource) []resize.UsagePoint {
				points := steady(noon, 60, 0)
				for j := range points {
					points[j].Value = float64(used[strings.Index("abc", m.Pod)][j]) / 1000
				}
				return points
			}}
		rec := s.recommend(resize.CPU)
		if len(rec.Pairs) == 0 {
			continue
		}
		p := &rec.Pairs[0]
		proposed, differs := p.Requests[0].Proposed.MilliValue(), ""
		for j := range 60 {
			sum := used[0][j] + used[1][j] + used[2][j]
			if a, b := wantedBy(3, sum, request, int64(percent)), wantedBy(3, sum, proposed, int64(p.NewTarget)); a != b && differs == "" {
				differs = fmt.Sprintf("at %s UTC 3 pods used %dm: ", noon.Add(time.Duration(j)*15*time.Second).Format(time.DateTime), sum)
			}
		}
		if p.Refused == "" {
			accepted++
		}
		if (p.Refused == "") != (differs == "") || !strings.HasPrefix(p.Refused, differs) {
			t.Fatalf("request %dm, target %d%%: %s; want %q", request, percent, describePair(p), differs)
		}
		if exact := float64(proposed)*float64(p.NewTarget)/float64(request)/float64(percent) - 1; math.Abs(100*exact-p.DifferencePercent) > 1e-4 {
			t.Fatalf("got a difference of %v%%, want %v%%", p.DifferencePercent, 100*exact)
		}
	}
	if t.Logf("%d of %d accepted", accepted, loads); accepted < loads/10 || accepted > loads*9/10 {
		t.Errorf("%d of %d accepted: the loads test only one of the two", accepted, loads)
	}
}

// A load has each pod from its first reading until one interval after its last, at times that are
// multiples of 15 seconds; between its readings the newest counts until it is too old.
func TestLoads(t *testing.T) {
	w := workload("a", "b", "c gone")
	w.Template.Containers = []resize.ContainerResources{requesting("app", 100), requesting("log", 100)}
	use := func(m resize.Member, container string, _ resize.Resource) []resize.UsagePoint {
		switch {
		case m.Pod == "a" && container == "app":
			return steady(noon, 12, 0.010_0001)
		case m.Pod == "a": // a restart: no rate for a minute
			points := steady(noon, 12, 0.001)
			return append(points[:3:3], points[8:]...)
		case m.Pod == "b" && container == "app": // it starts later, and is read at other times
			return steady(noon.Add(time.Minute+7*time.Second), 3, 0.020)
		}
		return nil
	}
	o := resize.Defaults()
	o.Resources = []resize.Resource{resize.CPU}
	var got []string
	for _, l := range w.Loads(use, &o) {
		var words []string
		for _, r := range l.Readings {
			words = append(words, fmt.Sprintf("%s:%d+%d:%d", r.At.Format("04:05"), r.Pods, r.Missing, r.Milli))
		}
		got = append(got, string(l.Resource)+" "+l.Container+": "+strings.Join(words, " "))
	}
	want := `cpu : 00:00:1+0:12 00:15:1+0:12 00:30:1+0:12 00:45:1+0:12 01:00:1+0:12 01:15:2+0:32 01:30:1+1:20 01:45:1+1:20 02:00:1+0:12 02:15:1+0:12 02:30:1+0:12 02:45:1+0:12
cpu app: 00:00:1+0:11 00:15:1+0:11 00:30:1+0:11 00:45:1+0:11 01:00:1+0:11 01:15:2+0:31 01:30:2+0:31 01:45:2+0:31 02:00:1+0:11 02:15:1+0:11 02:30:1+0:11 02:45:1+0:11
cpu log: 00:00:1+0:1 00:15:1+0:1 00:30:1+0:1 02:00:1+0:1 02:15:1+0:1 02:30:1+0:1 02:45:1+0:1`
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("got\n%s\nwant\n%s", s, want)
	}
}
