package informer

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// ready returns a node with the condition Ready.
func ready(name string) *v1.Node {
	n := node(name)
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	return n
}

// wantNodes checks which nodes the facts have, and how many are left out.
func wantNodes(t *testing.T, when string, f *cluster.Facts, leftOut int, want ...metric.NodeName) {
	t.Helper()
	names := map[metric.NodeName]bool{}
	f.EachNode(func(n *cluster.Node) bool { names[n.Name] = true; return true })
	if got := slices.Sorted(maps.Keys(names)); !slices.Equal(got, want) || f.LeftOutNodes() != leftOut {
		t.Errorf("%s: got nodes %v and %d left out, want %v and %d", when, got, f.LeftOutNodes(), want, leftOut)
	}
}

// Of more nodes than the limit, those that are ready are kept, then those that were known before.
func TestNodesAreLimited(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	running(t, Options{MaxNodes: 3, Logger: zap.New(core)}, func(t *testing.T, c *Cluster, client *fake.Clientset) {
		nodes := client.CoreV1().Nodes()
		create := func(n *v1.Node) {
			t.Helper()
			_, err := nodes.Create(t.Context(), n, metav1.CreateOptions{})
			must(t, err)
		}
		wantNodes(t, "of four in a list, one not ready", c.Facts(), 1, "n1", "n2", "n3")
		for i := range 5 {
			create(node(fmt.Sprint("made-up-", i)))
		}
		settle()
		wantNodes(t, "after five were made up", c.Facts(), 6, "n1", "n2", "n3")
		_, err := nodes.Update(t.Context(), node("n2"), metav1.UpdateOptions{})
		must(t, err)
		settle()
		wantNodes(t, "after n2 became not ready", c.Facts(), 6, "n1", "n2", "n3")
		create(ready("n4"))
		settle()
		wantNodes(t, "after n4, which is ready, was added", c.Facts(), 7, "n1", "n3", "n4")
		for i := range 5 {
			must(t, nodes.Delete(t.Context(), fmt.Sprint("made-up-", i), metav1.DeleteOptions{}))
		}
		must(t, nodes.Delete(t.Context(), "a-broken", metav1.DeleteOptions{}))
		must(t, nodes.Delete(t.Context(), "n4", metav1.DeleteOptions{}))
		settle()
		wantNodes(t, "after they were deleted", c.Facts(), 1, "n1", "n3")
		_, err = nodes.Update(t.Context(), ready("n2"), metav1.UpdateOptions{})
		must(t, err)
		settle()
		wantNodes(t, "after n2 has reported again", c.Facts(), 0, "n1", "n2", "n3")
	}, ready("n1"), ready("n2"), ready("n3"), node("a-broken"))
	var got []string
	for _, e := range logs.All() {
		got = append(got, e.Message)
	}
	want := []string{
		"the cluster has more nodes than --max-nodes: the others are not read; weir explain missing counts them",
		"the cluster has no more nodes than --max-nodes any more",
	}
	if !slices.Equal(got, want) {
		t.Errorf("log: got %q, want %q", got, want)
	}
}

// TestMemoryOfMadeUpNodes measures the facts of 65,000 nodes that somebody made up, with the longest names
// and annotations of 2 KB.
func TestMemoryOfMadeUpNodes(t *testing.T) {
	const madeUp, most = 65_000, 30 << 20
	c := NewForClient(fake.NewClientset(), Options{})
	before := live()
	for at := 0; at < madeUp; at += 1000 { // as a watch reports them
		for i := range 1000 {
			n := node(fmt.Sprintf("%s%06d", strings.Repeat("x", 247), at+i))
			n.Labels = map[string]string{"kubernetes.io/hostname": n.Name[190:], "kubernetes.io/os": "linux"}
			n.Annotations = map[string]string{"note": strings.Repeat("y", 2048)}
			n.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.1", at/1000, i%250)}}
			c.queue.change(c.opts.Now(), func(p *pending) { p.nodes[metric.NodeName(n.Name)] = nodeFacts(n) })
		}
		c.publish(c.queue.take())
	}
	grown := live() - before
	f := c.Facts()
	t.Logf("%d kB are kept of %d nodes", grown>>10, madeUp)
	if grown > most {
		t.Errorf("%d kB are kept of %d nodes, want at most %d", grown>>10, madeUp, most>>10)
	}
	if f.Nodes() != DefaultMaxNodes || f.LeftOutNodes() != madeUp-DefaultMaxNodes {
		t.Errorf("got %d nodes and %d left out, want %d and %d", f.Nodes(), f.LeftOutNodes(), DefaultMaxNodes, madeUp-DefaultMaxNodes)
	}
	runtime.KeepAlive(c)
}
