package promreplay

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-metrics/weir/internal/history"
)

// matchers select the target's pods.
func (r *Request) matchers() []string {
	return []string{fmt.Sprintf("namespace=%q", r.Namespace), fmt.Sprintf("pod=~%q", r.Pods)}
}

// selector returns the label matchers of the target's pods, and others.
func (r *Request) selector(more ...string) string {
	return "{" + strings.Join(append(r.matchers(), more...), ",") + "}"
}

// usageQueries returns the queries for the usage of a resource by the pods.
func (r *Request) usageQueries(resource string) []string {
	// Two minutes have two readings with one minute between them, so the mean age of the rate is one
	// minute. The mean age in the metrics APIs is 15 s; the offset corrects the difference.
	return history.ContainerUsage(resource, r.matchers(), "%s", "rate(%s[2m] offset -45s)")
}

// specQueries returns the queries for a container's request or limit of a resource.
func (r *Request) specQueries(what, resource string) []string {
	unit := map[string]string{"cpu": "cores", "memory": "bytes"}[resource]
	return []string{
		fmt.Sprintf("max by (container) (weir_container_%s_%s_%s%s)", resource, what, unit, r.selector()),
		fmt.Sprintf("max by (container) (kube_pod_container_resource_%ss%s)", what, r.selector(fmt.Sprintf("resource=%q", resource))),
	}
}

// replicaQueries returns the queries for the number of pods.
func (r *Request) replicaQueries() []string {
	var list []string
	asked := map[string]string{
		"Deployment":  "kube_deployment_spec_replicas",
		"StatefulSet": "kube_statefulset_replicas",
		"ReplicaSet":  "kube_replicaset_spec_replicas",
	}
	if m := asked[r.Kind]; m != "" {
		list = append(list, fmt.Sprintf("max(%s{namespace=%q,%s=%q})", m, r.Namespace, strings.ToLower(r.Kind), r.Name))
	}
	if r.Autoscaler != "" {
		list = append(list, fmt.Sprintf("max(kube_horizontalpodautoscaler_status_current_replicas{namespace=%q,horizontalpodautoscaler=%q})", r.Namespace, r.Autoscaler))
	}
	return list
}

// startupQuery returns the query for the startup time of each pod that started in the span.
func (r *Request) startupQuery(span time.Duration) string {
	delay := fmt.Sprintf("min by (pod) (kube_pod_status_ready_time%s) - on (pod) max by (pod) (kube_pod_start_time%s > %d)",
		r.selector(), r.selector(), r.From.Unix())
	return fmt.Sprintf("min_over_time((%s)[%ds:%ds])", delay, int(span.Seconds()), max(60, int(span.Seconds()/1000)))
}
