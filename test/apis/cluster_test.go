//go:build e2e

package apis

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/weir-metrics/weir/test/cluster/harness"
)

const (
	root = "../.."
	// prometheusPort and examplesPort are the ports of the tests' Prometheuses on the
	// node. weir's rules (testdata/weir/rules.yaml) use them.
	prometheusPort, examplesPort = 19090, 19091
)

// testCluster is the cluster that all tests of this package share.
type testCluster struct {
	*harness.Cluster
	config *rest.Config // the administrator's
	kube   *kubernetes.Clientset
	// aggregated is a client of the API server, weir of one of weir's pods, and
	// peer of metrics-server's pod.
	aggregated, weir, peer *metricsclient.Clientset
	dynamic                *dynamic.DynamicClient

	answers turns // who serves metrics.k8s.io
	began   time.Time
}

var sharedCluster *testCluster

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	w, down, err := build(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the cluster:", err)
		if w != nil {
			w.logClusterState(ctx, os.Stderr)
		}
		down()
		return 1
	}
	defer down()
	sharedCluster = w
	code := m.Run()
	if code != 0 {
		w.logClusterState(ctx, os.Stderr)
	}
	return code
}

// build starts a cluster, or opens the one that WEIR_E2E_CLUSTER names, and
// installs weir and metrics-server in it. down removes what build made.
func build(ctx context.Context) (w *testCluster, down func(), err error) {
	c, down, err := start(ctx, os.Getenv("WEIR_E2E_CLUSTER"))
	if err != nil {
		return nil, down, err
	}
	w = &testCluster{Cluster: c, began: time.Now()}
	if w.config, err = c.RESTConfig(); err != nil {
		return w, down, err
	}
	w.config.QPS, w.config.Burst = 200, 400 // tests send many requests
	w.config.WarningHandler = rest.NoWarnings{}
	if w.kube, err = kubernetes.NewForConfig(w.config); err != nil {
		return w, down, err
	}
	if w.dynamic, err = dynamic.NewForConfig(w.config); err != nil {
		return w, down, err
	}
	if w.aggregated, err = metricsclient.NewForConfig(w.config); err != nil {
		return w, down, err
	}
	if err := c.LoadImage(ctx, filepath.Join(root, "bin", "weir-image.tar")); err != nil {
		return w, down, fmt.Errorf("load weir's image (make image writes it): %w", err)
	}
	if err := w.loadMetricsServer(ctx); err != nil {
		return w, down, err
	}
	for _, overlay := range []string{"metrics-server", "weir"} {
		if err := w.install(ctx, filepath.Join("testdata", overlay)); err != nil {
			return w, down, fmt.Errorf("install %s: %w", overlay, err)
		}
	}
	if w.weir, err = w.direct(ctx, "weir-system", "app.kubernetes.io/name=weir", 10250); err != nil {
		return w, down, err
	}
	w.peer, err = w.direct(ctx, "metrics-server", "k8s-app=metrics-server", 10250)
	return w, down, err
}

// start starts a cluster, or opens the one of that name. down stops the cluster
// if start started it.
func start(ctx context.Context, name string) (c *harness.Cluster, down func(), err error) {
	down = func() {}
	if name != "" {
		c, err = harness.Open(ctx, harness.Options{Name: name})
		return c, down, err
	}
	c, err = harness.Start(ctx, harness.Options{Name: fmt.Sprintf("e2e-%d", os.Getpid()), Progress: os.Stderr})
	if err != nil {
		return nil, down, err
	}
	return c, func() {
		// This does not use ctx, because it must also clean up after an interrupt.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.Down(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "take the cluster down:", err)
		}
	}, nil
}

