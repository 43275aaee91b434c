// Package ui is the page: what a person sees who opens weir in a browser. Nodes
// worst first, namespaces, pods and containers with what they use now and used in
// the last fifteen minutes, what is missing and why, and how sources and sinks
// fare.
//
// # What it promises
//
//   - One handler, one address. Every view is a query string (?node=n1,
//     ?pod=shop/web), and every link is nothing but one, so the page works
//     wherever it is put: below /ui/, through kubectl proxy, through a Service's
//     proxy.
//   - HTML from this binary and nothing else: no script, no file beside it, no
//     address of anyone else. The Content-Security-Policy says so to the
//     browser, and the style sheet is the only thing it allows.
//   - A page is bounded: lists are cut and say how much more there is, whatever
//     the size of the cluster.
//   - What it says about why comes from packages explain, autoscaler/decisionreport and
//     eviction/evictionreport, word for word. Here only numbers are turned into text and
//     lines.
//
// # Views
//
//	?                        what is missing and why, nodes worst first, namespaces
//	?nodes  ?namespaces      the same lists, page by page
//	?node=n1                 how it is read, what it has, its pods and cgroups
//	?namespace=shop          what is missing there, its pods
//	?pod=shop/web            the explanation in full, containers, instances
//	?container=shop/web/app  the same of one container
//	?missing                 everything that is missing
//	?sources                 sources and sinks
//	?autoscalers             what autoscalers decide, and what they lack
//	?hpa=shop/web            the last decision in full; ?autoscaler= of an Autoscaler
//	?eviction=n1             how near it is to evicting pods, who would go next, and why
//	?q=text                  everything with text in its name
//
// Beside a view, sort=cpu|memory|name orders its lists, from=100 goes on in a long
// one, list=pods|cgroups shows one list of a node alone, q=text filters, and
// refresh=off keeps the page from being asked for again by itself.
//
// # Who may see what
//
// The package authorizes nobody. Shows tells what an answer shows, by the same
// reading of the query that the handler goes by. The page of a namespace, pod or
// container shows nothing of other namespaces, and no error that a read ended with:
// errors name addresses.
package ui
