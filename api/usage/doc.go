// Package usage serves what nodes, pods, containers and cgroups use now, as JSON for people and
// small programs. For each missing number it explains why it is missing. "weir top" reads this API.
//
// # Request
//
//	GET /apis/weir.dev/v1alpha1/{nodes|pods|containers|cgroups}
//	GET /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/{pods|containers}
//
// The paths are those of a Kubernetes API group, so that an API server can forward requests with
// the name of the caller. NAMESPACE is a name, not a pattern.
//
// Query parameters, all optional. All except labelSelector, metrics and history are patterns in which * means
// any characters and ? means one:
//
//	namespace  of the pod, if the path names none
//	node       the node of the pod, container or cgroup
//	pod        the pod's name
//	name       the entity's own name: of the node, pod or container, or a cgroup's path
//	labelSelector
//	           the labels of the pod, or of the node in a list of nodes, as in
//	           Kubernetes ("app=web,tier!=cache"). Cgroups have none.
//	metrics    names or patterns of further metrics, comma-separated, by the
//	           catalogue ("memory/rss,network/*_rate"). Default: every gauge
//	           and rate. Empty: none.
//	history    how many of the last readings of CPU each item has, and of
//	           memory each node and cgroup: 0 to 60
//
// An unknown parameter is an error, because a misspelt filter would return everything. Only limit
// and timeout, which "kubectl get" adds, are ignored.
//
// # Answer
//
// The answer is a List. Its order is always the same: by namespace, pod, name and node; cgroups by
// node and path. A missing number is absent, never 0. Item.Reasons then has its reason, a sentence
// and, if it is known, the time when the number may come. The answer is streamed, and compressed
// with gzip for clients that accept it. An error is a Problem with a fitting status.
//
// The samples come from a SampleReader; package usage does not measure.
//
// # Files
//
//   - types.go: the answer as JSON; client.go: the client that reads it.
//   - query.go: paths and parameters; rights.go: who may read them; handler.go: the answer as a stream.
//   - rows.go: the samples and verdicts of a list; item.go: one item of them.
package usage
