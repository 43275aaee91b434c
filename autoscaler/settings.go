package autoscaler

import "time"

// Settings are what holds for all autoscalers: the flags and feature gates of
// kube-controller-manager.
type Settings struct {
	// Tolerance is how far from 1 a ratio may be without a change.
	Tolerance float64
	// DownscaleStabilization is the window of scaling down where a specification
	// gives none.
	DownscaleStabilization time.Duration
	// CPUInitialization is how long after its start a pod's CPU counts only once
	// it was ready for a whole window of the metric.
	CPUInitialization time.Duration
	// InitialReadinessDelay is how long after its start a pod that is not ready
	// is taken never to have been.
	InitialReadinessDelay time.Duration

	// The feature gates HPAConfigurableTolerance, HPAScaleToZero and
	// PodLevelResources.
	ConfigurableTolerance bool
	ScaleToZero           bool
	PodLevelResources     bool
}

// DefaultSettings are those of Kubernetes 1.36.
func DefaultSettings() Settings {
	return Settings{
		Tolerance:              0.1,
		DownscaleStabilization: 5 * time.Minute,
		CPUInitialization:      5 * time.Minute,
		InitialReadinessDelay:  30 * time.Second,
		ConfigurableTolerance:  true,
		PodLevelResources:      true,
	}
}
