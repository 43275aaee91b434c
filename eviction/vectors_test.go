package eviction

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/test/vectors"
)

// t0 is the start of a vector.
var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// vector is a line of testdata/eviction. The README there explains the fields.
type vector struct {
	ID      string `json:"id"`
	Family  string `json:"family"`
	Release string `json:"release"` // the kubelet's, if it is not 1.37

	Config vectorConfig   `json:"config"`
	Layout vectorLayout   `json:"layout"`
	Signal Signal         `json:"signal"`
	Pods   []*corev1.Pod  `json:"pods"`
	Stats  vectorPods     `json:"stats"`
	Steps  []vectorStep   `json:"steps"`
	Expect vectorExpected `json:"expect"`

	NodeConditions []corev1.NodeConditionType `json:"nodeConditions"`
	Pod            *corev1.Pod                `json:"pod"`

	Threshold struct {
		Signal             Signal  `json:"signal"`
		Value              string  `json:"value"`
		GracePeriodSeconds float64 `json:"gracePeriodSeconds"`
	} `json:"threshold"`
	Cgroups struct {
		MemoryMount string `json:"memoryMount"`
		PodRoot     string `json:"podRoot"`
	} `json:"cgroups"`
}

type vectorConfig struct {
	ThresholdConfig
	TransitionPeriod   string          `json:"evictionPressureTransitionPeriod"`
	MaxPodGraceSeconds int64           `json:"evictionMaxPodGracePeriod"`
	LocalLimits        bool            `json:"localStorageCapacityIsolation"`
	FeatureGates       map[string]bool `json:"featureGates"`
}

func (v *vector) settings(t *testing.T, parity bool) *Settings {
	t.Helper()
	c := &v.Config
	thresholds, err := Parse(&c.ThresholdConfig)
	if err != nil {
		t.Fatalf("parse the configuration: %v", err)
	}
	period, err := time.ParseDuration(c.TransitionPeriod)
	if err != nil {
		t.Fatal(err)
	}
	return &Settings{
		Thresholds: thresholds, TransitionPeriod: period, MaxPodGraceSeconds: c.MaxPodGraceSeconds,
		LocalLimits: c.LocalLimits, Parity: parity,
		Rules: Rules{
			IgnoreSidecarLimits: v.Release == "1.36",
			IgnoreMemoryVolumes: c.FeatureGates["InPlacePodVerticalScalingMemoryBackedVolumes"],
		},
	}
}

type vectorLayout struct {
	DedicatedImageFs     bool `json:"dedicatedImageFs"`
	DedicatedContainerFs bool `json:"dedicatedContainerFs"`
}

type vectorStep struct {
	AdvanceSeconds float64      `json:"advanceSeconds"`
	ActivePods     []string     `json:"activePods"`
	Stats          *vectorStats `json:"stats"`
	StatsError     bool         `json:"statsError"`
	LayoutError    string       `json:"layoutError"`
	GC             struct {
		Container  *collected `json:"container"`
		Image      *collected `json:"image"`
		StatsError bool       `json:"statsError"`
	} `json:"gc"`
	KillError     bool           `json:"killError"`
	RegisterError bool           `json:"registerError"`
	Expect        vectorExpected `json:"expect"`
}

type collected struct {
	Node *vectorNode `json:"node"`
}

