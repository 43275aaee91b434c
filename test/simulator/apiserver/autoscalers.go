package apiserver

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/test/simulator"
)

const autoscalersResource = "horizontalpodautoscalers"

// deployment is a Deployment of the fleet and its pods.
type deployment struct {
	types.NamespacedName
	replicaSet string // the label app of its pods
	pods       int32
}

// deployments returns the Deployments that have pods at now, by name.
func (s *Server) deployments(now time.Time) (all []deployment) {
	index := map[types.NamespacedName]int{}
	var pods []*simulator.Pod
	for _, n := range s.o.Fleet.Nodes() {
		pods = n.PodsAt(pods[:0], now)
		for _, p := range pods {
			hash := p.Labels()["pod-template-hash"]
			if hash == "" {
				continue
			}
			replicaSet := p.Labels()["app"]
			name := types.NamespacedName{Namespace: p.Namespace, Name: strings.TrimSuffix(replicaSet, "-"+hash)}
			i, there := index[name]
			if !there {
				i = len(all)
				index[name] = i
				all = append(all, deployment{name, replicaSet, 0})
			}
			all[i].pods++
		}
	}
	slices.SortFunc(all, func(a, b deployment) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

// autoscalers returns a HorizontalPodAutoscaler of each Deployment, which keeps CPU at half of the
// requests. They do not change.
func (s *Server) autoscalers() (all []*autoscalingv2.HorizontalPodAutoscaler) {
	for _, d := range s.deployments(s.history.begin) {
		target, least := int32(50), int32(1)
		all = append(all, &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: d.Namespace, Name: d.Name, UID: types.UID("hpa-" + d.String()), Generation: 1,
				CreationTimestamp: metav1.NewTime(s.history.begin), ResourceVersion: strconv.FormatInt(s.history.begin.UnixNano(), 10),
			},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name},
				MinReplicas:    &least, MaxReplicas: 10,
				Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
					Name:   corev1.ResourceCPU,
					Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &target},
				}}},
			},
			Status: autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: d.pods, DesiredReplicas: d.pods},
		})
	}
	return all
}

// scale answers a GET of the scale of a Deployment. It is what runs, and cannot be changed.
func (s *Server) scale(w http.ResponseWriter, r *http.Request, of types.NamespacedName) {
	if r.Method != http.MethodGet {
		refuse(w, r, http.StatusMethodNotAllowed, "MethodNotAllowed", "the simulated API server's deployments cannot be scaled")
		return
	}
	for _, d := range s.deployments(s.o.Now()) {
		if d.NamespacedName == of {
			respond(w, r, http.StatusOK, &autoscalingv1.Scale{
				ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name},
				Spec:       autoscalingv1.ScaleSpec{Replicas: d.pods},
				Status:     autoscalingv1.ScaleStatus{Replicas: d.pods, Selector: "app=" + d.replicaSet},
			})
			return
		}
	}
	refuse(w, r, http.StatusNotFound, "NotFound", "deployments.apps \""+of.Name+"\" not found")
}
