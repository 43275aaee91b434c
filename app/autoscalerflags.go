package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/client/cli"
)

// autoscalerPlan is what to decide about, and by which settings. Evaluations go by
// the settings even where nothing is acted on.
type autoscalerPlan struct {
	Act      bool // on Autoscalers
	Shadow   bool // HorizontalPodAutoscalers
	Period   time.Duration
	Workers  int
	Settings autoscaler.Settings
}

// runs reports whether a controller is to run.
func (p *autoscalerPlan) runs() bool { return p.Act || p.Shadow }

// autoscalerFlags are the flags about autoscalers. Where Kubernetes'
// kube-controller-manager has the same, it is called --horizontal-pod-autoscaler-...
// there, and has the same default.
type autoscalerFlags struct{ autoscalerPlan }

func newAutoscalerFlags() *autoscalerFlags {
	return &autoscalerFlags{autoscalerPlan{Period: 15 * time.Second, Workers: 5, Settings: autoscaler.DefaultSettings()}}
}

func (a *autoscalerFlags) addFlags(f *pflag.FlagSet) {
	s := &a.Settings
	f.BoolVar(&a.Act, "autoscalers", false, "act on Autoscalers (autoscaling.weir.dev), as Kubernetes' own controller does on HorizontalPodAutoscalers")
	f.BoolVar(&a.Shadow, "shadow-hpa", false, "decide about HorizontalPodAutoscalers beside Kubernetes' own controller, touch nothing, and say where the two differ and why")
	f.DurationVar(&a.Period, "autoscaler-sync-period", a.Period, "time between two decisions about one autoscaler")
	f.IntVar(&a.Workers, "autoscaler-workers", a.Workers, "how many autoscalers are decided about at once")
	f.Float64Var(&s.Tolerance, "autoscaler-tolerance", s.Tolerance, "how far from 1 the ratio of use to target may be without a change, unless an autoscaler says otherwise")
	f.DurationVar(&s.DownscaleStabilization, "autoscaler-downscale-stabilization", s.DownscaleStabilization, "how long the highest recommendation holds before fewer replicas are asked for, unless an autoscaler says otherwise")
	f.DurationVar(&s.CPUInitialization, "autoscaler-cpu-initialization-period", s.CPUInitialization, "how long after its start a pod's CPU counts only once it was ready for a whole window of the metric")
	f.DurationVar(&s.InitialReadinessDelay, "autoscaler-initial-readiness-delay", s.InitialReadinessDelay, "how long after its start a pod that is not ready is taken never to have been")
	f.BoolVar(&s.ScaleToZero, "autoscaler-scale-to-zero", s.ScaleToZero, "allow minReplicas of 0, as Kubernetes' feature gate HPAScaleToZero does")
}

// compile returns what to decide about; cluster is whether there is one.
func (a *autoscalerFlags) compile(cluster bool) (autoscalerPlan, error) {
	for _, d := range []struct {
		flag  string
		value time.Duration
		least time.Duration
	}{
		{"sync-period", a.Period, time.Second},
		{"downscale-stabilization", a.Settings.DownscaleStabilization, 0},
		{"cpu-initialization-period", a.Settings.CPUInitialization, 0},
		{"initial-readiness-delay", a.Settings.InitialReadinessDelay, 0},
	} {
		if d.value < d.least {
			return a.autoscalerPlan, cli.Usage(fmt.Errorf("--autoscaler-%s cannot be %v: at least %v", d.flag, d.value, d.least))
		}
	}
	if a.Workers < 1 {
		return a.autoscalerPlan, cli.Usage(fmt.Errorf("--autoscaler-workers cannot be %d: at least 1", a.Workers))
	}
	if !(a.Settings.Tolerance >= 0 && a.Settings.Tolerance < 1) { // nor NaN
		return a.autoscalerPlan, cli.Usage(fmt.Errorf("--autoscaler-tolerance cannot be %v: from 0 to less than 1", a.Settings.Tolerance))
	}
	if !a.runs() || cluster {
		return a.autoscalerPlan, nil
	}
	if a.Act {
		return a.autoscalerPlan, cli.Hintf(cli.Usage(errors.New("--autoscalers needs a cluster, whose workloads it scales")),
			"Name it with --kubeconfig=FILE or --in-cluster, or leave --autoscalers out.")
	}
	return a.autoscalerPlan, cli.Hintf(cli.Usage(errors.New("--shadow-hpa needs a cluster, whose autoscalers it watches")),
		"Name it with --kubeconfig=FILE or --in-cluster, or leave --shadow-hpa out.")
}