// loadMetricsServer builds an image of the released program and loads it.
func (w *testCluster) loadMetricsServer(ctx context.Context) error {
	program, err := harness.BuildMetricsServer(ctx, os.Stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "weir-e2e-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tarball := filepath.Join(dir, "image.tar")
	if err := w.BuildImage(ctx, tarball, "weir.test/metrics-server:v0.9.0", program); err != nil {
		return err
	}
	return w.LoadImage(ctx, tarball)
}

// install applies a kustomization and waits until its Deployments are rolled
// out and its APIs answer. It replaces NODE by the node's address.
func (w *testCluster) install(ctx context.Context, dir string) error {
	manifests, stderr, err := w.Kubectl(ctx, "kustomize", "--load-restrictor=LoadRestrictionsNone", dir)
	if err != nil {
		return fmt.Errorf("render: %w: %s", err, stderr)
	}
	if err := w.Apply(ctx, strings.ReplaceAll(manifests, "NODE", w.NodeIP().String())); err != nil {
		return err
	}
	for _, d := range objectsOf(manifests, "Deployment") {
		if _, stderr, err := w.Kubectl(ctx, "rollout", "status", "deployment", d.name, "-n", d.namespace, "--timeout=120s"); err != nil {
			return fmt.Errorf("roll out %s: %w: %s", d.name, err, stderr)
		}
	}
	for _, a := range objectsOf(manifests, "APIService") {
		if _, stderr, err := w.Kubectl(ctx, "wait", "apiservice", a.name, "--for=condition=Available", "--timeout=60s"); err != nil {
			return fmt.Errorf("await API %s: %w: %s", a.name, err, stderr)
		}
	}
	return nil
}

// uninstall deletes what install applied.
func (w *testCluster) uninstall(t *testing.T, dir string) {
	manifests, stderr, err := w.Kubectl(context.Background(), "kustomize", "--load-restrictor=LoadRestrictionsNone", dir)
	if err != nil {
		t.Errorf("render: %v: %s", err, stderr)
	}
	for _, n := range objectsOf(manifests, "Namespace") {
		if _, stderr, err := w.Kubectl(context.Background(), "delete", "namespace", n.name, "--wait=false"); err != nil {
			t.Errorf("delete namespace %s: %v: %s", n.name, err, stderr)
		}
	}
}

// direct returns a client of one ready pod, without the API server's
// aggregation. The pod accepts the administrator's certificate, because it
// trusts the cluster's client CA.
func (w *testCluster) direct(ctx context.Context, namespace, selector string, port int) (*metricsclient.Clientset, error) {
	pods, err := w.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, FieldSelector: "status.phase=Running"})
	if err != nil {
		return nil, err
	}
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil {
			return metricsclient.NewForConfig(w.to(p.Status.PodIP, port))
		}
	}
	return nil, fmt.Errorf("no pod of %s runs in %s", selector, namespace)
}

// to returns the administrator's configuration for another server.
func (w *testCluster) to(ip string, port int) *rest.Config {
	c := rest.CopyConfig(w.config)
	c.Host = fmt.Sprintf("https://%s:%d", ip, port)
	c.Insecure, c.CAData, c.CAFile = true, nil, ""
	return c
}

// logClusterState writes the state of the cluster, to find the cause of a
// failure.
func (w *testCluster) logClusterState(ctx context.Context, to io.Writer) {
	for _, args := range [][]string{
		{"get", "pods", "-A", "-o", "wide"},
		{"get", "apiservices"},
		{"get", "events", "-A", "--sort-by=.lastTimestamp"},
		{"logs", "-n", "weir-system", "-l", "app.kubernetes.io/name=weir", "--tail=40"},
		{"logs", "-n", "metrics-server", "-l", "k8s-app=metrics-server", "--tail=10"},
	} {
		out, stderr, _ := w.Kubectl(ctx, args...)
		fmt.Fprintf(to, "--- kubectl %s\n%s%s", strings.Join(args, " "), tail(out, 60), stderr)
	}
}

// tail returns the last n lines of s.
func tail(s string, n int) string {
	lines := bytes.SplitAfter([]byte(s), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-n):], nil))
}

// namespace creates a namespace that is deleted at the end of the test.
func (w *testCluster) namespace(t *testing.T, name string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := w.kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := w.kube.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return name
}

// container returns a container that runs the test workload. Its requests are
// small, because dozens of them run on two cores.
func container(name string, args ...string) corev1.Container {
	return corev1.Container{
		Name: name, Image: harness.WorkloadImage, ImagePullPolicy: corev1.PullNever, Args: args,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("5m"),
			corev1.ResourceMemory: resource.MustParse("8Mi"),
		}},
	}
}

// pod returns a pod of these containers. It has no grace period.
func pod(name string, containers ...corev1.Container) *corev1.Pod {
	grace := int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: containers, TerminationGracePeriodSeconds: &grace},
	}
}

// create creates a pod.
func (w *testCluster) create(t *testing.T, namespace string, p *corev1.Pod) {
	t.Helper()
	if _, err := w.kube.CoreV1().Pods(namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// kubectl runs kubectl and returns its output. The test fails if kubectl fails.
func (w *testCluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, stderr, err := w.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr)
	}
	return out
}

// eventually calls does every 200 ms until it returns nil, and returns how long
// that took. The test fails after within.
func eventually(t *testing.T, what string, within time.Duration, does func() error) time.Duration {
	t.Helper()
	began := time.Now()
	if err := again(t.Context(), within, does); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return time.Since(began)
}

// again calls does every 200 ms until it returns nil. It returns the last error
// after within.
func again(ctx context.Context, within time.Duration, does func() error) error {
	began := time.Now()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := does()
		if err == nil {
			return nil
		}
		if time.Since(began) > within {
			return fmt.Errorf("not within %v: %w", within, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// background calls does at this interval until it returns false or the test
// ends.
func background(t *testing.T, every time.Duration, does func() bool) {
	t.Helper()
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-t.Context().Done():
				return
			case <-tick.C:
			}
			if !does() {
				return
			}
		}
	})
	t.Cleanup(running.Wait)
}

// get sends a GET to a URL of plain HTTP and returns the body. A status other
// than 200 is an error.
func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %s", url, answer.Status, body)
	}
	return string(body), err
}
