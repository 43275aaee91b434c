//go:build e2e

package ui

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a built command that runs, and what it has written.
type process struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// start runs a built command until the test ends.
func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run make build", err)
	}
	p := &process{}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = p, p
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s ended with %v after SIGTERM", name, err)
		}
		if t.Failed() {
			t.Logf("%s wrote:\n%s", name, p.output())
		}
	})
	return p
}

// eventually waits until ok holds, and fails the test with what it said last if it
// never does.
func eventually(t *testing.T, within time.Duration, ok func() error) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); ; <-tick.C {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within %v: %v", within, err)
		}
	}
}

// serves waits until p says where it serves.
func (p *process) serves(t *testing.T) (url string) {
	t.Helper()
	line := regexp.MustCompile(`weir serves on (http://\S+)`)
	eventually(t, 30*time.Second, func() error {
		m := line.FindStringSubmatch(p.output())
		if m == nil {
			return fmt.Errorf("no address yet in:\n%s", p.output())
		}
		url = m[1]
		return nil
	})
	return url
}

// shows waits until a page holds all of these.
func shows(t *testing.T, url string, want ...string) {
	t.Helper()
	eventually(t, 90*time.Second, func() error {
		response, err := http.Get(url)
		if err != nil {
			return err
		}
		defer response.Body.Close()
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

// TestThisMachine opens the page of a weir that measures this machine, as make run
// starts it.
func TestThisMachine(t *testing.T) {
	b := newBrowser(t)
	url := start(t, "weir", "run", "--listen=127.0.0.1:0").serves(t) + "/ui/"
	shows(t, url, "this machine", "capacity") // a rate is there
	wide := window{width: 1280, height: 1000}
	b.open(t, "this-machine", url, wide).has(t, "this machine", "Cgroups of no pod", "capacity")
	b.open(t, "this-machine-sources", url+"?sources", wide).has(t, "host", "memory", "ok")
}

// TestSimulated opens the page of a weir that reads simulated kubelets without an
// API server, of which one hangs and one sends garbage.
func TestSimulated(t *testing.T) {
	b := newBrowser(t)
	dir := t.TempDir()
	targets, ca := filepath.Join(dir, "targets"), filepath.Join(dir, "ca.pem")
	start(t, "weir-simulate", "--nodes=12", "--pods=10", "--seed=7", "--listen-port=0", "--targets-file="+targets, "--ca-file="+ca,
		"--fault=hang node=node-0007", "--fault=garbage node=node-0003")
	eventually(t, 30*time.Second, func() error {
		_, err := os.Stat(targets)
		return err
	})
	url := start(t, "weir", "server", "--listen=127.0.0.1:0", "--source=kubelet:?targets=@"+targets+"&ca="+ca).serves(t) + "/ui/"
	shows(t, url, "NodeTimeout", "NodeBadPayload", "10 of 12", "100 of ") // the others have rates
	wide := window{width: 1280, height: 1100}
	b.open(t, "simulated", url, wide).has(t, "10 of 12", `href="?node=node-0007"`, "NodeTimeout", "NodeBadPayload")
	b.open(t, "simulated-node", url+"?node=node-0007", wide).has(t, "NodeTimeout", "failing", "How the node is read")
	b.open(t, "simulated-well", url+"?node=node-0001", wide).has(t, "Pods", "CPU", "ok")
	b.open(t, "simulated-missing", url+"?missing", wide).has(t, "broken", "What to do:")
	b.open(t, "simulated-sources", url+"?sources", wide).has(t, "failing", "node-0003")
}
