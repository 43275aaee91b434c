package controller

import (
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// TestPeek checks that a metric that requires another count has an effect within a second. A metric
// that does not, or that is not in weir's memory, has its effect at the end of the period.
func TestPeek(t *testing.T) {
	staged(t, func(s *stage) {
		s.options.PeekInterval = time.Second
		s.options.Period = time.Hour
		s.fixture.set("web", 4, 2000) // each pod uses half a core, which is the target
		s.fixture.set("dry", 4, 2000)
		s.fixture.set("outside", 4, 2000)
		s.scaler("web", nil)
		s.scaler("dry", func(a *v1alpha1.Autoscaler) { a.Spec.Mode = v1alpha1.DryRun })
		s.scaler("outside", func(a *v1alpha1.Autoscaler) {
			a.Spec.Metrics = append(a.Spec.Metrics, autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: resource.NewQuantity(1, resource.DecimalSI)},
			}})
		})
		r := s.lead()
		s.pass(10 * time.Second)
		decided := func(name string) time.Time {
			t.Helper()
			e, ok := r.Explain(v1alpha1.Kind, "shop", name)
			if !ok {
				t.Fatalf("no decision about %s", name)
			}
			return e.At
		}
		first := map[string]time.Time{}
		for _, name := range []string{"web", "dry", "outside"} {
			first[name] = decided(name)
		}
		s.fixture.use("web", 2100) // within the tolerance
		s.pass(10 * time.Second)
		if !decided("web").Equal(first["web"]) {
			t.Error("web was decided about again, and nothing asked for another count")
		}

		for _, name := range []string{"web", "dry", "outside"} {
			s.fixture.use(name, 4000)
		}
		s.pass(1500 * time.Millisecond)
		s.written("written", "web 4 to 8")
		dry := decided("dry")
		if got := s.status("dry").DesiredReplicas; got != 8 || dry.Equal(first["dry"]) {
			t.Errorf("the dry run desires %d, decided at %v; want 8, at once", got, dry)
		}
		if !decided("outside").Equal(first["outside"]) {
			t.Error("a decision whose metrics must be asked for was made before its time")
		}
		web := decided("web")
		s.pass(time.Minute)
		if !decided("web").Equal(web) || !decided("dry").Equal(dry) {
			t.Error("decisions were made again, and nothing had changed")
		}
	})
}