type vectorExpected struct {
	Error bool `json:"error"`

	// The following field is for the family parse.
	Thresholds []vectorThreshold `json:"thresholds"`
	// The following fields are for the family rank.
	Order  []string   `json:"order"`
	Groups [][]string `json:"groups"`
	// The following fields are for the family sync.
	NodeConditions  []corev1.NodeConditionType `json:"nodeConditions"`
	ThresholdsMet   []vectorThreshold          `json:"thresholdsMet"`
	NotifierRefresh bool                       `json:"notifierRefresh"`
	Action          *vectorAction              `json:"action"`
	ActionAnyOf     []vectorAction             `json:"actionAnyOf"`
	Observations    map[Signal]struct {
		Available int64    `json:"available"`
		Capacity  int64    `json:"capacity"`
		Time      *float64 `json:"time"`
	} `json:"observations"`
	State struct {
		FirstObservedAt []vectorThreshold                     `json:"thresholdsFirstObservedAt"`
		LastObservedAt  map[corev1.NodeConditionType]*float64 `json:"nodeConditionsLastObservedAt"`
	} `json:"state"`
	// The following fields are for the family admit.
	Admit   bool   `json:"admit"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// The following fields are for the family notifier.
	Description string `json:"description"`
	StopCurrent bool   `json:"stopCurrent"`
	Register    *struct {
		Path      string `json:"path"`
		Attribute string `json:"attribute"`
		Threshold int64  `json:"threshold"`
	} `json:"register"`
}

type vectorThreshold struct {
	Signal             Signal       `json:"signal"`
	Operator           string       `json:"operator,omitempty"`
	Value              vectorValue  `json:"value"`
	GracePeriodSeconds float64      `json:"gracePeriodSeconds"`
	MinReclaim         *vectorValue `json:"minReclaim,omitempty"`
	At                 *float64     `json:"at,omitempty"`
}

type vectorValue struct {
	Quantity   string   `json:"quantity,omitempty"`
	Exact      string   `json:"exact,omitempty"`
	Percentage *float64 `json:"percentage,omitempty"`
}

type vectorAction struct {
	AttemptedReclaim string       `json:"attemptedReclaim"`
	GC               []Collection `json:"gc"`
	Kills            []vectorKill `json:"kills"`
}

type vectorKill struct {
	Pod                string            `json:"pod"`
	Signal             string            `json:"signal"`
	GracePeriodSeconds int64             `json:"gracePeriodSeconds"`
	Message            string            `json:"message"`
	DisruptionTarget   bool              `json:"disruptionTarget"`
	Annotations        map[string]string `json:"annotations"`
}

// In vectors the stats have times in seconds since t0. Otherwise they are those of the summary API.
type (
	vectorStats struct{ stats.Summary }
	vectorNode  struct{ stats.NodeStats }
	vectorPods  []stats.PodStats
)

func (s *vectorStats) UnmarshalJSON(b []byte) error { return timed(b, &s.Summary) }
func (s *vectorNode) UnmarshalJSON(b []byte) error  { return timed(b, &s.NodeStats) }
func (s *vectorPods) UnmarshalJSON(b []byte) error  { return timed(b, (*[]stats.PodStats)(s)) }

func timed(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return err
	}
	if err := instants(tree); err != nil {
		return err
	}
	b, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// instants replaces every "time" in seconds by a time in RFC 3339.
func instants(tree any) error {
	switch tree := tree.(type) {
	case []any:
		for _, branch := range tree {
			if err := instants(branch); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, branch := range tree {
			if n, ok := branch.(json.Number); ok && key == "time" {
				f, err := n.Float64()
				if err != nil {
					return err
				}
				tree[key] = at(f).Format(time.RFC3339Nano)
			} else if err := instants(branch); err != nil {
				return err
			}
		}
	}
	return nil
}

func at(seconds float64) time.Time { return t0.Add(time.Duration(seconds * float64(time.Second))) }

// since is the inverse of at; nil for the zero time.
func since(t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	return new(t.Sub(t0).Seconds())
}

// eachVector calls f with every vector of a family.
func eachVector(t testing.TB, family string, f func(*vector)) {
	t.Helper()
	vectors.Each(t, "eviction", func(line []byte) error {
		if !bytes.Contains(line, fmt.Appendf(nil, `"family":%q`, family)) {
			return nil
		}
		v := &vector{}
		if err := json.Unmarshal(line, v); err != nil {
			return err
		}
		f(v)
		return nil
	})
}
