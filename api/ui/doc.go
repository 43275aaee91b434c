// Package ui serves the web page of weir: nodes, namespaces, pods and containers with their use
// now and in the last fifteen minutes, what is missing and why, and the state of sources and
// sinks.
//
// # What it promises
//
//   - One handler, one address. Every view is a query string (?node=n1, ?pod=shop/web), and
//     every link is only a query, so the page works below any path: below /ui/, through
//     kubectl proxy, through the proxy of a Service.
//   - The HTML is complete without script: no other file, no foreign address. One script loads
//     the newest state of an open page. The Content-Security-Policy allows only that script and
//     the style sheet, by their hashes.
//   - Every page is bounded: a list is cut and describes how many items are left.
//   - Reasons come from packages explain, autoscaler/decisionreport and
//     eviction/evictionreport, word for word. This package only formats numbers and draws
//     lines.
//
// # Views
//
//	?                        what is missing and why, nodes with problems first, namespaces
//	?nodes  ?namespaces      the same lists, page by page
//	?workloads  ?pods        all workloads, all pods
//	?node=n1                 its sources, use, pods and cgroups
//	?namespace=shop          what is missing in it, its workloads and pods
//	?workload=shop/Deployment/web
//	                         what its pods use together, what is missing of them, and its autoscalers
//	?pod=shop/web            the explanation in full, containers, instances
//	?container=shop/web/app  the same for one container
//	?missing                 everything that is missing
//	?sources                 sources and sinks
//	?autoscalers             the decisions of autoscalers, and their missing metrics
//	?hpa=shop/web            the last decision in full; ?autoscaler= for an Autoscaler
//	?eviction=n1             how close a node is to evicting pods, which pod is next, and why
//	?events=Pod/shop/web     the last Events on an object; of a node, ?events=Node/default/n1
//	?q=text                  everything with text in its name
//
// The pages of a node, pod and container have a chart of every metric with a history: the last
// fifteen minutes, or span=1h|6h|1d|7d if weir remembers that.
//
// A view can have more parameters: sort=cpu|memory|name|pods|cpu-share|memory-share sorts its
// lists, from=100 continues a long list, list=pods|cgroups shows one list of a node and
// list=workloads one of a namespace, q=text filters by name, label=app=web and reason=NodeTimeout
// filter pods, and refresh=off stops the automatic refresh.
//
// The title begins with the number of things that are wrong, of those on the page: "(3) Overview".
//
// # Who may see what
//
// The package does not authorize. Rights returns the rights that a request needs; it parses the
// query as the handler does. The page of a namespace, pod
// or container shows nothing of other namespaces and no read errors, because errors contain
// addresses.
//
// README.md lists the files.
package ui
