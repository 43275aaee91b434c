package kubeletconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/eviction"
)

// Kubelet is how a kubelet evicts.
type Kubelet struct {
	// Config is what it was configured with, and Thresholds what comes of it.
	Config     eviction.Config
	Thresholds []eviction.Threshold
	// TransitionPeriod, MaxPodGraceSeconds and LocalLimits are as in eviction.Settings.
	TransitionPeriod   time.Duration
	MaxPodGraceSeconds int64
	LocalLimits        bool
	// KernelMemcgNotification: it is woken by the kernel when memory runs short, and does
	// not only look every 10 s.
	KernelMemcgNotification bool
}

// Settings decide as the kubelet does, but on no figure in doubt.
func (k *Kubelet) Settings() *eviction.Settings {
	return &eviction.Settings{
		Thresholds: k.Thresholds, TransitionPeriod: k.TransitionPeriod,
		MaxPodGraceSeconds: k.MaxPodGraceSeconds, LocalLimits: k.LocalLimits,
	}
}

// defaultHard is what a kubelet evicts for that was not told otherwise
// (pkg/kubelet/eviction/defaults_linux.go).
func defaultHard() map[string]string {
	return map[string]string{
		"memory.available": "100Mi",
		"nodefs.available": "10%", "nodefs.inodesFree": "5%",
		"imagefs.available": "15%", "imagefs.inodesFree": "5%",
	}
}

// Default is a kubelet that nothing was configured of.
func Default() *Kubelet {
	k, err := configured(&config{Config: eviction.Config{EvictionHard: defaultHard()}})
	if err != nil {
		panic(err) // the defaults are thresholds
	}
	return k
}

// config is as much of a KubeletConfiguration (kubelet.config.k8s.io/v1beta1) as matters.
type config struct {
	eviction.Config
	EvictionPressureTransitionPeriod metav1.Duration `json:"evictionPressureTransitionPeriod"`
	EvictionMaxPodGracePeriod        int64           `json:"evictionMaxPodGracePeriod"`
	MergeDefaultEvictionSettings     bool            `json:"mergeDefaultEvictionSettings"`
	KernelMemcgNotification          bool            `json:"kernelMemcgNotification"`
	LocalStorageCapacityIsolation    *bool           `json:"localStorageCapacityIsolation"`
}

// Parse reads what a kubelet answers at /configz. It answers with its defaults filled in:
// where evictionHard is absent there, it was configured to be empty.
func Parse(configz []byte) (*Kubelet, error) {
	var answer struct {
		Config *config `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(configz, &answer); err != nil {
		return nil, fmt.Errorf("parse the kubelet's configuration: %w", err)
	}
	if answer.Config == nil {
		return nil, errors.New("parse the kubelet's configuration: there is no kubeletconfig in it")
	}
	c := answer.Config
	c.Pressure = nil // the kubelet knows none
	if c.MergeDefaultEvictionSettings {
		merged := defaultHard()
		for signal, value := range c.EvictionHard {
			merged[signal] = value
		}
		c.EvictionHard = merged
	}
	k, err := configured(c)
	if err != nil {
		return nil, fmt.Errorf("parse the kubelet's thresholds: %w", err)
	}
	return k, nil
}

func configured(c *config) (*Kubelet, error) {
	k := &Kubelet{
		Config: c.Config, TransitionPeriod: c.EvictionPressureTransitionPeriod.Duration, MaxPodGraceSeconds: c.EvictionMaxPodGracePeriod,
		KernelMemcgNotification: c.KernelMemcgNotification, LocalLimits: c.LocalStorageCapacityIsolation == nil || *c.LocalStorageCapacityIsolation,
	}
	if k.TransitionPeriod == 0 {
		k.TransitionPeriod = 5 * time.Minute
	}
	var err error
	k.Thresholds, err = eviction.Parse(&k.Config)
	return k, err
}
