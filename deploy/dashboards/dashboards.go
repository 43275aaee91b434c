// Package dashboards makes the dashboards for Grafana in deploy/kustomize/components/dashboards:
// go test ./deploy/dashboards -rewrite writes them. Each query is in Go, once, with its unit and what
// it shows.
package dashboards

import (
	"encoding/json"
	"fmt"
)

// Dashboard is a page of panels.
type Dashboard struct {
	// Name is that of its file, and its UID in Grafana.
	Name, Title, About string
	Rows               []Row
}

// Row is panels of the same height beside each other, as wide as each other.
type Row struct {
	Kind   Kind
	Panels []Panel
}

// Kind is the kind of a panel, by Grafana's name.
type Kind string

// The kinds.
const (
	Stat       Kind = "stat" // the newest number
	TimeSeries Kind = "timeseries"
	Table      Kind = "table" // the newest numbers, a line each
)

// Panel is one query and how its answer is shown.
type Panel struct {
	Title string
	// About describes what the panel shows, if the title is not enough.
	About string
	Unit  string // by Grafana's name: "percentunit", "bytes"
	// Query is PromQL. It may use the variables $namespace, a pattern, and $__rate_interval.
	Query string
	// Legend is the name of each series: "{{node}}".
	Legend string
}

const (
	columns     = 24 // the width of Grafana's grid
	statHeight  = 4
	chartHeight = 8
)

