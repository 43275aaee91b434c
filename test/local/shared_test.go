//go:build e2e

package local

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/weir-metrics/weir/test/commands"
	"github.com/weir-metrics/weir/test/promtest"
)

// sharer is a weir server that shares its reads of nodes with others.
type sharer struct {
	*commands.Process
	name, local, secure string
}

// sharedResolution is short because the test waits for rounds.
const sharedResolution = 5 * time.Second

func startSharer(t *testing.T, name, kubeconfig, ca string) *sharer {
	t.Helper()
	address := promtest.Address(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	pod := []string{"POD_NAME=" + name, "POD_NAMESPACE=weir-system", "POD_IP=127.0.0.1"}
	p := commands.StartWith(t, pod, "weir", "server",
		"--kubeconfig="+kubeconfig, "--source=kubelet:?ca="+ca, "--metric-resolution="+sharedResolution.String(),
		"--share-reads", "--listen=127.0.0.1:0", "--secure-port="+port, "--bind-address=127.0.0.1",
		"--authentication-skip-lookup", "--shutdown-delay-duration=0s", "--log-level=info")
	return &sharer{p, name, p.Address(t), "https://" + address}
}

// list returns all pods of metrics.k8s.io, with the aggregator's kind of
// request.
func (s *sharer) list(ctx context.Context, client *http.Client) (*metricsv1beta1.PodMetricsList, error) {
	return commands.ListPods(ctx, client, s.secure, "reader")
}

var counter = regexp.MustCompile(`(?m)^(weir_shared_\S+) (\S+)$`)

// shares returns the weir_shared_ metrics.
func (s *sharer) shares() (map[string]float64, error) {
	body, err := get(s.local + "/metrics")
	if err != nil {
		return nil, err
	}
	found := map[string]float64{}
	for _, m := range counter.FindAllStringSubmatch(string(body), -1) {
		name := strings.NewReplacer("weir_shared_", "", `reads_total{by="`, "", `"}`, "").Replace(m[1])
		if found[name], err = strconv.ParseFloat(m[2], 64); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// TestSharedReads runs two replicas that share the reads of forty nodes. Each
// node is read once, and both replicas answer for all nodes. After one of them
// crashes, no LIST of the other lacks a pod or is older than before, and when
// the Lease has expired it reads all nodes itself.
func TestSharedReads(t *testing.T) {
	t.Parallel()
	const nodes, pods = 40, 40 * 5
	dir := t.TempDir()
	kubeconfig, ca := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "ca.pem")
	commands.Start(t, "weir-simulate", "--nodes=40", "--pods=5", "--containers=2", "--fresh", "--listen-port=0", "--ca-file="+ca,
		"--api-server=127.0.0.1:0", "--kubeconfig-file="+kubeconfig)
	commands.Eventually(t, 30*time.Second, func() error { _, err := os.Stat(kubeconfig); return err })
	a := startSharer(t, "weir-a", kubeconfig, ca)
	b := startSharer(t, "weir-b", kubeconfig, ca)
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(client.CloseIdleConnections)

	for _, s := range []*sharer{a, b} {
		commands.Eventually(t, time.Minute, func() error {
			list, err := s.list(t.Context(), client)
			if err != nil {
				return err
			}
			if len(list.Items) != pods {
				return fmt.Errorf("%s has %d of %d pods", s.name, len(list.Items), pods)
			}
			n, err := s.shares()
			if err == nil && (n["members"] != 2 || n["peers_heard"] != 1) {
				err = fmt.Errorf("%s shares with %v", s.name, n)
			}
			return err
		})
	}
	before := [2]map[string]float64{}
	both := func(into *[2]map[string]float64) {
		t.Helper()
		for i, s := range []*sharer{a, b} {
			var err error
			if into[i], err = s.shares(); err != nil {
				t.Fatal(err)
			}
		}
	}
	time.Sleep(sharedResolution) // for rounds in progress when they met
	both(&before)
	const rounds = 3
	time.Sleep(rounds * sharedResolution)
	var after [2]map[string]float64
	both(&after)
	for i, s := range []*sharer{a, b} {
		self, peer, late := after[i]["self"]-before[i]["self"], after[i]["peer"]-before[i]["peer"], after[i]["late"]-before[i]["late"]
		t.Logf("%s in %d rounds: %v nodes read itself, %v by the other, %v late", s.name, rounds, self, peer, late)
		if self < nodes*rounds/4 || self > nodes*rounds*3/4 || late > nodes/10 || self+peer+late < nodes*(rounds-1) {
			t.Errorf("%s: that is no sharing", s.name)
		}
	}

	// The leader is the one that crashes, so the other must answer by itself.
	if _, err := b.list(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	a.Kill(t)
	killed := time.Now()
	answers, worst, taken := 0, time.Duration(0), time.Duration(0)
	const lease = 10 * time.Second
	for time.Since(killed) < lease+2*sharedResolution {
		list, err := b.list(t.Context(), client)
		if err != nil {
			t.Fatalf("%.1f s after the crash: %v", time.Since(killed).Seconds(), err)
		}
		answers++
		if len(list.Items) != pods {
			t.Fatalf("%.1f s after the crash: %d of %d pods are listed", time.Since(killed).Seconds(), len(list.Items), pods)
		}
		for i := range list.Items {
			worst = max(worst, time.Since(list.Items[i].Timestamp.Time))
		}
		if n, err := b.shares(); err == nil && n["members"] == 1 && taken == 0 {
			taken = time.Since(killed)
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Logf("%d LISTs after the crash, each of all pods, no sample older than %v; the nodes were taken over after %v", answers, worst.Round(time.Millisecond), taken.Round(time.Millisecond))
	// A sample's timestamp is rounded down to a second, and a round may have been
	// in progress.
	if limit := 2*sharedResolution + 3*time.Second; worst > limit {
		t.Errorf("a sample was %v old, want at most %v", worst, limit)
	}
	if taken == 0 || taken > lease+sharedResolution {
		t.Errorf("the nodes were taken over after %v, want at most a lease (%v) and a round (%v)", taken, lease, sharedResolution)
	}
}
