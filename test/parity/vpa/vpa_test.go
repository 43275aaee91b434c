package vpa

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	vpav1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/features"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
	"k8s.io/klog/v2"

	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/estimate"
)

var (
	seed  = flag.Uint64("seed", 1, "of the random histories; another finds others")
	cases = flag.Uint64("cases", 6_000, "how many histories")
	first = flag.Uint64("first", 0, "number of the first history")
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // upstream writes a line for a field whose gate is off
	os.Exit(m.Run())
}

// enough is the number of histories that must meet every branch.
const enough = 1000

// branches are what random histories must meet.
var branches = []string{
	"gate on, policy has its fields", "gate off, policy has its fields", "several containers",
	"sample discarded", "OOM kill discarded", "OOM kill counted", "100 half-lives passed",
	"target at the floor", "target above the floor",
	"last bucket", "no sample of memory",
}

func TestVPARecommendsAsUpstream(t *testing.T) {
	seen := map[string]int{}
	failures := 0
	for number := *first; number < *first+*cases && failures < 3; number++ {
		c := newComparison(rand.New(rand.NewPCG(*seed, number)), seen)
		if difference := c.run(); difference != "" {
			failures++
			t.Errorf("case %d of seed %d differs. Again:\n  go test -C test/parity/vpa -seed %d -first %d -cases 1\n%s", number, *seed, *seed, number, difference)
		}
	}
	for _, branch := range branches {
		if testing.Verbose() {
			t.Logf("%8d  %s", seen[branch], branch)
		}
		if seen[branch] == 0 && *cases >= enough && failures == 0 {
			t.Errorf("%d histories never met the branch %q", *cases, branch)
		}
	}
}

const (
	namespace = "shop"
	container = "app"
)

// comparison is one history, given to both sides.
type comparison struct {
	*rand.Rand
	seen     map[string]int
	options  estimate.VPAOptions
	floor    map[resize.Resource]int64 // upstream's, which weir leaves out
	weir     *estimate.VPA
	cluster  model.ClusterState
	upstream logic.PodResourceRecommender
	now      time.Time
	pods     []string
	born     int      // the number of pods so far
	events   []string // for a failure
	measured map[resize.Resource]bool
}

