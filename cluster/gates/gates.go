// Package gates returns which feature gates of a Kubernetes component are on, as far as weir's
// decisions depend on them. A component's own word counts first: /metrics of each has
// kubernetes_feature_enabled, and a kubelet's /configz has the gates that were set. Otherwise the
// default of the component's release is assumed, and Gates reports that.
package gates

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Gate is the name of a feature gate.
type Gate string

// The gates that decisions depend on.
const (
	ConfigurableTolerance Gate = "HPAConfigurableTolerance"
	ScaleToZero           Gate = "HPAScaleToZero"
	PodLevelResources     Gate = "PodLevelResources"
	MemoryBackedVolumes   Gate = "InPlacePodVerticalScalingMemoryBackedVolumes"
	HugePages             Gate = "HugepageAwareEviction"
)

// lifecycle has the minor releases of Kubernetes 1 in which a gate was added and its default changed
// (pkg/features/kube_features.go, v1.37.2). A gate is alpha and off before onSince. Before addedIn it is
// off, whatever is set.
type lifecycle struct{ addedIn, onSince, lockedSince uint }

const never = ^uint(0)

var lifecycles = map[Gate]lifecycle{
	ConfigurableTolerance: {addedIn: 33, onSince: 35, lockedSince: 37},
	ScaleToZero:           {addedIn: 16, onSince: 37, lockedSince: never},
	PodLevelResources:     {addedIn: 32, onSince: 34, lockedSince: never},
	MemoryBackedVolumes:   {addedIn: 37, onSince: never, lockedSince: never},
	HugePages:             {addedIn: 37, onSince: 37, lockedSince: never},
}

// newest is the newest minor release that weir knows. An unknown release is taken for it.
const newest = 37

// Gates are the gates of one component. The zero value has the defaults of the newest release that
// weir knows, all assumed.
type Gates struct {
	minor   uint            // 0 if the release is not known
	known   map[string]bool // by name; may have AllAlpha and AllBeta
	certain bool            // gates that are not in known have their defaults
}

// New returns the gates of a component. release is the component's version, like v1.37.2; if it
// cannot be parsed, the newest release is assumed. known has the gates that the component reports,
// and whether each is on. If complete is set, all other gates have their defaults.
func New(release string, known map[string]bool, complete bool) Gates {
	g := Gates{known: known}
	if v, err := version.ParseGeneric(release); err == nil && v.Major() == 1 {
		g.minor, g.certain = v.Minor(), complete
	}
	return g
}

// IsBefore reports whether the component's release is before 1.minor.
func (g Gates) IsBefore(minor uint) bool { return g.release() < minor }

func (g Gates) release() uint {
	if g.minor == 0 {
		return newest
	}
	return g.minor
}

// On reports whether a gate is on.
func (g Gates) On(name Gate) bool {
	on, _ := g.state(name)
	return on
}

// Assumed returns a sentence that names the gates in list whose state is assumed, not read. It is
// empty if there is no such gate.
func (g Gates) Assumed(list ...Gate) string {
	var texts []string
	for _, name := range list {
		if on, assumed := g.state(name); assumed {
			texts = append(texts, fmt.Sprintf("%s is %s", name, map[bool]string{true: "on", false: "off"}[on]))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	assumption := fmt.Sprintf("the default of Kubernetes 1.%d", g.release())
	if g.minor == 0 {
		assumption += ", because the cluster's version is not known"
	}
	return fmt.Sprintf("Feature gates that cannot be read are assumed: %s, %s.", strings.Join(texts, ", "), assumption)
}

func (g Gates) state(name Gate) (on, assumed bool) {
	c, minor := lifecycles[name], g.release()
	if minor < c.addedIn {
		return false, false
	}
	byDefault := minor >= c.onSince
	if byDefault && minor >= c.lockedSince {
		return true, g.minor == 0
	}
	group := "AllAlpha"
	if byDefault {
		group = "AllBeta"
	}
	for _, key := range [...]string{string(name), group} {
		if on, ok := g.known[key]; ok {
			return on, false
		}
	}
	return byDefault, !g.certain
}

var enabled = regexp.MustCompile(`(?m)^kubernetes_feature_enabled\{name="([^"\n]+)"[^}\n]*\} ([01])\b`)

// ParseMetrics returns the gates in a component's answer at /metrics.
func ParseMetrics(text []byte) map[string]bool {
	found := map[string]bool{}
	for _, m := range enabled.FindAllSubmatch(text, -1) {
		found[string(m[1])] = string(m[2]) == "1"
	}
	return found
}