// JSON returns the dashboard as Grafana's JSON.
func (d *Dashboard) JSON() ([]byte, error) {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	var panels []object
	y := 0
	for _, row := range d.Rows {
		height := chartHeight
		if row.Kind == Stat {
			height = statHeight
		}
		width := columns / len(row.Panels)
		for i, p := range row.Panels {
			panels = append(panels, p.json(row.Kind, source, object{
				"id": len(panels) + 1, "gridPos": object{"h": height, "w": width, "x": i * width, "y": y},
			}))
		}
		y += height
	}
	variables := []object{
		{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
		{
			"name": "namespace", "label": "Namespace", "type": "query", "datasource": source, "refresh": 2, "sort": 1,
			"query": "label_values(weir_pod_info, namespace)", "includeAll": true, "multi": true, "allValue": ".*",
			"current": object{"text": "All", "value": "$__all"},
		},
	}
	text, err := json.MarshalIndent(object{
		"uid": d.Name, "title": d.Title, "description": d.About, "tags": []string{"weir", "kubernetes"},
		"schemaVersion": 39, "timezone": "browser", "refresh": "30s", "time": object{"from": "now-1h", "to": "now"},
		"graphTooltip": 1, "templating": object{"list": variables}, "panels": panels,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("dashboard %s: %w", d.Name, err)
	}
	return append(text, '\n'), nil
}

type object map[string]any

// json returns the panel with the fields that place has.
func (p *Panel) json(kind Kind, source, place object) object {
	target := object{"refId": "A", "datasource": source, "expr": p.Query, "legendFormat": p.Legend}
	fields := object{"unit": p.Unit, "min": 0}
	options := object{}
	switch kind {
	case TimeSeries:
		options = object{"legend": object{"displayMode": "list", "placement": "bottom"}, "tooltip": object{"mode": "multi", "sort": "desc"}}
	case Stat:
		target["instant"] = true
		options = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "graphMode": "none"}
	case Table:
		target["instant"], target["format"] = true, "table"
		delete(fields, "min")
	}
	all := object{
		"title": p.Title, "description": p.About, "type": string(kind), "datasource": source, "targets": []object{target},
		"fieldConfig": object{"defaults": fields, "overrides": []object{}}, "options": options,
	}
	for name, value := range place {
		all[name] = value
	}
	return all
}

// ofWeir limits series of client_golang's own metrics to those of weir.
const ofWeir = " and on (job, instance) weir_build_info"

// All returns the dashboards.
func All() []Dashboard {
	return []Dashboard{
		{
			"weir-cluster", "weir / Cluster", "What nodes, namespaces and workloads use, and what they request.", []Row{
				{Stat, []Panel{
					{"CPU used", "Of what pods may request on all nodes.", "percentunit", "sum(weir_node_cpu_usage_cores) / sum(weir_node_cpu_allocatable_cores)", ""},
					{"CPU requested", "Of what pods may request on all nodes.", "percentunit", "sum(weir_node_cpu_request_cores) / sum(weir_node_cpu_allocatable_cores)", ""},
					{"Memory used", "The working set, of what pods may request on all nodes.", "percentunit", "sum(weir_node_memory_working_set_bytes) / sum(weir_node_memory_allocatable_bytes)", ""},
					{"Memory requested", "Of what pods may request on all nodes.", "percentunit", "sum(weir_node_memory_request_bytes) / sum(weir_node_memory_allocatable_bytes)", ""},
					{"Pods", "", "none", "count(weir_pod_info)", ""},
					{"Nodes", "", "none", "count(weir_node_cpu_allocatable_cores)", ""},
				}},
				{TimeSeries, []Panel{
					{"CPU by node", "Of what pods may request there.", "percentunit", "weir_node_cpu_usage_cores / on (node) weir_node_cpu_allocatable_cores", "{{node}}"},
					{"Memory by node", "The working set, of what pods may request there.", "percentunit", "weir_node_memory_working_set_bytes / on (node) weir_node_memory_allocatable_bytes", "{{node}}"},
				}},
				{TimeSeries, []Panel{
					{"CPU by namespace", "", "none", `weir_namespace_cpu_usage_cores{namespace=~"$namespace"}`, "{{namespace}}"},
					{"Memory by namespace", "The working set.", "bytes", `weir_namespace_memory_working_set_bytes{namespace=~"$namespace"}`, "{{namespace}}"},
				}},
				{TimeSeries, []Panel{
					{"Workloads with the most CPU", "", "none", `topk(10, sum by (namespace, workload) (weir_pod_cpu_usage_cores{namespace=~"$namespace"} * on (namespace, pod) group_left (workload) weir_pod_info{workload!=""}))`, "{{namespace}}/{{workload}}"},
					{"Workloads with the most memory", "The working set.", "bytes", `topk(10, sum by (namespace, workload) (weir_pod_memory_working_set_bytes{namespace=~"$namespace"} * on (namespace, pod) group_left (workload) weir_pod_info{workload!=""}))`, "{{namespace}}/{{workload}}"},
				}},
				{TimeSeries, []Panel{
					{"CPU of what is requested", "Far below 100%: requests that nobody uses (weir resize recommend).", "percentunit", `sum by (namespace) (weir_pod_cpu_usage_cores{namespace=~"$namespace"}) / sum by (namespace) (weir_pod_cpu_request_cores)`, "{{namespace}}"},
					{"Memory of what is requested", "", "percentunit", `sum by (namespace) (weir_pod_memory_working_set_bytes{namespace=~"$namespace"}) / sum by (namespace) (weir_pod_memory_request_bytes)`, "{{namespace}}"},
				}},
				{TimeSeries, []Panel{
					{"Time lost by CPU limits", "The ten containers that their own CPU limits hold back most, by the share of the time in which they stand still. It needs the endpoint cadvisor, or agents. `kubectl weir explain slow` shows what a pod waits for.", "percentunit", `topk(10, max by (namespace, pod, container) (rate(weir_container_cpu_throttled_seconds_total{namespace=~"$namespace"}[$__rate_interval]) / clamp_min(rate(weir_container_cpu_throttled_seconds_total{namespace=~"$namespace"}[$__rate_interval]) + rate(weir_container_cpu_usage_seconds_total{namespace=~"$namespace"}[$__rate_interval]), 1)) > 0)`, "{{namespace}}/{{pod}} {{container}}"},
				}},
				{TimeSeries, []Panel{
					{"Network received", "", "Bps", `sum by (namespace) (rate(weir_pod_network_receive_bytes_total{namespace=~"$namespace"}[$__rate_interval]))`, "{{namespace}}"},
					{"Network sent", "", "Bps", `sum by (namespace) (rate(weir_pod_network_transmit_bytes_total{namespace=~"$namespace"}[$__rate_interval]))`, "{{namespace}}"},
				}},
			},
		},
		{
			"weir-missing", "weir / What is missing", "Which numbers are missing or in doubt, and how nodes are read. `kubectl weir explain missing` shows what to do.", []Row{
				{Stat, []Panel{
					{"Nodes that are read", "", "none", "count(weir_node_up == 1)", ""},
					{"Nodes that are not", "", "none", "count(weir_node_up == 0) or vector(0)", ""},
					{"Pods with CPU", "Of all that the API server has.", "percentunit", "count(weir_pod_cpu_usage_cores) / count(weir_pod_info)", ""},
				}},
				{TimeSeries, []Panel{
					{"Reasons, of pods", "How many pods have each reason. docs/reasons.md explains them.", "none", `sum by (reason) (weir_verdicts{level="pod"})`, "{{reason}}"},
					{"Reasons, of nodes", "", "none", `sum by (reason) (weir_verdicts{level="node"})`, "{{reason}}"},
				}},
				{TimeSeries, []Panel{
					{"Slowest nodes", "Time the last read of a node took.", "s", "topk(10, weir_node_read_duration_seconds)", "{{node}}"},
					{"Clocks", "How far a node's clock is from weir's, the ten that are farthest.", "s", "topk(10, abs(weir_node_clock_ahead_seconds))", "{{node}}"},
				}},
				{Table, []Panel{
					{"Nodes that are not read", "", "none", "weir_node_up == 0", ""},
				}},
			},
		},
		{
			"weir-itself", "weir / weir itself", "What weir does, and what it costs.", []Row{
				{TimeSeries, []Panel{
					{"CPU", "", "none", "rate(process_cpu_seconds_total[$__rate_interval])" + ofWeir, "{{instance}}"},
					{"Memory", "", "bytes", "process_resident_memory_bytes" + ofWeir, "{{instance}}"},
				}},
				{TimeSeries, []Panel{
					{"Reads", "Reads that were begun, in each second.", "none", "sum by (instance, kind) (rate(weir_rounds_total[$__rate_interval]))", "{{instance}} {{kind}}"},
					{"Sources that fail", "", "none", "weir_sources_failing", "{{instance}} {{kind}}"},
				}},
				{TimeSeries, []Panel{
					{"Time of stages", "Of each batch, 99% take less.", "s", "histogram_quantile(0.99, sum by (le, stage) (rate(weir_stage_duration_seconds_bucket[$__rate_interval])))", "{{stage}}"},
					{"Reads at one time", "", "none", "weir_reads_in_flight", "{{instance}}"},
				}},
				{TimeSeries, []Panel{
					{"What waits for sinks", "Batches.", "none", "weir_sink_queue_length", "{{instance}} {{sink}}"},
					{"Series of /metrics/cluster", "", "none", "weir_exposition_series", "{{instance}}"},
				}},
			},
		},
		{
			"weir-autoscalers", "weir / Autoscalers", "What weir decides about HorizontalPodAutoscalers and Autoscalers. It needs --shadow-hpa or --autoscalers. `kubectl weir explain hpa` shows one decision, step by step.", []Row{
				{Stat, []Panel{
					{"Autoscalers", "Objects that weir decides about.", "none", "sum(max by (kind) (weir_autoscaler_watched))", ""},
					{"Without a decision", "Autoscalers that have no metrics or no scale to decide by.", "none", "sum(max by (kind) (weir_autoscaler_watched)) - (count(max by (kind, namespace, name) (weir_autoscaler_desired_replicas)) or vector(0))", ""},
					{"Conflicts", "Autoscalers that do nothing, because another autoscaler scales their target.", "none", "max(weir_autoscaler_conflicts)", ""},
					{"Differences", "Decisions in the last hour that differ from what the controller of HorizontalPodAutoscalers did. They need --shadow-hpa.", "none", "sum(max by (reason) (increase(weir_autoscaler_shadow_differences_total[1h])))", ""},
				}},
				{TimeSeries, []Panel{
					{"Replicas", "What the targets ask for now.", "none", `max by (kind, namespace, name) (weir_autoscaler_current_replicas{namespace=~"$namespace"})`, "{{namespace}}/{{name}}"},
					{"Replicas that are wanted", "What the last decision asks for. It differs for as long as limits and windows of the behavior hold the scale back.", "none", `max by (kind, namespace, name) (weir_autoscaler_desired_replicas{namespace=~"$namespace"})`, "{{namespace}}/{{name}}"},
				}},
				{TimeSeries, []Panel{
					{"Decisions", "In each second, by what they ask for. none: there was nothing to decide by.", "none", "max by (kind, decision) (rate(weir_autoscaler_decisions_total[$__rate_interval]))", "{{kind}} {{decision}}"},
					{"Changes of scale", "That weir wrote, in each hour.", "none", "sum by (direction) (increase(weir_autoscaler_rescales_total[1h]))", "{{direction}}"},
				}},
				{TimeSeries, []Panel{
					{"Failures", "In each second, by what failed.", "none", "max by (reason) (rate(weir_autoscaler_errors_total[$__rate_interval]))", "{{reason}}"},
					{"Time of a decision", "99% take less.", "s", "histogram_quantile(0.99, sum by (le, kind) (rate(weir_autoscaler_sync_duration_seconds_bucket[$__rate_interval])))", "{{kind}}"},
				}},
				{TimeSeries, []Panel{
					{"Agreement with Kubernetes", "Share of the decisions in the last hour that agree with what the controller of HorizontalPodAutoscalers did.", "percentunit", "sum(increase(weir_autoscaler_shadow_agreements_total[1h])) / (sum(increase(weir_autoscaler_shadow_agreements_total[1h])) + sum(increase(weir_autoscaler_shadow_differences_total[1h])))", "agreed"},
					{"Autoscalers that wait", "For a worker.", "none", "max by (instance) (weir_autoscaler_queue_length)", "{{instance}}"},
				}},
			},
		},
		{
			"weir-eviction", "weir / Eviction", "How close nodes are to evicting pods. It needs weir's agents, and a Prometheus that scrapes their /metrics.", []Row{
				{TimeSeries, []Panel{
					{"Left, by signal", "The least of all nodes.", "percentunit", "min by (signal) (weir_eviction_signal_available / on (job, instance, signal) weir_eviction_signal_capacity)", "{{signal}}"},
					{"Nodes nearest to a threshold", "The distance of memory.available; 0 or less: crossed.", "bytes", `bottomk(10, weir_eviction_signal_distance{signal="memory.available"})`, "{{instance}} {{kind}}"},
				}},
				{TimeSeries, []Panel{
					{"Evictions", "What became of decisions, in each hour.", "none", "sum by (outcome) (increase(weir_eviction_outcomes_total[1h])) or vector(0)", "{{outcome}}"},
					{"Rounds", "Reads of the node that ended with a decision, by what began them, in each second.", "none", "sum by (source) (rate(weir_eviction_rounds_total[$__rate_interval]))", "{{source}}"},
				}},
				{TimeSeries, []Panel{
					{"Time of a read", "99% take less.", "s", "histogram_quantile(0.99, sum by (le) (rate(weir_eviction_read_seconds_bucket[$__rate_interval])))", "all nodes"},
					{"CPU of agents", "", "none", "rate(process_cpu_seconds_total[$__rate_interval]) and on (job, instance) weir_eviction_memory_polls_total", "{{instance}}"},
				}},
			},
		},
	}
}
