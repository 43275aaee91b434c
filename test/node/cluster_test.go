//go:build e2e

package node

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/test/cluster/harness"
)

const (
	root = "../.."
	mi   = int64(1) << 20
)

var nodeKind = flag.String("node", "", "v2: the node is a virtual machine with cgroup version 2 (default: this machine)")

// The size of the node's disk, and the kubelet's thresholds for it. The
// threshold for memory depends on the machine's free memory.
const (
	diskBytes  = 2048 * mi
	diskInodes = 60000

	kubeletBytes  = 300 * mi
	kubeletInodes = 5000
	// The kubelet evicts after half of the free memory was used, within these
	// bounds. The pods of a test use that memory, and other processes of this
	// machine.
	leastRoom, mostRoom = 3 * 1024 * mi, 8 * 1024 * mi

	// The kubelet's threshold for memory in a virtual machine, which has nothing
	// but the test's pods.
	machineMemory = 900 * mi
)

// testCluster is the cluster of all tests of this package.
type testCluster struct {
	*harness.Cluster
	config   *rest.Config // the administrator's
	kube     *kubernetes.Clientset
	v2       bool  // the node is a virtual machine with cgroup version 2
	capacity int64 // memory of the machine
	memory   int64 // the kubelet's threshold of memory.available

	installed string // the manifests of weir that are applied
}

var sharedCluster *testCluster

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	w, err := build(ctx)
	if w != nil {
		defer w.end()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the cluster:", err)
		if w != nil {
			w.logClusterState(ctx, os.Stderr)
		}
		return 1
	}
	sharedCluster = w
	code := m.Run()
	if code != 0 {
		w.logClusterState(ctx, os.Stderr)
	}
	return code
}

// build starts the cluster and installs weir in it, server and agent. It
// returns the testCluster also after an error if the cluster was started, so
// that the caller can stop it.
func build(ctx context.Context) (*testCluster, error) {
	w := &testCluster{v2: *nodeKind == string(harness.NodeV2), memory: machineMemory}
	var disk harness.NodeDisk
	var err error
	if w.v2 {
		slowness = 4
	} else {
		disk = harness.NodeDisk{Bytes: diskBytes, Inodes: diskInodes}
		if w.memory, err = chooseThreshold(); err != nil {
			return nil, err
		}
	}
	w.Cluster, err = harness.Start(ctx, harness.Options{
		Name:     fmt.Sprintf("node-%d", os.Getpid()),
		Progress: os.Stderr,
		Node:     harness.NodeKind(*nodeKind),
		NodeDisk: disk,
		KubeletConfig: map[string]any{
			"evictionHard": map[string]string{
				"memory.available":  fmt.Sprint(w.memory),
				"nodefs.available":  fmt.Sprint(kubeletBytes),
				"nodefs.inodesFree": fmt.Sprint(kubeletInodes),
			},
			// Longer than the time between two reports of the node's status, so that the
			// condition is visible. Not longer than that, because under pressure the node
			// accepts no pods.
			"evictionPressureTransitionPeriod": "12s",
			// The kubelet ranks pods by the size of their volumes, so it must be up to
			// date.
			"volumeStatsAggPeriod": "3s",
		},
	})
	if err != nil {
		return nil, err
	}
	meminfo, err := w.readFile(ctx, "/proc/meminfo")
	if err != nil {
		return w, err
	}
	w.capacity = fields(meminfo)["MemTotal"] << 10
	if w.config, err = w.RESTConfig(); err != nil {
		return w, err
	}
	w.config.WarningHandler = rest.NoWarnings{}
	if w.kube, err = kubernetes.NewForConfig(w.config); err != nil {
		return w, err
	}
	if err := w.LoadImage(ctx, filepath.Join(root, "bin", "weir-image.tar")); err != nil {
		return w, fmt.Errorf("load weir's image (make image writes it): %w", err)
	}
	if err := w.createClasses(ctx); err != nil {
		return w, err
	}
	if err := w.createSizes(ctx); err != nil {
		return w, fmt.Errorf("make pods to resize: %w", err)
	}
	if err := w.install(ctx, "least"); err != nil {
		return w, fmt.Errorf("install weir: %w", err)
	}
	return w, nil
}

// end stops the cluster. It does not use the tests' context, so it also works
// after an interrupt.
func (w *testCluster) end() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.Down(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "take the cluster down:", err)
	}
}

// chooseThreshold returns the kubelet's threshold of memory.available on this
// machine.
func chooseThreshold() (int64, error) {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return 0, fmt.Errorf("ask for this machine's memory: %w", err)
	}
	use, err := harness.MachineUse()
	if err != nil {
		return 0, err
	}
	available := int64(info.Totalram)*int64(info.Unit) - use.WorkingSet
	hogSize := min(mostRoom, available/2)
	if hogSize < leastRoom {
		return 0, fmt.Errorf("%d MiB of memory are available: these tests need %d", available/mi, 2*leastRoom/mi)
	}
	return available - hogSize, nil
}

// readFile returns the content of a file of the node.
func (w *testCluster) readFile(ctx context.Context, path string) (string, error) {
	if w.v2 {
		return w.GuestOutput(ctx, "cat", path)
	}
	b, err := os.ReadFile(path)
	return string(b), err
}

// fields returns the numbers of a file of lines "name number" by name.
func fields(text string) map[string]int64 {
	all := map[string]int64{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 2 {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				all[strings.TrimSuffix(f[0], ":")] = n
			}
		}
	}
	return all
}

// logClusterState writes the state of the cluster, to find the cause of a
// failure.
func (w *testCluster) logClusterState(ctx context.Context, to io.Writer) {
	for _, args := range [][]string{
		{"get", "pods", "-A", "-o", "wide"},
		{"get", "events", "-A", "--sort-by=.lastTimestamp"},
		{"describe", "nodes"},
		{"logs", "-n", "weir-system", "-l", "app.kubernetes.io/name=weir", "--tail=40"},
		{"logs", "-n", agents, "-l", "app.kubernetes.io/name=weir", "--tail=60"},
	} {
		out, stderr, _ := w.Kubectl(ctx, args...)
		fmt.Fprintf(to, "--- kubectl %s\n%s%s", strings.Join(args, " "), tail(out, 60), stderr)
	}
}

// tail returns the last n lines of s.
func tail(s string, n int) string {
	lines := strings.SplitAfter(s, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}

// namespace creates a namespace that is deleted at the end of the test.
func (w *testCluster) namespace(t *testing.T, name string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := w.kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Without a grace period, so that the next test has the node in the same state.
		now := int64(0)
		all := metav1.DeleteOptions{GracePeriodSeconds: &now}
		err := w.kube.CoreV1().Pods(name).DeleteCollection(context.Background(), all, metav1.ListOptions{})
		if err == nil {
			err = w.kube.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return name
}

// kubectl runs kubectl and returns its output. The test fails if kubectl fails.
func (w *testCluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, _, err := w.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// slowness is how many times as long everything may take on the node: in
// emulation, more than once.
var slowness = time.Duration(1)

// eventually calls does every 100 ms until it returns nil. The test fails after
// within, or as many times longer as the node is slower.
func eventually(t *testing.T, what string, within time.Duration, does func() error) {
	t.Helper()
	if err := again(t.Context(), within, does); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// again calls does every 100 ms until it returns nil. It returns the last error after within, or
// after as many times longer as the node is slower.
func again(ctx context.Context, within time.Duration, does func() error) error {
	within *= slowness
	deadline := time.After(within)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := does()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return fmt.Errorf("not within %v: %w", within, err)
		case <-tick.C:
		}
	}
}
