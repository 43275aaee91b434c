//go:build linux && e2e

package execute

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/weir-metrics/weir/test/cluster/harness"
)

// agentsNamespace and agentUser are those of the manifests.
const (
	agentsNamespace = "weir-agents"
	agentUser       = "system:serviceaccount:" + agentsNamespace + ":weir-agent"
)

// TestManyNodesAtOnce has 40 nodes that decide at the same moment to evict a pod, at a real API server
// with the rights and the policies of the manifests.
func TestManyNodesAtOnce(t *testing.T) {
	const nodes = 40
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute) // the test may have to build the programs
	defer cancel()
	c, err := harness.Start(ctx, harness.Options{Name: fmt.Sprintf("brake-%d", os.Getpid()), ControlPlane: true, Progress: t.Output()})
	must(t, err)
	t.Cleanup(func() { must(t, c.Down(context.Background())) })
	config, err := c.RESTConfig()
	must(t, err)
	kube := clientOf(t, config)
	components := filepath.Join("..", "..", "deploy", "kustomize", "components")
	for _, file := range []string{"agent/namespace.yaml", "agent/rbac.yaml", "agent/policies.yaml", "agent-kill/rbac.yaml", "agent-evict/rbac.yaml"} {
		_, _, err := c.Kubectl(ctx, "apply", "-f", filepath.Join(components, file))
		must(t, err)
	}
	for i := range nodes {
		_, err := kube.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}}, metav1.CreateOptions{})
		must(t, err)
	}

	writeEvents(t, ctx, kube, config)
	for _, test := range []struct {
		mode Mode
		most int // nodes that may evict
	}{{Evict, 1}, {Kill, fewNodes + 1}} {
		var agents []*Executor
		var decisions []func() ActionOutcome
		namespace := string(test.mode)
		_, err := kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		must(t, err)
		for i := range nodes {
			node := fmt.Sprintf("n%d", i)
			pod, err := kube.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "shop-" + node},
				Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "shop", Image: "weir.test/shop"}}},
			}, metav1.CreateOptions{})
			must(t, err)
			// No kubelet removes the pods.
			x, err := New(Options{
				Mode: test.mode, Client: clientOf(t, agentConfig(config, node)), Node: node, Self: types.UID("weir-" + node), Namespace: agentsNamespace,
				CleanupTimeout: time.Millisecond, MinGap: time.Millisecond,
			})
			must(t, err)
			kill := killOf(pod.Name, 1)
			kill.Pod.Namespace, kill.Pod.UID = namespace, string(pod.UID)
			agents = append(agents, x)
			decisions = append(decisions, func() ActionOutcome { return x.Execute(ctx, decision(0, kill))[0] })
			if i > 0 {
				continue
			}
			// A policy applies a moment after its creation.
			must(t, wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
				return x.isConfined(ctx, test.mode == Kill, &ActionOutcome{Pod: kill.Pod}), nil
			}))
		}

		outcomes := make([]ActionOutcome, nodes)
		for round := range 2 {
			var all sync.WaitGroup
			began := time.Now()
			for i, decide := range decisions {
				all.Go(func() { outcomes[i] = decide() })
			}
			all.Wait()
			results, slowest := map[Result]int{}, time.Duration(0)
			for i := range outcomes {
				results[outcomes[i].Result]++
				if outcomes[i].Result.PodLeaves() {
					slowest = max(slowest, agents[i].pace.done[0].Sub(began))
				}
			}
			emptyLeases(t, agents[0].opts.Client, test.most-1)
			t.Logf("mode %s, round %d: %v; the last pod was evicted after %v", test.mode, round+1, results, slowest)
		}
		pods, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		must(t, err)
		gone := nodes - len(pods.Items)
		for i := range pods.Items {
			if pods.Items[i].DeletionTimestamp != nil {
				gone++
			}
		}
		if gone == 0 || gone > test.most {
			t.Errorf("mode %s: %d of %d pods were evicted, want at most %d", test.mode, gone, nodes, test.most)
		}
		must(t, kube.CoordinationV1().Leases(agentsNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	}
}

// agentConfig returns the configuration of a client with the identity of a node's agent.
func agentConfig(config *rest.Config, node string) *rest.Config {
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: agentUser, Groups: []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + agentsNamespace},
		Extra: map[string][]string{"authentication.kubernetes.io/node-name": {node}},
	}
	return as
}

// writeEvents records Events as agents do, and then others with the token of one agent.
func writeEvents(t *testing.T, ctx context.Context, kube *kubernetes.Clientset, config *rest.Config) {
	t.Helper()
	stolen := clientOf(t, agentConfig(config, "n0"))
	forged := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "forged"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "web"},
		Reason:         "FailedScheduling", Type: corev1.EventTypeWarning, Source: corev1.EventSource{Component: "default-scheduler"},
	}
	must(t, wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := stolen.CoreV1().Events("default").Create(ctx, forged, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "an agent's Events say that they are from weir-agent and its node"), nil
	}))
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: stolen.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "weir-agent", Host: "n0"})
	for range 2 { // the second is a patch
		recorder.Event(&forged.InvolvedObject, corev1.EventTypeWarning, ReasonObserved, "would evict it")
	}
	must(t, wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		list, err := kube.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "reason=" + ReasonObserved})
		return err == nil && len(list.Items) == 1 && list.Items[0].Count == 2, err
	}))
	list, err := kube.CoreV1().Events("default").List(ctx, metav1.ListOptions{})
	must(t, err)
	_, err = clientOf(t, agentConfig(config, "n1")).CoreV1().Events("default").Patch(ctx, list.Items[0].Name, types.MergePatchType, []byte(`{"message":"all is well"}`), metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), "an agent changes no Events but its own") {
		t.Errorf("the agent of n1 patches an Event of n0's: %v, want that the policy refuses it", err)
	}
}

// emptyLeases tries to write and delete the Leases of all nodes with the token of one agent, whose node is n0.
// At least so many must be there.
func emptyLeases(t *testing.T, stolen kubernetes.Interface, least int) {
	t.Helper()
	leases := stolen.CoordinationV1().Leases(agentsNamespace)
	list, err := leases.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "an agent writes no Lease but those of its own node") {
			t.Errorf("the agent of n0, for %s: %v, want that the policy refuses it", what, err)
		}
	}
	others := 0
	for i := range list.Items {
		l := &list.Items[i]
		if l.Name == LeasePrefix+"n0" {
			continue
		}
		others++
		refused("delete "+l.Name, leases.Delete(t.Context(), l.Name, metav1.DeleteOptions{}))
		_, err := leases.Patch(t.Context(), l.Name, types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{})
		refused("patch "+l.Name, err)
	}
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: LeasePrefix + "made-up", Labels: map[string]string{leaseLabel: ""}}}
	_, err = leases.Create(t.Context(), l, metav1.CreateOptions{})
	refused("create "+l.Name, err)
	if others < least {
		t.Errorf("%d Leases of other nodes, want at least %d", others, least)
	}
}

// clientOf returns a client whose connections end with the test.
func clientOf(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	must(t, err)
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(client.Transport) })
	kube, err := kubernetes.NewForConfigAndClient(config, client)
	must(t, err)
	return kube
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
