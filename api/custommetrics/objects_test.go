package custommetrics

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
)

// clusterObjects returns the objects of an API server with a Deployment front of the label app=web in shop. It may not
// list secrets, has more configmaps than weir reads, and knows no other resource.
func clusterObjects(t *testing.T) *ClusterObjects {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, answer := http.StatusOK, any(nil)
		list := func(next string, names ...string) *metav1.PartialObjectMetadataList {
			l := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}}
			l.Continue = next
			for _, name := range names {
				l.Items = append(l.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
			}
			return l
		}
		switch resource := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]; {
		case r.FormValue("limit") != fmt.Sprint(objectsPerPage):
			t.Errorf("%s has the limit %q, want %d", r.URL, r.FormValue("limit"), objectsPerPage)
		case resource == "secrets":
			status, answer = http.StatusForbidden, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden}
		case resource == "configmaps":
			answer = list("more", strings.Split(strings.Repeat("c ", 5000), " ")...)
		case resource == "namespaces":
			answer = list("", "kube-system", "shop")
		case r.FormValue("labelSelector") == "app=none":
			answer = list("")
		case r.FormValue("continue") == "":
			answer = list("next", "web")
		default:
			answer = list("", "front")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer) // the client reads it
	}))
	t.Cleanup(s.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := metadata.NewForConfig(&rest.Config{Host: s.URL, Transport: transport, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return &ClusterObjects{Client: client, Resource: func(_ context.Context, r schema.GroupResource) (schema.GroupVersionResource, error) {
		if r.Resource == "unknown" {
			return schema.GroupVersionResource{}, &meta.NoResourceMatchError{PartialResource: r.WithVersion("")}
		}
		return r.WithVersion("v1"), nil
	}}
}

// Objects other than pods and nodes are listed page by page, within a limit.
func TestObjectsOfTheCluster(t *testing.T) {
	objects := clusterObjects(t)
	for _, test := range []struct{ resource, selector, want string }{
		{"deployments.apps", "app=web", "[front web] <nil>"},
		{"deployments.apps", "app=none", "[] <nil>"},
		{"secrets", "", "[] weir may not list secrets, so it does not know their labels: give its account the verb list on them, or ask for one by its name"},
		{"configmaps", "", "[] more than 20000 configmaps have labels that match: choose fewer by the label selector"},
		{"unknown.example.com", "", "[] the API server has no resource unknown.example.com: see kubectl api-resources"},
	} {
		names, err := objects.list(t.Context(), "shop", mustParse(t, test.selector), schema.ParseGroupResource(test.resource))
		if got := fmt.Sprint(names, " ", err); got != test.want {
			t.Errorf("%s{%s}\n got %s\nwant %s", test.resource, test.selector, got, test.want)
		}
	}
}

// A list has the objects that there are, and not the series of deleted ones.
func TestRulesOfOtherObjects(t *testing.T) {
	w, rules := byRules(t)
	objects := clusterObjects(t)
	unreachable := &ClusterObjects{Resource: func(context.Context, schema.GroupResource) (schema.GroupVersionResource, error) {
		return schema.GroupVersionResource{}, context.DeadlineExceeded
	}}
	for _, test := range []struct {
		objects                             *ClusterObjects
		resource, namespace, selector, want string
	}{
		{objects, "deployments.apps", "shop", "app=web", "shop/front 40"},
		{objects, "deployments.apps", "shop", "", "shop/front 40"},
		{objects, "deployments.apps", "shop", "app=none", "no deployments.apps in namespace shop have labels that match app=none"},
		{unreachable, "deployments.apps", "shop", "", "shop/front 40, shop/side 2"},
		{unreachable, "deployments.apps", "shop", "app=web", "find the version of deployments.apps: context deadline exceeded"},
		{objects, "namespaces", "", "", "/kube-system 1k, /shop 122500m"},
		{nil, "namespaces", "", "", "/kube-system 1k, /shop 122500m"},
		{nil, "namespaces", "", "team=a", "this weir does not know the labels of namespaces: leave the label selector out, or ask for one by its name"},
	} {
		o := w.options()
		o.Rules, o.Objects = rules, test.objects
		info := provider.CustomMetricInfo{GroupResource: schema.ParseGroupResource(test.resource), Namespaced: test.namespace != "", Metric: "requests"}
		list, err := New(o).GetMetricBySelector(t.Context(), test.namespace, mustParse(t, test.selector), info, labels.Everything())
		var values []string
		got := fmt.Sprint(err)
		if err == nil {
			for _, v := range list.Items {
				values = append(values, fmt.Sprintf("%s/%s %v", v.DescribedObject.Namespace, v.DescribedObject.Name, &v.Value))
			}
			got = strings.Join(values, ", ")
		}
		if got != test.want {
			t.Errorf("%s{%s} in %q\n got %s\nwant %s", test.resource, test.selector, test.namespace, got, test.want)
		}
	}
}
