package history

import (
	"fmt"
	"slices"
	"strings"
)

// ContainerUsage returns the possible PromQL queries for the usage of a resource, "cpu" or "memory",
// by containers: first of weir's metrics (/metrics/cluster), then of the kubelets'
// (/metrics/cadvisor). Each has one series for each namespace, pod and container, in cores or bytes.
// matchers select the pods: `namespace="shop"`. gauge is the format of a query of a gauge, and counter
// of one of a CPU counter; their %s is the selected series: "rate(%s[2m])".
func ContainerUsage(resource string, matchers []string, gauge, counter string) []string {
	// Several scrapers may have a container, and shortly after a restart both of its cgroups have a
	// series.
	query := func(format, name string, matchers []string) string {
		series := name + "{" + strings.Join(matchers, ",") + "}"
		return "max by (namespace, pod, container) (" + fmt.Sprintf(format, series) + ")"
	}
	containers := append(slices.Clone(matchers), `container!=""`, `container!="POD"`) // among cAdvisor's cgroups
	if resource == "memory" {
		return []string{
			query(gauge, "weir_container_memory_working_set_bytes", matchers),
			query(gauge, "container_memory_working_set_bytes", containers),
		}
	}
	return []string{
		query(gauge, "weir_container_cpu_usage_cores", matchers),
		query(counter, "container_cpu_usage_seconds_total", containers),
	}
}
