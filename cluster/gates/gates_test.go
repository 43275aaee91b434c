package gates

import "testing"

// TestOn checks which gates are on in each release, by what the component says, and what is assumed.
func TestOn(t *testing.T) {
	for _, c := range []struct {
		release  string
		known    map[string]bool
		complete bool
		gate     Gate
		on       bool
		assumed  string
	}{
		{"v1.36.3", nil, true, ScaleToZero, false, ""},
		{"v1.37.2", nil, true, ScaleToZero, true, ""},
		{"v1.37.2+k3s1", nil, true, ScaleToZero, true, ""},
		{"v1.36.3", map[string]bool{"HPAScaleToZero": true}, false, ScaleToZero, true, ""},
		{"v1.37.2", map[string]bool{"HPAScaleToZero": false}, true, ScaleToZero, false, ""},
		{"v1.36.3", map[string]bool{"AllAlpha": true}, true, ScaleToZero, true, ""},
		{"v1.37.2", map[string]bool{"AllAlpha": true}, true, MemoryBackedVolumes, true, ""},
		{"v1.36.3", map[string]bool{"AllAlpha": true}, true, MemoryBackedVolumes, false, ""},
		{"v1.36.3", map[string]bool{"AllBeta": true}, true, HugePages, false, ""},
		{"v1.37.2", nil, true, HugePages, true, ""},
		{"v1.37.2", map[string]bool{"HugepageAwareEviction": false}, true, HugePages, false, ""},
		{"v1.37.2", map[string]bool{"AllBeta": false}, true, ScaleToZero, false, ""},
		{"v1.37.2", map[string]bool{"HPAConfigurableTolerance": false}, true, ConfigurableTolerance, true, ""},
		{"v1.36.3", map[string]bool{"HPAConfigurableTolerance": false}, true, ConfigurableTolerance, false, ""},
		{"v1.36.3", nil, false, ScaleToZero, false, "Feature gates that cannot be read are assumed: HPAScaleToZero is off, the default of Kubernetes 1.36."},
		{"", map[string]bool{}, true, ScaleToZero, true, "Feature gates that cannot be read are assumed: HPAScaleToZero is on, the default of Kubernetes 1.37, because the cluster's version is not known."},
	} {
		g := New(c.release, c.known, c.complete)
		if got := g.On(c.gate); got != c.on {
			t.Errorf("%s %v: %s is %v, want %v", c.release, c.known, c.gate, got, c.on)
		}
		if got := g.Assumed(c.gate); got != c.assumed {
			t.Errorf("%s %v: %q, want %q", c.release, c.known, got, c.assumed)
		}
	}
	if !New("v1.36.3", nil, true).IsBefore(37) || New("v1.37.0", nil, true).IsBefore(37) || New("", nil, true).IsBefore(37) {
		t.Error("IsBefore takes a release for another")
	}
}

// TestParseMetrics checks that only values of gates are read.
func TestParseMetrics(t *testing.T) {
	got := ParseMetrics([]byte(`# HELP kubernetes_feature_enabled [BETA] This metric records the data about the stage and enablement of a k8s feature.
# TYPE kubernetes_feature_enabled gauge
kubernetes_feature_enabled{name="HPAScaleToZero",stage="BETA"} 1
kubernetes_feature_enabled{name="SELinuxMount",stage="ALPHA"} 0
kubernetes_build_info{major="1",minor="37"} 1
`))
	if len(got) != 2 || !got["HPAScaleToZero"] || got["SELinuxMount"] {
		t.Errorf("got %v", got)
	}
}