func choose[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// newComparison sets upstream's global configuration and returns a comparison with the same options on
// both sides.
func newComparison(r *rand.Rand, seen map[string]int) *comparison {
	c := &comparison{Rand: r, seen: seen, measured: map[resize.Resource]bool{}}
	c.now = time.Date(2026, 11, 28, r.IntN(24), r.IntN(60), r.IntN(60), choose(r, 0, r.IntN(1e9)), time.UTC)
	halfLife := func() time.Duration {
		return choose(r, 24*time.Hour, 24*time.Hour, 12*time.Hour, 48*time.Hour, time.Hour, 10*time.Minute, time.Duration(1+r.IntN(1e6))*time.Second)
	}
	interval := choose(r, 24*time.Hour, 24*time.Hour, time.Hour, 8*time.Hour, 10*time.Minute, time.Duration(1+r.IntN(1e5))*time.Second)
	ratio, least := choose(r, 1.2, 1.2, 1, 1.5, 3), choose(r, 100<<20, 100<<20, 0, 1, 10_000_000, 1<<30)
	config := model.NewAggregationsConfig(interval, 8, halfLife(), halfLife(), ratio, float64(least))
	model.InitializeAggregationsConfig(config)
	share := func(usual float64) float64 { return choose(r, usual, usual, 0.01, 0.5, 0.99, 1, r.Float64()) }
	recommendation := logic.RecommendationConfig{
		SafetyMarginFraction: choose(r, 0.15, 0.15, 0, 1, r.Float64()),
		PodMinCPUMillicores:  choose(r, 25, 25, 0, 1, r.Float64()*100), PodMinMemoryMb: choose(r, 250, 250, 0, 10, r.Float64()*100),
		TargetCPUPercentile: share(0.9), LowerBoundCPUPercentile: share(0.5), UpperBoundCPUPercentile: share(0.95), ConfidenceIntervalCPU: choose(r, 24*time.Hour, time.Hour, 90*time.Second),
		TargetMemoryPercentile: share(0.9), LowerBoundMemoryPercentile: share(0.5), UpperBoundMemoryPercentile: share(0.95), ConfidenceIntervalMemory: choose(r, 24*time.Hour, time.Hour, 7*time.Minute),
	}
	c.upstream = logic.CreatePodResourceRecommender(recommendation)
	containers := choose(r, 1, 1, 2, 3, 7)
	if containers > 1 {
		seen["several containers"]++
	}
	ofContainer := func(amount float64) int64 { return int64(float64(int64(amount)) * (1 / float64(containers))) } // a container's, of a pod's
	c.floor = map[resize.Resource]int64{
		resize.CPU: ofContainer(recommendation.PodMinCPUMillicores * 0.001 * 1000), resize.Memory: ofContainer(recommendation.PodMinMemoryMb * 1024 * 1024),
	}
	c.options = estimate.VPAOptions{
		CPU:          estimate.VPAResource{Target: recommendation.TargetCPUPercentile, HalfLife: config.CPUHistogramDecayHalfLife},
		Memory:       estimate.VPAResource{Target: recommendation.TargetMemoryPercentile, HalfLife: config.MemoryHistogramDecayHalfLife},
		SafetyMargin: recommendation.SafetyMarginFraction, PeakInterval: interval, OOMRatio: ratio, OOMLeast: int64(least),
	}
	policy := c.policy()
	c.weir = estimate.NewVPA(c.options)
	c.cluster = model.NewClusterState(time.Hour)
	object := &vpav1.VerticalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	object.Spec.ResourcePolicy = policy
	if err := c.cluster.AddOrUpdateVpa(object, labels.Everything()); err != nil {
		panic(err)
	}
	c.addPod()
	for i := range containers - 1 { // they share the floor of the pod
		c.addContainer(c.pods[0], fmt.Sprint("sidecar-", i))
	}
	return c
}

// policy returns the resource policy of the VerticalPodAutoscaler, after setting the feature gates. If
// the gate is on, c.options get the fields of the policy.
func (c *comparison) policy() *vpav1.PodResourcePolicy {
	gate := c.IntN(2) == 0
	if err := features.MutableFeatureGate.SetFromMap(map[string]bool{
		string(features.PerVPAConfig): gate, string(features.InPlace): c.IntN(2) == 0, string(features.CPUStartupBoost): c.IntN(2) == 0,
	}); err != nil {
		panic(err)
	}
	if c.IntN(2) == 0 {
		return nil
	}
	own := vpav1.ContainerResourcePolicy{ContainerName: choose(c.Rand, container, vpav1.DefaultContainerResourcePolicy)}
	options := c.options
	if c.IntN(2) == 0 {
		own.OOMBumpUpRatio = resource.NewMilliQuantity(int64(1000+c.IntN(2000)), resource.DecimalSI)
		options.OOMRatio = float64(own.OOMBumpUpRatio.MilliValue()) / 1000
	}
	if c.IntN(2) == 0 {
		own.OOMMinBumpUp = resource.NewQuantity(int64(c.IntN(1<<30)), resource.BinarySI)
		options.OOMLeast = own.OOMMinBumpUp.Value()
	}
	if c.IntN(2) == 0 {
		seconds := int32(1 + c.IntN(1e5))
		own.MemoryAggregationIntervalSeconds = &seconds
		options.PeakInterval = time.Duration(seconds) * time.Second
	}
	if options.OOMRatio != c.options.OOMRatio || options.OOMLeast != c.options.OOMLeast || options.PeakInterval != c.options.PeakInterval {
		c.seen[fmt.Sprintf("gate %s, policy has its fields", map[bool]string{true: "on", false: "off"}[gate])]++
	}
	if gate {
		c.options = options
	}
	return &vpav1.PodResourcePolicy{ContainerPolicies: []vpav1.ContainerResourcePolicy{own}}
}

func (c *comparison) addPod() {
	c.born++
	pod := fmt.Sprint("web-", c.born)
	c.pods = append(c.pods, pod)
	c.cluster.AddOrUpdatePod(model.PodID{Namespace: namespace, PodName: pod}, labels.Set{"app": "web"}, corev1.PodRunning)
	c.addContainer(pod, container)
}

func (c *comparison) addContainer(pod, name string) {
	if err := c.cluster.AddOrUpdateContainer(containerID(pod, name), nil); err != nil {
		panic(err)
	}
}

func containerID(pod, name string) model.ContainerID {
	return model.ContainerID{PodID: model.PodID{Namespace: namespace, PodName: pod}, ContainerName: name}
}

// run lives through a history and returns the first difference.
func (c *comparison) run() string {
	for range 1 + c.IntN(150) {
		c.step()
		if c.IntN(8) == 0 {
			if difference := c.compare(); difference != "" {
				return difference
			}
		}
	}
	return c.compare()
}

// step moves the time and lets one thing happen.
func (c *comparison) step() {
	interval, halfLife := c.options.PeakInterval, choose(c.Rand, c.options.CPU.HalfLife, c.options.Memory.HalfLife)
	switch c.IntN(40) {
	case 0:
		c.now = c.now.Add(halfLife * 100)
	case 1:
		c.seen["100 half-lives passed"]++
		c.now = c.now.Add(halfLife*100 + 1)
	case 2:
		c.now = c.now.Add(-time.Duration(c.IntN(int(3 * interval))))
	default:
		c.now = c.now.Add(choose(c.Rand, 0, 1, 15*time.Second, time.Minute, time.Minute, time.Hour, interval, interval-1, interval/3, halfLife, halfLife/10))
	}
	if c.now.Year() > 2200 { // a time.Duration holds 292 years
		c.now = c.now.AddDate(-170, 0, 0)
	}
	pod := choose(c.Rand, c.pods...)
	switch kind := c.IntN(40); {
	case kind == 0 && len(c.pods) < 5:
		c.addPod()
	case kind == 1 && len(c.pods) > 1:
		c.cluster.DeletePod(model.PodID{Namespace: namespace, PodName: c.pods[1]})
		c.pods = append(c.pods[:1], c.pods[2:]...)
	case kind < 5:
		c.oomKill(pod)
	case kind < 22:
		c.sample(pod, resize.CPU)
	default:
		c.sample(pod, resize.Memory)
	}
}

func (c *comparison) oomKill(pod string) {
	at, request := c.now.Add(-choose(c.Rand, 0, 0, time.Second, c.options.PeakInterval, c.options.PeakInterval+1)), choose(c.Rand, 0, c.bytes())
	c.events = append(c.events, fmt.Sprintf("%s OOM kill of %s, request %d", at.Format(time.RFC3339Nano), pod, request))
	if err := c.cluster.RecordOOM(containerID(pod, container), at, model.ResourceAmount(request)); err != nil {
		c.seen["OOM kill discarded"]++
	} else {
		c.seen["OOM kill counted"]++
		c.measured[resize.Memory] = true
	}
	c.weir.ObserveOOMKill(estimate.OOMKill{Pod: pod, At: at, Request: request})
}

func (c *comparison) sample(pod string, r resize.Resource) {
	amount, value := c.millicores(), 0.0
	if value = float64(amount) / 1000; r == resize.Memory {
		amount = c.bytes()
		value = float64(amount)
	}
	c.events = append(c.events, fmt.Sprintf("%s %s %s %d", c.now.Format(time.RFC3339Nano), pod, r, amount))
	err := c.cluster.AddSample(&model.ContainerUsageSampleWithKey{
		Container:            containerID(pod, container),
		ContainerUsageSample: model.ContainerUsageSample{MeasureStart: c.now, Usage: model.ResourceAmount(amount), Resource: model.ResourceName(r)},
	})
	if err != nil {
		c.seen["sample discarded"]++
	} else {
		c.measured[r] = true
	}
	c.weir.Observe(estimate.Sample{Pod: pod, Resource: r, UsagePoint: resize.UsagePoint{At: c.now, Value: value}})
}

// millicores returns usage of CPU: often small, or at a bound of a bucket, or impossible.
func (c *comparison) millicores() int64 {
	switch c.IntN(12) {
	case 0:
		return choose[int64](c.Rand, 0, 1, 9, 10, 11, -1, 999_999, 1_000_000, 2_000_000, 1e9)
	case 1, 2, 3:
		return c.bound(model.GetAggregationsConfig().CPUHistogramOptions.GetBucketStart, 1000)
	default:
		return int64(math.Exp2(c.Float64() * 14))
	}
}

// bytes returns usage of memory.
func (c *comparison) bytes() int64 {
	switch c.IntN(12) {
	case 0:
		return choose[int64](c.Rand, 0, 0, 1, 1e7-1, 1e7, 1e7+1, -1, 1e12, 1e13)
	case 1, 2, 3:
		return c.bound(model.GetAggregationsConfig().MemoryHistogramOptions.GetBucketStart, 1)
	default:
		return int64(math.Exp2(20 + c.Float64()*16))
	}
}

// bound returns an amount at the start of a bucket, or beside it.
func (c *comparison) bound(start func(int) float64, unit float64) int64 {
	return max(0, int64(math.Round(start(c.IntN(176))*unit))+int64(c.IntN(3))-1)
}

// compare asks both sides and returns the first difference.
func (c *comparison) compare() string {
	object := c.cluster.VPAs()[model.VpaID{Namespace: namespace, VpaName: "web"}]
	want := c.upstream.GetRecommendedPodResources(object.AggregateStateByContainerName())[container]
	target := c.weir.Recommend(c.now)
	c.count(want)
	for _, r := range resize.Resources() {
		got := target.Get(r)
		if got.Set != c.measured[r] {
			return c.describe("target of %s: set is %v, and measured is %v", r, got.Set, c.measured[r])
		}
		if value := max(got.Value, c.floor[r]); value != int64(want.Target[model.ResourceName(r)]) {
			return c.describe("target of %s: got %d, want %d", r, value, want.Target[model.ResourceName(r)])
		}
	}
	return ""
}

// count counts the branches that a recommendation of upstream has met.
func (c *comparison) count(want logic.RecommendedContainerResources) {
	meet := func(branch string, met bool) {
		if met {
			c.seen[branch]++
		}
	}
	meet("no sample of memory", !c.measured[resize.Memory])
	for _, r := range resize.Resources() {
		name := model.ResourceName(r)
		meet("target at the floor", c.measured[r] && int64(want.Target[name]) == c.floor[r])
		meet("target above the floor", int64(want.Target[name]) > c.floor[r])
	}
	meet("last bucket", want.Target[model.ResourceCPU] > 1_000_000 || want.Target[model.ResourceMemory] > 1e12)
}

func (c *comparison) describe(format string, arguments ...any) string {
	return fmt.Sprintf(format, arguments...) + fmt.Sprintf("\noptions %+v\n%s", c.options, strings.Join(c.events, "\n"))
}
