package promadapter

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/promtest"
)

// object is an object of the cluster.
type object struct {
	resource, namespace, name string
	labels                    labels.Set
	finished                  bool // a pod
}

// objects are the cluster. Those called idle have no series.
var objects = []object{
	{"namespaces", "", "shop", labels.Set{"team": "a"}, false},
	{"namespaces", "", "bank", labels.Set{"team": "b"}, false},
	{"namespaces", "", "idle", nil, false},
	{"nodes", "", "n1", labels.Set{"zone": "a"}, false},
	{"nodes", "", "n2", labels.Set{"zone": "b"}, false},
	{"nodes", "", "idle", labels.Set{"zone": "b"}, false},
	{"persistentvolumes", "", "pv-1", labels.Set{"tier": "gold"}, false},
	{"persistentvolumes", "", "idle", nil, false},
	{"pods", "shop", "web-0", labels.Set{"app": "web", "track": "stable", "v": "1.0"}, false},
	{"pods", "shop", "web-1", labels.Set{"app": "web", "track": "canary", "v": "1.0"}, false},
	{"pods", "shop", "web.2", labels.Set{"app": "web", "v": "1x0"}, false},
	{"pods", "shop", "api", labels.Set{"app": "api", "track": ""}, false},
	{"pods", "shop", "done", labels.Set{"app": "web"}, true},
	{"pods", "shop", "idle", labels.Set{"app": "idle"}, false},
	{"pods", "bank", "web-0", labels.Set{"app": "web"}, false},
	{"services", "shop", "front", labels.Set{"app": "web", "public": "yes"}, false},
	{"services", "shop", "back", labels.Set{"app": "api"}, false},
	{"services", "shop", "idle", labels.Set{"app": "idle"}, false},
	{"services", "bank", "front", labels.Set{"app": "web"}, false},
	{"deployments", "shop", "web", labels.Set{"app": "web"}, false},
	{"deployments", "shop", "idle", labels.Set{"app": "web"}, false},
	{"deployments", "bank", "web", nil, false},
	{"statefulsets", "shop", "db", labels.Set{"app": "db"}, false},
	{"jobs", "shop", "import", nil, false},
	{"ingresses", "shop", "front", labels.Set{"app": "web"}, false},
	{"ingresses", "bank", "front", nil, false},
	{"persistentvolumeclaims", "shop", "data", labels.Set{"tier": "gold"}, false},
	{"networkpolicies", "shop", "deny", nil, false},
	{"replicators", "shop", "r1", labels.Set{"app": "web"}, false},
	{"replicators", "shop", "r2", labels.Set{"app": "api"}, false},
	{"policies", "shop", "p1", labels.Set{"app": "web"}, false},
}

// newMapper returns the mapper of an API server with the resources of objects.
func newMapper() meta.RESTMapper {
	core, apps := schema.GroupVersion{Version: "v1"}, schema.GroupVersion{Group: "apps", Version: "v1"}
	batch, networking := schema.GroupVersion{Group: "batch", Version: "v1"}, schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}
	example := schema.GroupVersion{Group: "example.com", Version: "v1alpha1"}
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{core, apps, batch, networking, example})
	for _, kind := range []string{"Namespace", "Node", "PersistentVolume"} {
		m.Add(core.WithKind(kind), meta.RESTScopeRoot)
	}
	for gv, kinds := range map[schema.GroupVersion][]string{
		core: {"Pod", "Service", "PersistentVolumeClaim"}, apps: {"Deployment", "StatefulSet"}, batch: {"Job"},
		networking: {"Ingress", "NetworkPolicy"}, example: {"Replicator", "Policy"},
	} {
		for _, kind := range kinds {
			m.Add(gv.WithKind(kind), meta.RESTScopeNamespace)
		}
	}
	return m
}

// facts returns weir's facts of a cluster.
func facts(objects []object) *cluster.Facts {
	change := cluster.FactsChange{Synced: true, At: time.Now()}
	for _, o := range objects {
		switch o.resource {
		case "nodes":
			change.Nodes = append(change.Nodes, &cluster.Node{Name: metric.NodeName(o.name), Ready: true, Labels: o.labels})
		case "pods":
			p := &cluster.Pod{
				PodRef: metric.PodRef{Namespace: metric.Namespace(o.namespace), Name: metric.PodName(o.name)},
				UID:    metric.PodUID(o.namespace + o.name), Node: "n1", Phase: cluster.Running, Labels: o.labels,
			}
			if o.finished {
				p.Phase = cluster.Succeeded
			}
			change.Pods = append(change.Pods, p)
		}
	}
	var f *cluster.Facts
	return f.With(change)
}

