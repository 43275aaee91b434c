package kubeletconfig

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/cluster/gates"
	"github.com/weir-metrics/weir/eviction"
)

// Kubelet is the eviction configuration of a kubelet. With its settings, package eviction decides
// as the kubelet does, except on figures that cannot be right.
type Kubelet struct {
	eviction.Settings
	// KernelMemcgNotification is set if the kernel also wakes the kubelet when memory runs short.
	// Otherwise the kubelet reads its figures only every 10 s.
	KernelMemcgNotification bool
	// FeatureGates are the gates that were set for the kubelet. The others have the defaults of its
	// release.
	FeatureGates map[string]bool
}

// SetRules sets the rules that depend on the kubelet's release and feature gates.
func (k *Kubelet) SetRules(g gates.Gates) {
	k.Rules = eviction.Rules{IgnoreSidecarLimits: g.IsBefore(37), IgnoreMemoryVolumes: g.On(gates.MemoryBackedVolumes), IgnoreHugePages: !g.On(gates.HugePages)}
}

// defaultHard returns the default hard thresholds of the kubelet
// (pkg/kubelet/eviction/defaults_linux.go).
func defaultHard() map[string]string {
	return map[string]string{
		"memory.available": "100Mi",
		"nodefs.available": "10%", "nodefs.inodesFree": "5%",
		"imagefs.available": "15%", "imagefs.inodesFree": "5%",
	}
}

// Default returns the configuration of a kubelet that has no configuration file.
func Default() *Kubelet {
	k, err := newKubelet(&kubeletConfiguration{ThresholdConfig: eviction.ThresholdConfig{EvictionHard: defaultHard()}})
	if err != nil {
		panic(err) // the defaults are valid thresholds
	}
	return k
}

// kubeletConfiguration has the fields of KubeletConfiguration (kubelet.config.k8s.io/v1beta1) that
// this package needs.
type kubeletConfiguration struct {
	eviction.ThresholdConfig
	EvictionPressureTransitionPeriod metav1.Duration `json:"evictionPressureTransitionPeriod"`
	EvictionMaxPodGracePeriod        int64           `json:"evictionMaxPodGracePeriod"`
	MergeDefaultEvictionSettings     bool            `json:"mergeDefaultEvictionSettings"`
	KernelMemcgNotification          bool            `json:"kernelMemcgNotification"`
	LocalStorageCapacityIsolation    *bool           `json:"localStorageCapacityIsolation"`
	FeatureGates                     map[string]bool `json:"featureGates"`
}

// Parse parses a kubelet's answer at /configz. The answer includes the kubelet's defaults, so an
// absent evictionHard means that it was configured to be empty.
func Parse(configz []byte) (*Kubelet, error) {
	var answer struct {
		Config *kubeletConfiguration `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(configz, &answer); err != nil {
		return nil, fmt.Errorf("parse the kubelet's configuration: %w", err)
	}
	if answer.Config == nil {
		return nil, errors.New("parse the kubelet's configuration: there is no kubeletconfig in it")
	}
	c := answer.Config
	c.Pressure = nil // the kubelet does not have them
	if c.MergeDefaultEvictionSettings {
		merged := defaultHard()
		maps.Copy(merged, c.EvictionHard)
		c.EvictionHard = merged
	}
	k, err := newKubelet(c)
	if err != nil {
		return nil, fmt.Errorf("parse the kubelet's thresholds: %w", err)
	}
	return k, nil
}

func newKubelet(c *kubeletConfiguration) (*Kubelet, error) {
	thresholds, err := eviction.Parse(&c.ThresholdConfig)
	return &Kubelet{
		Settings: eviction.Settings{
			Thresholds:         thresholds,
			TransitionPeriod:   cmp.Or(c.EvictionPressureTransitionPeriod.Duration, 5*time.Minute),
			MaxPodGraceSeconds: c.EvictionMaxPodGracePeriod,
			LocalLimits:        c.LocalStorageCapacityIsolation == nil || *c.LocalStorageCapacityIsolation,
		},
		KernelMemcgNotification: c.KernelMemcgNotification,
		FeatureGates:            c.FeatureGates,
	}, err
}

// maxConfigzBytes is larger than the configuration of any kubelet.
const maxConfigzBytes = 4 << 20

// FetchOrDefault returns the result of Fetch. If Fetch fails, it returns Default and a warning with
// the reason; otherwise the warning is empty.
func FetchOrDefault(ctx context.Context, client *http.Client, address string) (k *Kubelet, warning string) {
	k, err := Fetch(ctx, client, address)
	if err == nil {
		return k, ""
	}
	return Default(), fmt.Sprintf("the kubelet at %s did not return its thresholds and feature gates, so the defaults are assumed: %v. "+
		"Set --kubelet-url, --kubelet-certificate-authority or --kubelet-insecure-tls, and start the agent again", address, err)
}

// Fetch reads the configuration from a kubelet at an address like https://192.0.2.7:10250. The
// client needs the right get on nodes/configz. Kubelets before 1.33 require nodes/proxy instead.
// That right also allows commands in every container of the node, so agents do not have it.
func Fetch(ctx context.Context, client *http.Client, address string) (*Kubelet, error) {
	const doing = "ask the kubelet for its configuration: %w"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/configz", nil)
	if err != nil {
		return nil, fmt.Errorf(doing, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf(doing, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxConfigzBytes))
	switch {
	case err != nil:
		return nil, fmt.Errorf(doing, err)
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf(doing, errors.New(response.Status+": allow get on nodes/configz to this agent's service account"))
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf(doing, errors.New(response.Status))
	}
	return Parse(body)
}
