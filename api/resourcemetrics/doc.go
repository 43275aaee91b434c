// Package resourcemetrics serves metrics.k8s.io/v1beta1, the API that kubectl
// top, the HorizontalPodAutoscaler and the VerticalPodAutoscaler read, on a
// generic API server: the CPU and memory use of nodes (NodeMetrics) and of
// pods, container by container (PodMetrics), to get and to list.
//
// # What is served
//
// A pod is served whole or not at all, which the pipeline has decided: its own
// sample has both numbers only if every container that must run has. It is
// served while the API server, as weir knows it now, has a pod of that name
// and UID whose phase is Running. What the API server does not tell (nil Facts:
// kubelets without a cluster) cannot hold a number back, and such pods and
// nodes have no labels.
//
// Items come by namespace and name, a pod's containers by name. CPU is in
// nanocores, memory in bytes (the working set), each rounded to the nearest.
// Timestamp and window are those of the CPU rate; of a pod, those of its
// container with the oldest.
//
// # What is not there
//
//   - GET of a pod the API server does not have: 404, in its own words.
//   - GET of a pod without metrics: 404 with the reason in words and by name,
//     which also stands in details.causes for programs.
//   - LIST: 200 with what there is. Where a running pod, or a node, that should
//     be measured is not, up to three Warning headers tell how many, why, and
//     which command tells more. Pods that wait or have finished, and nodes the
//     configuration leaves out, are no cause for a warning.
//   - Nothing has been read yet, or the API server has not been heard: 503 with
//     Retry-After. client-go waits and asks again, so that a kubectl top during
//     a restart is a second late rather than wrong; an empty list would read as
//     "nothing runs".
//
// # Differences from metrics-server 0.9
//
//   - A pod with a container whose counter fell is not served at all, rather than
//     without that container.
//   - A read that fails takes nothing away at once: the last numbers stand, with
//     their timestamp, for three resolutions or a minute, whichever is longer.
//   - The reasons, the warnings and the 503 above; metrics-server answers with
//     a bare 404, a short list, and an empty one.
//   - A 404 names the pod as "NAME", not "NAMESPACE/NAME".
//   - A LIST's containers are in order, and CPU is rounded, not cut: the two
//     differ by at most one nanocore.
//   - A table has its columns even when it is empty.
//   - A field selector on nodes' metadata.namespace is an error (400), for it can
//     match nothing.
//   - GET of a node that the node selector leaves out says so.
//   - Only what the API server still knows as Running, by the same UID, is
//     served: a pod that has been replaced by one of its name does not show the
//     old one's numbers.
//   - CBOR is served too.
//   - The histogram of ages is called weir_api_metric_freshness_seconds and has
//     the resource as a label.
//
// As in metrics-server, limit, continue and resourceVersion are accepted and
// have no effect (a LIST is always one whole snapshot and no token is ever
// given out), creationTimestamp is the time of the answer, and watching is not
// supported (405).
//
// # How it is answered
//
// A GET or LIST in plain JSON or protobuf, with at most a label selector, is appended to the
// response in chunks, without API objects. The bytes are those the library would write. Such
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
