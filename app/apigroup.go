package app

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/api/weirdev"
)

// ownGroup is weir's own API group as discovery tells it. The verbs are those that
// RBAC asks for: what is below a namespace or the group itself is listed, and only
// explanations and recommendations are of one thing. The page is no resource of
// anybody's, so it is not in it.
func ownGroup() server.Group {
	g := server.Group{GroupVersion: schema.GroupVersion{Group: weirdev.Group, Version: weirdev.Version}}
	for _, r := range usage.Resources() {
		g.Resources = append(g.Resources, metav1.APIResource{
			Name: string(r), Kind: r.Kind(), Namespaced: r.Namespaced(), Verbs: metav1.Verbs{"list"},
		})
	}
	g.Resources = append(g.Resources,
		metav1.APIResource{Name: "nodes/explanation", Kind: "NodeExplanation", Verbs: metav1.Verbs{"get"}},
		metav1.APIResource{Name: "nodes/eviction", Kind: "EvictionExplanation", Verbs: metav1.Verbs{"get"}},
		metav1.APIResource{Name: "nodes/podcgroups", Kind: "PodCgroups", Verbs: metav1.Verbs{"get"}},
		metav1.APIResource{Name: "pods/explanation", Kind: "PodExplanation", Namespaced: true, Verbs: metav1.Verbs{"get"}},
		metav1.APIResource{Name: "missing", Kind: "MissingReport", Namespaced: true, Verbs: metav1.Verbs{"list"}},
	)
	g.Resources = append(g.Resources, autoscalingResources()...)
	g.Resources = append(g.Resources, resizeResources()...)
	return g
}
