package informer

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/weir-metrics/weir/cluster/endlog"
)

// The informer shows the log of ends each change and deletion of a pod: what ended before it began, what
// ends between two publications, and nothing that goes on.
func TestEndsAreRecorded(t *testing.T) {
	ends := endlog.New(endlog.Options{})
	runs := func(name, uid string) *v1.Pod {
		p := pod(name, uid, "n1")
		p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "app", ContainerID: "c://1", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}
		return p
	}
	running(t, Options{Ends: ends}, func(t *testing.T, _ *Cluster, client *fake.Clientset) {
		if n, _ := ends.Size(); n != 0 || ends.Since().IsZero() {
			t.Errorf("after the first list there are %d ends since %v, want none, since now", n, ends.Since())
		}
		pods := client.CoreV1().Pods("shop")
		ended := metav1.NewTime(time.Now().Truncate(time.Second))
		crashed := runs("web", "u1")
		crashed.Status.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode: 3, Reason: "Error", Message: "no such file", ContainerID: "c://1", StartedAt: metav1.NewTime(ended.Add(-time.Minute)), FinishedAt: ended}}
		must(t, second(pods.Update(t.Context(), crashed, metav1.UpdateOptions{})))
		must(t, pods.Delete(t.Context(), "db", metav1.DeleteOptions{}))
		evicted := runs("cache", "u3")
		evicted.DeletionTimestamp = &ended
		evicted.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "EvictionByEvictionAPI"}}
		must(t, second(pods.Update(t.Context(), evicted, metav1.UpdateOptions{})))
		must(t, pods.Delete(t.Context(), "cache", metav1.DeleteOptions{}))
		settle()

		got := map[string]*endlog.End{}
		for _, e := range ends.In("shop") {
			got[string(e.Pod.Name)] = e
		}
		if e := got["web"]; e == nil || e.Container != "app" || e.Run.ExitCode != 3 || e.Run.Message != "no such file" || e.Run.ID != "1" || !e.At.Equal(ended.Time) {
			t.Errorf("the crash of web is %+v", e)
		}
		if e := got["db"]; e == nil || e.Container != "" || !e.Gone || e.Unwatched {
			t.Errorf("the deletion of db is %+v", e)
		}
		if e := got["cache"]; e == nil || !e.Gone || e.Pod.Stop == nil || e.Pod.Stop.Disruption != "EvictionByEvictionAPI" {
			t.Errorf("the eviction of cache is %+v", e)
		}
		if len(got) != 3 {
			t.Errorf("%d pods ended, want 3", len(got))
		}
	}, node("n1"), runs("web", "u1"), runs("db", "u2"), runs("cache", "u3"), runs("calm", "u4"))
}
