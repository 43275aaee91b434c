package resize

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
)

// BenchmarkRecommend measures one pod of two containers, with 15 minutes of readings.
func BenchmarkRecommend(b *testing.B) {
	d := dice{rand.New(rand.NewPCG(7, 8))}
	points := make([]UsagePoint, 60) // 15 minutes
	for i := range points {
		points[i] = UsagePoint{At: begin.Add(time.Duration(i) * 15 * time.Second), Value: d.Float64() / 10}
	}
	p := &PodResources{Phase: string(cluster.Running), Containers: []ContainerResources{
		{Name: "app", Running: true, Requests: Amounts{Of(500), Of(512 << 20)}},
		{Name: "log", Running: true, Requests: Amounts{Of(500), Of(512 << 20)}},
	}}
	o := Defaults()
	b.ReportAllocs()
	for b.Loop() {
		Recommend(p, func(string, Resource) []UsagePoint { return points }, o)
	}
}
