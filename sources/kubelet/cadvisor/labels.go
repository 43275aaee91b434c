package cadvisor

import "github.com/weir-metrics/weir/sources/kubelet/payload"

// labels has the labels of a line that weir uses.
type labels struct {
	id, name, namespace, pod, container string // these name the cgroup
	iface, device, accelerator          string // these name a part of it
	failure, scope                      string
}

// parse parses raw, which payload.Scanner.Labels returned. It returns false if raw is not a list
// of labels. Kubelets before 1.16 write pod_name and container_name. A cAdvisor that is not a
// kubelet's writes the runtime's labels with a prefix.
func (l *labels) parse(raw []byte) bool {
	return payload.EachLabel(raw, func(name []byte, value string) {
		switch string(name) {
		case "id":
			l.id = value
		case "name":
			l.name = value
		case "namespace", "container_label_io_kubernetes_pod_namespace":
			l.namespace = value
		case "pod", "pod_name", "container_label_io_kubernetes_pod_name":
			l.pod = value
		case "container", "container_name", "container_label_io_kubernetes_container_name":
			l.container = value
		case "interface":
			l.iface = value
		case "device":
			l.device = value
		case "acc_id":
			l.accelerator = value
		case "failure_type":
			l.failure = value
		case "scope":
			l.scope = value
		}
	})
}
