package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
	"github.com/weir-metrics/weir/autoscaler/watcher"
)

// unchanging is a fixture in which nothing changes. It allocates nothing for its answers.
type unchanging struct {
	*fixture
	pods    []autoscaler.PodInput
	samples []autoscaler.PodSample
}

// Pods implements Metrics.
func (u *unchanging) Pods(string, labels.Selector) ([]autoscaler.PodInput, error) { return u.pods, nil }

// Readings implements Metrics.
func (u *unchanging) Readings(_ context.Context, _ string, _ labels.Selector, _ *autoscalingv2.HorizontalPodAutoscalerSpec, _ []autoscaler.PodInput) func(int) autoscaler.Reading {
	return func(int) autoscaler.Reading { return autoscaler.Reading{At: time.Now(), Samples: u.samples} }
}

// BenchmarkSync10000 measures a period of 10,000 Autoscalers of ten pods each, in one goroutine. It
// includes only the controller, without the network and the reads of metrics. 667 objects are due
// in a second.
func BenchmarkSync10000(b *testing.B) {
	const objects = 10_000
	for _, mode := range []v1alpha1.Mode{v1alpha1.Active, v1alpha1.DryRun} {
		b.Run(string(mode), func(b *testing.B) {
			w := newFixture()
			w.set("web", 10, 5000)
			u := &unchanging{fixture: w}
			var err error
			if u.pods, err = w.Pods("", labels.Everything()); err != nil {
				b.Fatal(err)
			}
			u.samples = w.Readings(b.Context(), "", labels.Everything(), nil, u.pods)(0).Samples
			client := fake.NewClientset()
			watch, err := watcher.New(watcher.Options{Client: client})
			if err != nil {
				b.Fatal(err)
			}
			c, err := New(Options{Act: true, Watcher: watch, Client: client, Autoscalers: &scalers{}, Scales: w, Metrics: u, IsLeader: func() bool { return false }})
			if err != nil {
				b.Fatal(err)
			}
			c.catalog.setListed(hpaKind)
			var all []*scalingObject
			for n := range objects {
				a := &v1alpha1.Autoscaler{
					ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("ns%d", n), Name: fmt.Sprintf("web%d", n), UID: types.UID(fmt.Sprint(n)), CreationTimestamp: metav1.NewTime(at(n))},
					Spec:       v1alpha1.AutoscalerSpec{HorizontalPodAutoscalerSpec: halfACore("web"), Mode: mode},
				}
				all = append(all, newAutoscalerObject(a))
			}
			for _, o := range all {
				c.catalog.setObject(o)
			}
			c.catalog.setListed(v1alpha1.Kind)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				for _, o := range all {
					if c.sync(context.Background(), o.objectKey) <= 0 {
						b.Fatal("an object is not decided about again")
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/objects/float64(time.Microsecond), "µs/object")
		})
	}
}
