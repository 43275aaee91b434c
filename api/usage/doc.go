// Package usage serves what nodes, pods, containers and cgroups use right now,
// as JSON for people and small programs, and says of every number that is not
// there why it is not. "weir top" reads it.
//
// # Request
//
//	GET /apis/weir.dev/v1alpha1/{nodes|pods|containers|cgroups}
//	GET /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/{pods|containers}
//
// The paths are those of a Kubernetes API group, so that an API server can hand
// requests on and say who asks. NAMESPACE is no pattern.
//
// Query parameters, all optional, all but metrics patterns in which * stands
// for any characters and ? for one:
//
//	namespace  of the pod, where the path names none
//	node       the node it runs on
//	pod        the pod's name
//	name       its own name: of the node, pod or container, or a cgroup's path
//	metrics    names or patterns of further metrics, comma-separated, by the
//	           catalogue ("memory/rss,network/*_rate"). Left out: every gauge
//	           and rate. Empty: none.
//
// A parameter of another name is an error, for a misspelt filter would answer
// with everything. Only limit and timeout, which "kubectl get" adds, are ignored.
//
// # Answer
//
// A List, in one order always: by namespace, pod, name and node; cgroups by
// node and path. A number that is absent is absent, never 0, and Item.Reasons
// then holds its reason, a sentence and, where one is foreseen, the time at
// which the number may come. The answer is streamed, and compressed with gzip
// for those who accept it. Errors are a Problem with a status that fits.
//
// Package usage leaves to others where its samples come from: it reads a View.
package usage