// serveObjects starts an API server that lists objects by their labels.
func serveObjects(t testing.TB, objects []object) (url string, requests *atomic.Int64) {
	type place struct{ resource, namespace string }
	places := map[place][]object{}
	for _, o := range objects {
		places[place{o.resource, o.namespace}] = append(places[place{o.resource, o.namespace}], o)
		if o.namespace != "" {
			places[place{o.resource, ""}] = append(places[place{o.resource, ""}], o)
		}
	}
	requests = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		of := place{resource: parts[len(parts)-1]}
		if i := slices.Index(parts, "namespaces"); i >= 0 && i+2 < len(parts) {
			of.namespace = parts[i+1]
		}
		selector, err := labels.Parse(r.FormValue("labelSelector"))
		if err != nil {
			t.Errorf("list %v by %q: %v", of, r.FormValue("labelSelector"), err)
		}
		items := []any{}
		for _, o := range places[of] {
			if selector.Matches(o.labels) {
				items = append(items, map[string]any{
					"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
					"metadata": map[string]any{"name": o.name, "namespace": o.namespace, "labels": o.labels},
				})
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": map[string]any{}, "items": items})
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

// paths are label values that matter to selectors, regular expressions and quoting.
var paths = []string{"/", "a.b", "axb", `say "hi"`, "x|y", "x", "grün", `back\slash`, "(", "1.0", ""}

// each calls add for every series at a time.
func each(add func(name string, of labels.Set, value float64), seconds float64) {
	n := 0.0
	both := func(name string, of labels.Set) { // a gauge and a counter
		n++
		add(name, of, n*1.25)
		add(name+"_total", of, n*seconds/8)
	}
	for _, namespace := range []string{"shop", "bank"} {
		for i, pod := range []string{"web-0", "web-1", "web.2", "webx2", "api", "done", "gone"} {
			if namespace == "bank" && i > 0 {
				break
			}
			of := labels.Set{"namespace": namespace, "pod": pod, "node": fmt.Sprint("n", i%2+1), "service": []string{"front", "back", "gone"}[i%3], "job": "import", "instance": "10.0.0.1:80"}
			for j, path := range paths {
				one := maps.Clone(of)
				one["path"], one["code"] = path, fmt.Sprint(200+100*(j%3))
				both("http_requests", one)
			}
			both("work_items", of)
			both("work_bytes", of)
			add("shop:work:ratio", of, float64(i)/7)
			add("odd", of, float64(i-2)*1e5+0.0009999)
			add("big", of, float64(i+1)*9.5e14)
			add("zero", of, 0)
			for _, le := range []string{"0.1", "1", "+Inf"} {
				one := maps.Clone(of)
				one["le"] = le
				add("latency_seconds_bucket", one, seconds*float64(len(le)+i))
			}
		}
		for i, service := range []string{"front", "back", "gone"} {
			both("svc_load", labels.Set{"namespace": namespace, "svc": service, "zone": fmt.Sprint("z", i)})
		}
		both("ingress_hits", labels.Set{"exported_namespace": namespace, "ingress": "front", "namespace": "monitoring"})
		both("deploy_lag", labels.Set{"namespace": namespace, "deployment": "web", "statefulset": "db"})
		both("kube_sync", labels.Set{"kube_namespace": namespace, "kube_apps_deployment": "web", "kube_networking_networkpolicy": "deny", "kube_pod": "api"})
		both("replica_lag", labels.Set{"namespace": namespace, "replicator": "r1", "policy": "p1"})
		both("replica_lag", labels.Set{"namespace": namespace, "replicator": "r2"})
		both("claim_bytes", labels.Set{"namespace": namespace, "persistentvolumeclaim": "data", "persistentvolume": "pv-1"})
		for i, queue := range []string{"mail", "a.b", "axb", "bulk"} {
			both("queue_depth", labels.Set{"namespace": namespace, "queue": queue, "tier": fmt.Sprint(i % 2)})
		}
	}
	for _, node := range []string{"n1", "n2", "gone"} {
		both("node_heat", labels.Set{"node": node})
	}
}

// startPrometheus returns the URL of a Prometheus with the series of exposition. It evaluates every query at one moment:
// increase() of a steady counter differs in its last bits from one millisecond to the next, which ceil(), > and % make
// visible.
func startPrometheus(t testing.TB) string {
	t.Helper()
	now := time.Now()
	prometheus, _ := promtest.FilledURL(t, exposition, "node_heat", now, 3)
	target, err := url.Parse(prometheus)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		if r.In.URL.Path != "/api/v1/query" {
			return
		}
		if err := r.In.ParseForm(); err != nil {
			t.Errorf("query: %v", err)
		}
		r.In.Form.Set("time", strconv.FormatInt(now.Unix(), 10))
		form := r.In.Form.Encode()
		r.Out.Method, r.Out.URL.RawQuery = http.MethodPost, ""
		r.Out.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Out.Body, r.Out.ContentLength = io.NopCloser(strings.NewReader(form)), int64(len(form))
	}})
	t.Cleanup(s.Close)
	return s.URL
}

// exposition writes the series from long before now until long after it, so that a value does not depend on the moment
// of a question.
func exposition(w io.Writer) {
	type series struct{ lines strings.Builder }
	all := map[string]*series{}
	now := time.Now().Truncate(time.Second)
	for at := now.Add(-20 * time.Minute); at.Before(now.Add(30 * time.Minute)); at = at.Add(15 * time.Second) {
		each(func(name string, of labels.Set, value float64) {
			var pairs []string
			for _, k := range slices.Sorted(maps.Keys(of)) {
				pairs = append(pairs, fmt.Sprintf("%s=%q", k, of[k]))
			}
			id := fmt.Sprintf("%s{%s}", name, strings.Join(pairs, ","))
			if all[id] == nil {
				all[id] = &series{}
			}
			fmt.Fprintf(&all[id].lines, "%s %v %d\n", id, value, at.Unix())
		}, at.Sub(now).Seconds()+3600)
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		io.WriteString(w, all[id].lines.String())
	}
	io.WriteString(w, "# EOF\n")
}
