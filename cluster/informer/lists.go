package informer

import (
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster"
)

// FactsFromList returns the synced facts of nodes and pods at the given time, as if weir had always
// watched them: each pod is known since it was created. Either list may be nil.
func FactsFromList(nodes *v1.NodeList, pods *v1.PodList, at time.Time) *cluster.Facts {
	c := cluster.FactsChange{Synced: true, At: at}
	if nodes != nil {
		for i := range nodes.Items {
			c.Nodes = append(c.Nodes, nodeFacts(&nodes.Items[i]))
		}
	}
	if pods != nil {
		shared := newPool()
		for i := range pods.Items {
			p := &pods.Items[i]
			known := p.CreationTimestamp.Time
			if known.IsZero() || known.After(at) {
				known = at
			}
			c.Pods = append(c.Pods, podFacts(p, known, shared))
		}
	}
	var none *cluster.Facts
	return none.With(c)
}

// FactsFromPods is FactsFromList for a PodList in JSON, as a kubelet's /pods and kubectl get pods
// --output=json return it, without nodes.
func FactsFromPods(podList []byte, at time.Time) (*cluster.Facts, error) {
	var pods v1.PodList
	if err := json.Unmarshal(podList, &pods); err != nil {
		return nil, fmt.Errorf("decode pod list: %w", err)
	}
	return FactsFromList(nil, &pods, at), nil
}
