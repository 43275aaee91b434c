package apiserver

import (
	"encoding/json"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// groups are the API groups of the server: each group's version and its
// resources.
var groups = map[string][]metav1.APIResource{
	"v1": {
		{Name: "nodes", SingularName: "node", Kind: "Node", Verbs: read},
		{Name: "pods", SingularName: "pod", Namespaced: true, Kind: "Pod", Verbs: read},
		{Name: "namespaces", SingularName: "namespace", Kind: "Namespace", Verbs: read},
		{Name: "events", SingularName: "event", Namespaced: true, Kind: "Event", Verbs: metav1.Verbs{"create", "patch"}},
	},
	"apps/v1": {
		{Name: "deployments", SingularName: "deployment", Namespaced: true, Kind: "Deployment", Verbs: metav1.Verbs{}},
		{Name: "deployments/scale", Namespaced: true, Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: metav1.Verbs{"get"}},
	},
	"autoscaling/v2": {
		{Name: autoscalersResource, SingularName: "horizontalpodautoscaler", Namespaced: true, Kind: "HorizontalPodAutoscaler", Verbs: metav1.Verbs{"list", "watch"}},
	},
	"coordination.k8s.io/v1": {
		{Name: "leases", SingularName: "lease", Namespaced: true, Kind: "Lease", Verbs: metav1.Verbs{"create", "delete", "get", "list", "update"}},
	},
	"authentication.k8s.io/v1": {{Name: "tokenreviews", SingularName: "tokenreview", Kind: "TokenReview", Verbs: metav1.Verbs{"create"}}},
	"authorization.k8s.io/v1": {
		{Name: "subjectaccessreviews", SingularName: "subjectaccessreview", Kind: "SubjectAccessReview", Verbs: metav1.Verbs{"create"}},
	},
}

var read = metav1.Verbs{"get", "list", "watch"}

// discover answers the request if it asks for version or discovery. It returns
// false if not.
func discover(w http.ResponseWriter, path string) bool {
	var answer any
	switch path {
	case "version":
		answer = version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2-simulated", Platform: "linux/amd64"}
	case "api":
		answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case "apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, name := range [...]string{"apps/v1", "authentication.k8s.io/v1", "authorization.k8s.io/v1", "autoscaling/v2", "coordination.k8s.io/v1"} {
			group, v, _ := strings.Cut(name, "/")
			is := metav1.GroupVersionForDiscovery{GroupVersion: name, Version: v}
			list.Groups = append(list.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{is}, PreferredVersion: is})
		}
		answer = list
	default:
		name, ok := strings.CutPrefix(path, "apis/")
		if !ok {
			name, ok = strings.CutPrefix(path, "api/")
		}
		resources := groups[name]
		if !ok || resources == nil {
			return false
		}
		answer = metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: name, APIResources: resources,
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // an error means that the client has gone
	return true
}
