package shared

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// meters are the counters of reads.
type meters struct{ self, peer, late prometheus.Counter }

func newMeters(x *Exchange) *meters {
	factory := promauto.With(x.o.Registerer)
	reads := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_shared_reads_total",
		Help: "Reads of nodes that replicas share: by this replica as the owner of the node (self), by another replica (peer), or by this replica because nothing arrived from the owner in time (late).",
	}, []string{"by"})
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_shared_members", Help: "Replicas that share the reading, this one included.",
	}, func() float64 { return float64(len(x.members.Load().all)) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_shared_peers_heard", Help: "Other replicas whose reads arrive.",
	}, func() float64 {
		n := 0
		for _, p := range x.members.Load().peers {
			if p.lost() != nil {
				n++
			}
		}
		return float64(n)
	})
	return &meters{reads.WithLabelValues("self"), reads.WithLabelValues("peer"), reads.WithLabelValues("late")}
}
