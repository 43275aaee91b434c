//go:build e2e

package apis

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/weir-metrics/weir/api/replicas/leader"
	"github.com/weir-metrics/weir/api/replicas/peer"
)

// podsOf returns the pods that run and are not being deleted.
func (w *testCluster) podsOf(t *testing.T, namespace, selector string) (running []corev1.Pod) {
	t.Helper()
	pods, err := w.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
			running = append(running, p)
		}
	}
	return running
}

// twoReplicas runs two replicas of weir until the end of the test.
func (w *testCluster) twoReplicas(t *testing.T) {
	t.Helper()
	w.kubectl(t, "scale", "deployment", "weir", "-n", "weir-system", "--replicas=2")
	t.Cleanup(func() {
		ctx := context.Background()
		if _, stderr, err := w.Kubectl(ctx, "scale", "deployment", "weir", "-n", "weir-system", "--replicas=1"); err != nil {
			t.Errorf("scale down: %v: %s", err, stderr)
		}
		// Other tests need a weir that remains.
		if _, stderr, err := w.Kubectl(ctx, "rollout", "status", "deployment", "weir", "-n", "weir-system", "--timeout=60s"); err != nil {
			t.Errorf("%v: %s", err, stderr)
		}
		direct, err := w.direct(ctx, "weir-system", "app.kubernetes.io/name=weir", 10250)
		if err != nil {
			t.Error(err)
		}
		w.weir = direct
	})
	w.kubectl(t, "rollout", "status", "deployment", "weir", "-n", "weir-system", "--timeout=120s")
}

// TestReplicas runs two replicas of weir. Whichever answers, times never go
// back. A client that lists once a second loses no pod and no request during a
// rolling restart.
func TestReplicas(t *testing.T) {
	w := sharedCluster
	namespace := w.namespace(t, "replicas")
	var names []string
	for i := range 5 {
		name := fmt.Sprintf("steady-%d", i)
		names = append(names, name+"/app")
		w.create(t, namespace, pod(name, container("app", "use", "--millicores=5", "--bytes=4194304")))
	}
	w.twoReplicas(t)
	var replicas []*metricsclient.Clientset
	for _, p := range w.podsOf(t, "weir-system", "app.kubernetes.io/name=weir") {
		c, err := metricsclient.NewForConfig(w.to(p.Status.PodIP, 10250))
		if err != nil {
			t.Fatal(err)
		}
		replicas = append(replicas, c)
	}
	if len(replicas) != 2 {
		t.Fatalf("%d replicas run, want 2", len(replicas))
	}
	for _, c := range replicas {
		serves(t, "a replica", c, namespace, names...)
	}

	newest := map[string]time.Time{}
	for i := range 225 { // three resolutions, alternating between the replicas
		pods, err := replicas[i%2].MetricsV1beta1().PodMetricses(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pods.Items {
			if p.Timestamp.Time.Before(newest[p.Name]) {
				t.Errorf("%s: replica %d answers with a sample of %v after one of %v", p.Name, i%2, p.Timestamp.Time, newest[p.Name])
			}
			newest[p.Name] = p.Timestamp.Time
		}
		wait(t, 200*time.Millisecond)
	}

	ctx, stop := context.WithCancel(t.Context())
	var probing sync.WaitGroup
	asked := 0
	probing.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			asked++
			pods, err := w.aggregated.MetricsV1beta1().PodMetricses(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Errorf("probe %d: %v", asked, err)
			} else if len(pods.Items) != 5 {
				t.Errorf("probe %d: %d pods are served, want 5", asked, len(pods.Items))
			}
		}
	})
	w.kubectl(t, "rollout", "restart", "deployment", "weir", "-n", "weir-system")
	w.kubectl(t, "rollout", "status", "deployment", "weir", "-n", "weir-system", "--timeout=180s")
	wait(t, 20*time.Second) // until the old ones have gone
	stop()
	probing.Wait()
	t.Logf("%d LISTs, one a second, through a rolling restart", asked)
}

// TestForgedLeader writes weir's Lease as somebody who may write Leases in its namespace, and nothing else.
// The Lease names a server that answers with 999 cores. Neither replica passes that on or asks the server,
// so it sees no token. When nobody forges the Lease any more, a replica leads again.
func TestForgedLeader(t *testing.T) {
	w := sharedCluster
	w.twoReplicas(t)
	certificate, err := peer.NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate.PEM(), certificate.KeyPEM())
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", netip.AddrPortFrom(w.HostIP(), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	forger := &httptest.Server{Listener: listener, TLS: &tls.Config{Certificates: []tls.Certificate{pair}}, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"NodeMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[{"metadata":{"name":"forged"},"usage":{"cpu":"999","memory":"1Gi"}}]}`)
	})}}
	forger.StartTLS()
	t.Cleanup(forger.Close)

	w.kubectl(t, "create", "role", "lease-writer", "-n", "weir-system", "--verb=get,update", "--resource=leases")
	w.kubectl(t, "create", "rolebinding", "lease-writer", "-n", "weir-system", "--role=lease-writer", "--user=intruder")
	t.Cleanup(func() {
		if _, stderr, err := w.Kubectl(context.Background(), "delete", "role/lease-writer", "rolebinding/lease-writer", "-n", "weir-system"); err != nil {
			t.Errorf("%v: %s", err, stderr)
		}
	})
	config := rest.CopyConfig(w.config)
	config.Impersonate.UserName = "intruder"
	intruder, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	forge := func() error {
		lease, err := intruder.CoordinationV1().Leases("weir-system").Get(t.Context(), "weir", metav1.GetOptions{})
		if err != nil {
			return err
		}
		name, now := "intruder", metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = &name, &now
		lease.Annotations = map[string]string{leader.AddressAnnotation: listener.Addr().String(), leader.CertificateAnnotation: string(certificate.PEM())}
		_, err = intruder.CoordinationV1().Leases("weir-system").Update(t.Context(), lease, metav1.UpdateOptions{})
		return err
	}
	var replicas []*metricsclient.Clientset
	for _, p := range w.podsOf(t, "weir-system", "app.kubernetes.io/name=weir") {
		c, err := metricsclient.NewForConfig(w.to(p.Status.PodIP, 10250))
		if err != nil {
			t.Fatal(err)
		}
		replicas = append(replicas, c)
	}
	eventually(t, "the Lease is forged", 20*time.Second, forge)
	for i := range 60 { // longer than a replica waits between two looks at the Lease
		if i%5 == 0 {
			_ = forge() // a replica may write it at the same time
		}
		for _, c := range replicas {
			nodes, err := c.MetricsV1beta1().NodeMetricses().List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range nodes.Items {
				if n.Name == "forged" {
					t.Fatalf("a replica answers that node %s uses %s cores, which the writer of the Lease made up", n.Name, n.Usage.Cpu())
				}
			}
		}
		wait(t, 200*time.Millisecond)
	}
	lease, err := w.kube.CoordinationV1().Leases("weir-system").Get(t.Context(), "weir", metav1.GetOptions{})
	if err != nil || *lease.Spec.HolderIdentity != "intruder" || asked.Load() > 0 {
		t.Errorf("after 12 s the Lease is %+v, %v, and the forger was asked %d times; want it held by the intruder, who was never asked", lease.Spec, err, asked.Load())
	}
	eventually(t, "a replica leads again", 40*time.Second, func() error {
		_, _, err := w.leader(t.Context())
		return err
	})
}
