package run

import (
	"fmt"
	"maps"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster/gates"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/internal/usererror"
)

// Plan names the autoscalers to decide about, with which settings. Evaluations use the settings even
// if weir does not act.
type Plan struct {
	Act      bool // on objects of kind Autoscaler
	Shadow   bool // decide about HorizontalPodAutoscalers without acting
	Period   time.Duration
	Workers  int
	Settings autoscaler.Settings // without feature gates
	// ScaleToZero overrides the feature gate HPAScaleToZero, unless it is nil.
	ScaleToZero *bool
}

// featureGates returns the feature gates of a cluster of this release. known are those that the API
// server reports.
func (p *Plan) featureGates(release string, known map[string]bool) gates.Gates {
	if p.ScaleToZero != nil {
		known = maps.Clone(known)
		if known == nil {
			known = map[string]bool{}
		}
		known[string(gates.ScaleToZero)] = *p.ScaleToZero
	}
	return gates.New(release, known, false)
}

// settings returns the settings of decisions with these feature gates.
func (p *Plan) settings(g gates.Gates) autoscaler.Settings {
	s := p.Settings
	s.ConfigurableTolerance, s.ScaleToZero, s.PodLevelResources = g.On(gates.ConfigurableTolerance), g.On(gates.ScaleToZero), g.On(gates.PodLevelResources)
	return s
}

// Flags adds the flags about autoscalers. A flag that kube-controller-manager has too is called
// --horizontal-pod-autoscaler-... there, and has the same default.
func (c *Controller) Flags(f *pflag.FlagSet) {
	p := &c.Plan
	s := &p.Settings
	f.BoolVar(&p.Act, "autoscalers", false, "act on Autoscalers (autoscaling.weir.dev), as Kubernetes' own controller does on HorizontalPodAutoscalers")
	f.BoolVar(&p.Shadow, "shadow-hpa", false, "decide about HorizontalPodAutoscalers as Kubernetes' own controller does, change nothing, and report where the two differ and why")
	f.DurationVar(&p.Period, "autoscaler-sync-period", p.Period, "time between two decisions about one autoscaler")
	f.IntVar(&p.Workers, "autoscaler-workers", p.Workers, "how many autoscalers are decided about at once")
	f.Float64Var(&s.Tolerance, "autoscaler-tolerance", s.Tolerance, "how far from 1 the ratio of use to target may be without a change, unless an autoscaler sets its own")
	f.DurationVar(&s.DownscaleStabilization, "autoscaler-downscale-stabilization", s.DownscaleStabilization, "how long to wait before scaling down: the highest recommendation of this time counts, unless an autoscaler sets its own")
	f.DurationVar(&s.CPUInitialization, "autoscaler-cpu-initialization-period", s.CPUInitialization, "for this long after its start, a pod's CPU counts only after the pod was ready for a whole window of the metric")
	f.DurationVar(&s.InitialReadinessDelay, "autoscaler-initial-readiness-delay", s.InitialReadinessDelay, "for this long after its start, a pod that is not ready counts as never ready")
	f.Bool("autoscaler-scale-to-zero", false, "allow minReplicas of 0 (default: as the cluster's feature gate HPAScaleToZero does, which is on since Kubernetes 1.37)")
	c.toZero = f.Lookup("autoscaler-scale-to-zero")
}

// Check checks the flags and completes the plan.
func (c *Controller) Check(in *feature.Setting) error {
	p := &c.Plan
	for _, d := range []struct {
		flag  string
		value time.Duration
		least time.Duration
	}{
		{"sync-period", p.Period, time.Second},
		{"downscale-stabilization", p.Settings.DownscaleStabilization, 0},
		{"cpu-initialization-period", p.Settings.CPUInitialization, 0},
		{"initial-readiness-delay", p.Settings.InitialReadinessDelay, 0},
	} {
		if d.value < d.least {
			return usererror.Usage(fmt.Errorf("--autoscaler-%s cannot be %v: at least %v", d.flag, d.value, d.least))
		}
	}
	if p.Workers < 1 {
		return usererror.Usage(fmt.Errorf("--autoscaler-workers cannot be %d: at least 1", p.Workers))
	}
	if !(p.Settings.Tolerance >= 0 && p.Settings.Tolerance < 1) { // false for NaN too
		return usererror.Usage(fmt.Errorf("--autoscaler-tolerance cannot be %v: from 0 to less than 1", p.Settings.Tolerance))
	}
	if c.toZero != nil && c.toZero.Changed {
		p.ScaleToZero = new(c.toZero.Value.String() == "true")
	}
	c.Clients.WatchAutoscalers = p.Act
	switch {
	case in.HasCluster:
		return nil
	case p.Act:
		return feature.NeedsCluster("--autoscalers", "whose workloads it scales")
	case p.Shadow:
		return feature.NeedsCluster("--shadow-hpa", "whose autoscalers it watches")
	}
	return nil
}
