//go:build e2e

package ui

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/test/commands"
)

// shows waits until a page contains all of these texts.
func shows(t *testing.T, url string, want ...string) {
	t.Helper()
	commands.Eventually(t, 90*time.Second, func() error {
		response, err := http.Get(url)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if !response.Uncompressed {
			return fmt.Errorf("%s: the answer is not compressed", url)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		for _, text := range want {
			if !strings.Contains(string(body), text) {
				return fmt.Errorf("%s: %s without %q:\n%s", url, response.Status, text, body)
			}
		}
		return nil
	})
}

// TestThisMachine opens the page of a weir that measures this machine, started
// as make run does.
func TestThisMachine(t *testing.T) {
	b := newBrowser(t)
	url := commands.Start(t, "weir", "run", "--listen=127.0.0.1:0").Address(t) + "/ui/"
	shows(t, url, "this machine", "capacity") // a rate is there
	wide := window{width: 1280, height: 1000}
	b.open(t, "this-machine", url, wide).has(t, "this machine", "Cgroups of no pod", "capacity")
	b.open(t, "this-machine-sources", url+"?sources", wide).has(t, "host", "memory")
}

// TestSimulated opens the page of a weir that reads simulated kubelets without
// an API server. One of them hangs and one sends garbage.
func TestSimulated(t *testing.T) {
	b := newBrowser(t)
	dir := t.TempDir()
	targets, ca := filepath.Join(dir, "targets"), filepath.Join(dir, "ca.pem")
	commands.Start(t, "weir-simulate", "--nodes=12", "--pods=10", "--seed=7", "--listen-port=0", "--targets-file="+targets, "--ca-file="+ca,
		"--fault=hang node=node-0007", "--fault=garbage node=node-0003")
	commands.Eventually(t, 30*time.Second, func() error {
		_, err := os.Stat(targets)
		return err
	})
	url := commands.Start(t, "weir", "server", "--listen=127.0.0.1:0", "--source=kubelet:?targets=@"+targets+"&ca="+ca).Address(t) + "/ui/"
	shows(t, url, "NodeTimeout", "NodeBadPayload", "10 of 12", "100 of ") // the others have rates
	wide := window{width: 1280, height: 1100}
	b.open(t, "simulated", url, wide).has(t, "10 of 12", `href="?node=node-0007"`, "NodeTimeout", "NodeBadPayload")
	b.open(t, "simulated-node", url+"?node=node-0007", wide).has(t, "NodeTimeout", "failing", "How the node is read")
	b.open(t, "simulated-well", url+"?node=node-0001", wide).has(t, "Pods", "CPU")
	b.open(t, "simulated-missing", url+"?missing", wide).has(t, "broken", "What to do:")
	b.open(t, "simulated-sources", url+"?sources", wide).has(t, "failing", "node-0003", "Ki</td>") // how much a read brought
}
