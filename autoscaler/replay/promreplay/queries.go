package promreplay

import (
	"fmt"
	"strings"
	"time"
)

// candidate is one way to ask for something, and in whose metrics.
type candidate struct{ source, query string }

// selector is the matchers of the target's pods.
func (r *Request) selector(more ...string) string {
	all := append([]string{fmt.Sprintf("namespace=%q", r.Namespace), fmt.Sprintf("pod=~%q", r.Pods)}, more...)
	return "{" + strings.Join(all, ",") + "}"
}

// one is a metric of each pod and container once, whoever scraped it how often.
func one(query string) string { return "max by (pod, container) (" + query + ")" }

// usage are the ways to ask what the pods' containers use of a resource.
func (r *Request) usage(resource string) []candidate {
	real := r.selector(`container!=""`, `container!="POD"`)
	if resource == "memory" {
		return []candidate{
			{"weir", one("weir_container_memory_working_set_bytes" + r.selector())},
			{"cAdvisor", one("container_memory_working_set_bytes" + real)},
		}
	}
	return []candidate{
		{"weir", one("weir_container_cpu_usage_cores" + r.selector())},
		// Two minutes hold two readings a minute apart. Their mean is of a minute ago,
		// where metrics APIs tell that of a quarter of a minute ago: it is moved.
		{"cAdvisor", one("rate(container_cpu_usage_seconds_total" + real + "[2m] offset -45s)")},
	}
}

// spec are the ways to ask what a container's request or limit of a resource is.
func (r *Request) spec(what, resource string) []candidate {
	unit := map[string]string{"cpu": "cores", "memory": "bytes"}[resource]
	return []candidate{
		{"weir", fmt.Sprintf("max by (container) (weir_container_%s_%s_%s%s)", resource, what, unit, r.selector())},
		{"kube-state-metrics", fmt.Sprintf("max by (container) (kube_pod_container_resource_%ss%s)", what, r.selector(fmt.Sprintf("resource=%q", resource)))},
	}
}

// replicas are the ways to ask how many pods there were.
func (r *Request) replicas() []candidate {
	var list []candidate
	asked := map[string]string{
		"Deployment":  "kube_deployment_spec_replicas",
		"StatefulSet": "kube_statefulset_replicas",
		"ReplicaSet":  "kube_replicaset_spec_replicas",
	}
	if m := asked[r.Kind]; m != "" {
		list = append(list, candidate{"kube-state-metrics", fmt.Sprintf("max(%s{namespace=%q,%s=%q})", m, r.Namespace, strings.ToLower(r.Kind), r.Name)})
	}
	if r.Autoscaler != "" {
		list = append(list, candidate{"kube-state-metrics", fmt.Sprintf("max(kube_horizontalpodautoscaler_status_current_replicas{namespace=%q,horizontalpodautoscaler=%q})", r.Namespace, r.Autoscaler)})
	}
	return append(list, candidate{"the pods measured", ""})
}

// startup asks how long after its start each pod that started in the span was ready.
func (r *Request) startup(span time.Duration) string {
	delay := fmt.Sprintf("min by (pod) (kube_pod_status_ready_time%s) - on (pod) max by (pod) (kube_pod_start_time%s > %d)",
		r.selector(), r.selector(), r.From.Unix())
	return fmt.Sprintf("min_over_time((%s)[%ds:%ds])", delay, int(span.Seconds()), max(60, int(span.Seconds()/1000)))
}
