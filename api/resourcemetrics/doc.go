// Package resourcemetrics serves metrics.k8s.io, the API that kubectl top, the
// HorizontalPodAutoscaler and the VerticalPodAutoscaler read, on a generic API server: GET and
// LIST of the CPU and memory usage of nodes (NodeMetrics) and of pods, for each container
// (PodMetrics).
//
// # Versions
//
// Two versions are served: v1, which is stable since Kubernetes 1.37 (KEP-5207), and v1beta1.
// They have the same fields, and one request in either is answered from the same data by the
// same code. Only the name of the version in the answer differs.
//
// # What is served
//
// A pod is served completely or not at all. The pipeline decides this: the pod's own sample has
// both numbers only if every required container has. A pod is served while the API server, as
// weir knows it now, has a pod of that name and UID with the phase Running. A container whose run
// ended after it was measured has no number: the answer is without it, or without the pod if the
// container runs again. Without an API server (nil Facts: kubelets without a cluster) all measured
// pods and nodes are served, without labels.
//
// An Ambiguous number may be of another instance. The API has no field for that, so such a pod is
// missing here. custom.metrics.k8s.io and Heapster's model serve it, and explanations mark it.
//
// Items are sorted by namespace and name, a pod's containers by name. CPU is in nanocores,
// memory in bytes (the working set), each rounded to the nearest integer. Swap in use, in bytes, is
// the resource "swap" (hasSwap): of nodes that have swap space, by the API server's
// status.nodeInfo.swap or because something uses it, and absent of all others. Timestamp and window
// are those of the CPU rate, for a pod those of the container with the oldest one.
//
// # What is missing
//
//   - GET of a pod that the API server does not have: 404, with the API server's text.
//   - GET of a pod without metrics: 404 with the reason as text and by name. For programs the
//     reason is also in details.causes.
//   - LIST: 200 with the objects that have metrics. If a running pod or a node has none and
//     should have, up to three Warning headers describe how many, why, and which command explains
//     more. Pods that wait or have finished, and nodes that the configuration excludes, cause no
//     warning.
//   - No read has succeeded yet, or the API server has not answered weir yet: 503 with
//     Retry-After. client-go waits and asks again, so during a restart kubectl top is a second
//     late and not wrong. An empty list would mean that nothing runs.
//
// # Differences from metrics-server 0.9
//
//   - A pod with a container that had a counter reset is not served at all. metrics-server serves it
//     without that container.
//   - After a failed read the last known values are served, with their timestamp, for three
//     intervals or a minute, whichever is longer.
//   - The reasons, the warnings and the 503 above. metrics-server answers with a plain 404, a
//     shorter list, or an empty list.
//   - A 404 names the pod as "NAME", not "NAMESPACE/NAME".
//   - The containers in a LIST are sorted, and CPU is rounded, not cut: the two differ by at most
//     one nanocore.
//   - A table has its columns even when it is empty.
//   - GET of a node that the node selector excludes reports that.
//   - A pod is served only while the API server has it as Running, with the same UID. After a pod
//     was replaced by one of its name, the old numbers are not served.
//   - CBOR is served too, and swap, which "kubectl top --show-swap" prints since Kubernetes 1.37.
//   - v1 is served besides v1beta1.
//   - The histogram of ages is called weir_api_metric_freshness_seconds and has the resource as a
//     label.
//
// As in metrics-server, limit, continue and resourceVersion are accepted and have no effect (a
// LIST is always one complete snapshot, and there are no continue tokens), creationTimestamp is
// the time of the answer, and watches are not supported (405).
//
// # How it is answered
//
// A GET or LIST in plain JSON or protobuf, with at most a label selector, is appended to the
// response in chunks, without API objects, for every version by the same encoder. The bytes are those the library would write. Such
// a request passes through all filters of the library and counts among its requests. The
// library's handlers answer everything else with objects: tables, CBOR, further options,
// watches, errors, and audits that record the response.
//
// One LIST is one snapshot and one goroutine. It takes no lock, so it delays no read of a
// node, and it reuses memory, so it causes no garbage collection of its own. It keeps its
// order of pods for a minute, so that the next LIST looks up and sorts only what changed.
//
// # Files
//
//   - install.go: Options, the UsageReader that the API reads, Install.
//   - storage.go: the resources nodes and pods, as the API server calls them.
//   - read.go: listFilter, what a request selects; usageReader, which reads it.
//     podorder.go: the order of pods that one LIST leaves to the next.
//   - readings.go: usageList, the result: a few slices, sorted.
//   - direct.go: which requests are encoded directly. encoding.go: how a LIST is encoded, in
//     JSON and in protobuf. quantity.go: "1500n", "4Ki". stream.go: chunks and gzip.
//   - objects.go: API objects and tables, for all other requests.
//   - missing.go: the reason of a 404 and the warnings of a LIST.
//   - openapi.go: the types in OpenAPI.
package resourcemetrics
