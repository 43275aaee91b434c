//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/weir-metrics/weir/test/simulator"
)

const (
	asJSON     = "application/json"
	asProtobuf = "application/vnd.kubernetes.protobuf"
	podsPath   = "/apis/metrics.k8s.io/v1beta1/pods"
	nodesPath  = "/apis/metrics.k8s.io/v1beta1/nodes"
)

// A request is a kind of request that both servers get.
type request struct {
	key, title             string
	path, accept, encoding string
	bound                  float64 // largest ratio of weir's time to metrics-server's; 0 for none
}

// kinds returns all kinds of requests, without paths.
func kinds() []request {
	return []request{
		{key: "list json", title: "LIST all pods, JSON", accept: asJSON, bound: 1. / 8},
		{key: "list json gzip", title: "LIST all pods, JSON, gzip", accept: asJSON, encoding: "gzip", bound: 1. / 3},
		{key: "list protobuf", title: "LIST all pods, protobuf", accept: asProtobuf, bound: 1. / 8},
		{key: "list protobuf gzip", title: "LIST all pods, protobuf, gzip", accept: asProtobuf, encoding: "gzip", bound: 1. / 3},
		{key: "list label", title: "LIST one application by label", accept: asJSON, bound: 1. / 2},
		{key: "get", title: "GET one pod", accept: asJSON},
		{key: "list nodes", title: "LIST nodes", accept: asJSON},
	}
}

// requests returns all kinds of requests, with paths for this fleet.
func requests(fleet *simulator.Fleet) []request {
	namespace, app, pod := application(fleet)
	inNamespace := "/apis/metrics.k8s.io/v1beta1/namespaces/" + namespace + "/pods"
	all := kinds()
	for i := range all {
		switch r := &all[i]; r.key {
		case "list label":
			r.path = inNamespace + "?labelSelector=" + url.QueryEscape("app="+app)
		case "get":
			r.path = inNamespace + "/" + pod
		case "list nodes":
			r.path = nodesPath
		default:
			r.path = podsPath
		}
	}
	return all
}

// application returns an application and one of its pods. Its number of pods is
// the median of all applications.
func application(fleet *simulator.Fleet) (namespace, app, pod string) {
	type of struct{ namespace, app string }
	pods := map[of][]string{}
	for _, n := range fleet.Nodes() {
		for i, p := range n.Pods() {
			if i < 2 || !p.Bound(fleet.Start()) { // DaemonSets' and static pods, and pods that start later
				continue
			}
			o := of{p.Namespace, label(p, fleet.Start())}
			pods[o] = append(pods[o], p.Name)
		}
	}
	all := make([]of, 0, len(pods))
	for o := range pods {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b of) int {
		return cmp.Or(cmp.Compare(len(pods[a]), len(pods[b])), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.app, b.app))
	})
	if len(all) == 0 {
		return "kube-system", "node-agent", fleet.Nodes()[0].Pods()[0].Name
	}
	o := all[len(all)/2]
	return o.namespace, o.app, pods[o][0]
}

// burst sends requests of one kind, one at a time. It records how long each
// took, the size of the answer, and the server's CPU time per request, less the
// CPU time that the server uses without requests.
func (t *target) burst(ctx context.Context, r request, o Options, idle float64, turn *Turn) (last answer, err error) {
	var took []float64
	before, err := t.Usage()
	if err != nil {
		return last, err
	}
	began := time.Now()
	for len(took) < o.Requests || time.Since(began) < o.Burst {
		if last, err = t.ask(ctx, r.path, r.accept, r.encoding, last.body); err != nil {
			return last, err
		}
		took = append(took, float64(last.took)/float64(time.Millisecond))
	}
	lasted := time.Since(began)
	after, err := t.Usage()
	if err != nil {
		return last, err
	}
	if len(last.body) == 0 {
		return last, fmt.Errorf("ask %s for %s: the answer is empty", t.Name, r.path)
	}
	turn.Requests[r.key] = took
	turn.set(r.key+" bytes", float64(len(last.body)))
	turn.set(r.key+" cpu", ((after.CPU-before.CPU).Seconds()-idle*lasted.Seconds())*1000/float64(len(took)))
	return last, nil
}
