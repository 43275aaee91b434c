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
// What nearly everybody asks, a GET or LIST in plain JSON or protobuf, perhaps by label,
// is appended straight from what the view says, in chunks, to the byte as the library
// would write the objects. It still passes through all of the library's filters and
// counts among its requests. All else (tables, CBOR, further options, watching,
// errors, audits that want the answer) the library's handlers answer with objects.
//
// One LIST is one snapshot and one goroutine: no lock is held, so no read of a node waits
// for it, and memory is used again, so that it sets off no collection of its own. For a
// minute it leaves behind which pods there were and in which order, so that the next one
// need not look up and sort what did not change.
//
// options.go says what the package needs and reads. choice.go is what a request selects,
// read.go turns a view into the compact readings of readings.go, sorted by sorted.go, or
// by what roll.go kept of the last LIST. Readings are all that is ever written: by
// direct.go, through encoding.go, its two encodings and stream.go; or as objects.go and
// table.go make API objects of them for storage_pods.go and storage_nodes.go, the two
// resources as the API server calls them, with api.go for what
// they share. missing.go asks for reasons, warnings.go says them in a LIST, and
// openapi.go describes the types.
package resourcemetrics
