package manifest

import (
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/yaml"

	"github.com/weir-metrics/weir/autoscaler"
)

const hpa = `# what we roll out
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 10
  behavior: {scaleDown: {stabilizationWindowSeconds: 60}}
`

func TestRead(t *testing.T) {
	own := strings.NewReplacer("autoscaling/v2", "autoscaling.weir.dev/v1alpha1", "HorizontalPodAutoscaler", "Autoscaler", "  maxReplicas", "  mode: DryRun\n  maxReplicas").Replace(hpa)
	asJSON, err := yaml.YAMLToJSON([]byte(hpa))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ file, kind string }{
		"HPA":                   {hpa, HorizontalPodAutoscaler},
		"JSON":                  {string(asJSON), HorizontalPodAutoscaler},
		"Autoscaler":            {own, Autoscaler},
		"with empty documents":  {"---\n# nothing\n---\n" + hpa + "---\n", HorizontalPodAutoscaler},
		"out of a cluster":      {hpa + "status: {currentReplicas: 3, desiredReplicas: 4, currentMetrics: null, conditions: []}\n", HorizontalPodAutoscaler},
		"with an alias":         {strings.NewReplacer("name: web, namespace", "name: &web web, namespace", "Deployment, name: web", "Deployment, name: *web").Replace(hpa), HorizontalPodAutoscaler},
		"with carriage returns": {strings.ReplaceAll(hpa, "\n", "\r\n"), HorizontalPodAutoscaler},
	} {
		m, err := Read([]byte(test.file))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		down := m.Spec.Behavior.ScaleDown
		if m.Kind != test.kind || m.Namespace != "shop" || m.Name != "web" || *m.Spec.MinReplicas != 1 || len(m.Spec.Metrics) != 1 ||
			*down.StabilizationWindowSeconds != 60 || *down.SelectPolicy != autoscalingv2.MaxChangePolicySelect {
			t.Errorf("%s: got %+v, want it with the defaults", name, m)
		}
	}
}

// TestReadRefuses checks that an error names the wrong field.
func TestReadRefuses(t *testing.T) {
	f := func(file, want string) {
		t.Helper()
		if m, err := Read([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %+v, %v; want an error with %q, of\n%s", m, err, want, file)
		}
	}
	f("", "the manifest is empty")
	f("# nothing\n", "the manifest is empty")
	f("a: [", "read manifest: ")
	f("kind: Deployment\napiVersion: apps/v1\n", `kind: "Deployment" is neither`)
	f("spec: {}\n", "kind: missing")
	f(strings.Replace(hpa, "autoscaling/v2", "autoscaling/v1", 1), `apiVersion: "autoscaling/v1" is not autoscaling/v2`)
	f(strings.Replace(hpa, "HorizontalPodAutoscaler", "Autoscaler", 1), `apiVersion: "autoscaling/v2" is not autoscaling.weir.dev/v1alpha1`)
	f(strings.Replace(hpa, "behavior", "behaviour", 1), `unknown field "spec.behaviour"`)
	f(strings.Replace(hpa, "name: web, namespace", "namespace", 1), "metadata.name")
	f(strings.Replace(hpa, "maxReplicas: 10", "maxReplicas: 0", 1), "spec.maxReplicas")
	f(strings.Replace(hpa, "maxReplicas: 10", "maxReplicas: ten", 1), "spec.maxReplicas: must be a whole number of at most 32 bits, and is a string")
	f(strings.Replace(hpa, "maxReplicas: 10", "maxReplicas: 1.5", 1), "spec.maxReplicas: must be a whole number of at most 32 bits, and is the number 1.5")
	f(strings.Replace(hpa, "maxReplicas: 10", "maxReplicas: [1]", 1), "spec.maxReplicas: must be a whole number of at most 32 bits, and is a list")
	f(strings.Replace(hpa, "maxReplicas: 10", "maxReplicas: true", 1), "spec.maxReplicas: must be a whole number of at most 32 bits, and is a boolean")
	f(strings.Replace(hpa, "maxReplicas: 10", "maxReplicas: 10\n  metrics: {}", 1), "spec.metrics: must be a list, and is a map")
	f(strings.Replace(hpa, "scaleDown: {stabilizationWindowSeconds: 60}", "scaleDown: 60", 1), "spec.behavior.scaleDown: must be a map, and is a number")
	f(strings.Replace(hpa, "name: web, namespace", "name: 7, namespace", 1), "metadata.name: must be a string, in quotes if it looks like a number, and is a number")
	const pods = "maxReplicas: 10\n  metrics: [{type: Pods, pods: {metric: {name: a}, target: {type: AverageValue, averageValue: "
	f(strings.Replace(hpa, "maxReplicas: 10", pods+"100MB}}}]", 1), `spec.metrics[0].pods.target.averageValue: "100MB" is not a quantity: write one such as 2, 500m or 1Gi`)
	f(strings.Replace(hpa, "Seconds: 60", "Seconds: 3601", 1), "spec.behavior.scaleDown.stabilizationWindowSeconds")
	f(hpa+"---\n"+hpa, "several objects")
	f(strings.Repeat("#", MaxBytes+1), "longer than an API server accepts")
	f("a: &a "+strings.Repeat("x", 10_000)+"\nb: ["+strings.Repeat("*a,", 200)+"]\n", "its aliases expand to more")
	f("a: &a [x, *a]\n", "an anchor contains itself")
	own := strings.NewReplacer("autoscaling/v2", "autoscaling.weir.dev/v1alpha1", "HorizontalPodAutoscaler", "Autoscaler", "  maxReplicas", "  mode: Dry\n  maxReplicas").Replace(hpa)
	f(own, `spec.mode: "Dry" is neither Active nor DryRun`)
}

// FuzzRead checks that every manifest that Read accepts has a name and a valid specification.
func FuzzRead(f *testing.F) {
	f.Add([]byte(hpa))
	f.Add([]byte("---\n---\n"))
	f.Add([]byte("a: &a [*a, *b]\nb: &b {<<: *a}\n"))
	f.Add([]byte(`{"apiVersion":"autoscaling.weir.dev/v1alpha1","kind":"Autoscaler","metadata":{"name":"a"},"spec":{"maxReplicas":2,"mode":"DryRun","scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"}}}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		m, err := Read(file)
		if err != nil {
			return
		}
		settings := autoscaler.DefaultSettings()
		settings.ScaleToZero = true
		if err := autoscaler.Validate(m.Spec, settings); err != nil || m.Name == "" || m.Spec.MaxReplicas < 1 {
			t.Errorf("read %+v, which is %v", m, err)
		}
		in := &autoscaler.Input{Spec: m.Spec, Settings: &settings, Scale: autoscaler.Scale{SpecReplicas: 1, StatusReplicas: 1, Selector: "a=b"}}
		if d := autoscaler.Decide(in); d == nil || d.Err == nil && d.Desired > m.Spec.MaxReplicas {
			t.Errorf("decides %+v by it", d)
		}
	})
}
