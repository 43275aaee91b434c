//go:build e2e

package local

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/test/commands"
	"github.com/weir-metrics/weir/test/simulator"
)

// TestTwoHundredNodes runs weir server on two hundred simulated kubelets, one
// of which hangs and one of which sends garbage. For the others, every
// container's rate must be exactly the simulator's, and as fresh as without
// faults.
func TestTwoHundredNodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	targets, ca := filepath.Join(dir, "targets"), filepath.Join(dir, "ca.pem")
	sim := commands.Start(t, "weir-simulate", "--nodes=200", "--pods=10", "--containers=2", "--seed=7", "--listen-port=0",
		"--truth=127.0.0.1:0", "--targets-file="+targets, "--ca-file="+ca,
		"--fault=hang node=node-0007", "--fault=garbage node=node-0013")
	var truth string
	truthAt := regexp.MustCompile(`http://127\.0\.0\.1:\d+/truth`)
	commands.Eventually(t, 30*time.Second, func() error {
		if _, err := os.Stat(targets); err != nil {
			return err
		}
		truth = truthAt.FindString(sim.Output())
		if truth == "" {
			return fmt.Errorf("no address of the truth yet in:\n%s", sim.Output())
		}
		return nil
	})
	const resolution = 15 * time.Second
	p := commands.Start(t, "weir", "server", "--listen=127.0.0.1:0", "--metric-resolution="+resolution.String(),
		"--source=kubelet:?targets=@"+targets+"&ca="+ca)
	server := p.Address(t)

	const want = 198 * 10 * 2
	var list usage.List
	commands.Eventually(t, 90*time.Second, func() (err error) {
		if list, err = used(server, usage.Containers, ""); err != nil {
			return err
		}
		if n := measured(list); n < want {
			return fmt.Errorf("%d of %d containers have a rate", n, want)
		}
		return nil
	})
	// Two more rounds, so that the windows are those of the steady state.
	time.Sleep(2 * resolution)
	for range 3 {
		var err error
		if list, err = used(server, usage.Containers, ""); err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		if n := measured(list); n != want {
			t.Errorf("%d containers have a rate, want %d", n, want)
		}
		oldest := time.Duration(0)
		exact := 0
		for _, item := range list.Items {
			if item.CPU == nil {
				continue
			}
			oldest = max(oldest, now.Sub(item.CPU.Time))
			if agrees(t, truth, &item) {
				exact++
			}
		}
		t.Logf("%d rates, each the simulator's; the oldest sample is %v old", exact, oldest.Round(time.Second))
		// A kubelet's sample may already be 15 s old when it is read.
		if limit := resolution + 15*time.Second + 5*time.Second; oldest > limit {
			t.Errorf("a sample is %v old, want at most %v: a hanging node must not delay others", oldest, limit)
		}
		time.Sleep(resolution / 2)
	}
	nodes, err := used(server, usage.Nodes, "")
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, item := range nodes.Items {
		if len(item.Reasons) > 0 && item.CPU == nil {
			reasons[string(item.Node)] = item.Reasons[0].Reason
		}
	}
	for node, reason := range map[string]string{"node-0007": "NodeTimeout", "node-0013": "NodeBadPayload"} {
		if reasons[node] != reason {
			t.Errorf("%s: %q, want %s", node, reasons[node], reason)
		}
	}
	if len(reasons) != 2 {
		t.Errorf("nodes without numbers: %v, want the two broken ones", reasons)
	}
}

func measured(list usage.List) (n int) {
	for _, item := range list.Items {
		if item.CPU != nil {
			n++
		}
	}
	return n
}

// agrees compares a rate with the true usage over weir's window. The node
// rounds times down to milliseconds, so each end of the window is up to a
// millisecond later than its timestamp.
func agrees(t *testing.T, truth string, item *usage.Item) bool {
	t.Helper()
	to := item.CPU.Time.UnixNano()
	from := to - int64(item.CPU.WindowSeconds*1e9+0.5)
	const cut = int64(time.Millisecond)
	low, okLow := asked(t, truth, item, from+cut, to)
	high, okHigh := asked(t, truth, item, from, to+cut)
	if !okLow || !okHigh {
		t.Errorf("the simulator knows no %s/%s/%s", item.Namespace, item.Pod, item.Container)
		return false
	}
	window := float64(to - from)
	got := float64(item.CPU.Nanocores) / 1e9
	l, h := float64(low)/window, float64(high)/window
	const slack = 2e-9 // rates are whole nanocores
	if got < l-slack || got > h+slack {
		t.Errorf("%s/%s/%s: %.9f cores, truth is between %.9f and %.9f", item.Namespace, item.Pod, item.Container, got, l, h)
		return false
	}
	return true
}

// asked returns the CPU time that a container used between two moments, in
// nanoseconds.
func asked(t *testing.T, truth string, item *usage.Item, from, to int64) (int64, bool) {
	t.Helper()
	body, err := get(fmt.Sprintf("%s?node=%s&from=%d&to=%d", truth, url.QueryEscape(string(item.Node)), from, to))
	if err != nil {
		t.Fatal(err)
	}
	var list []simulator.Usage
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatal(err)
	}
	for _, u := range list {
		if u.Namespace == string(item.Namespace) && u.Pod == string(item.Pod) && u.Container == item.Container {
			return u.CPUTo - u.CPUFrom, true
		}
	}
	return 0, false
}
