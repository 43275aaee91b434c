//go:build e2e

// Package local runs the built commands as a user does: on this machine's own
// cgroups, judged by the kernel's counters, and on simulated kubelets, judged
// by the simulator's truth. make e2e builds the commands first.
package local

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/api/wire"
)

// burnEnv makes a copy of this test binary burn CPU instead of testing.
const burnEnv = "WEIR_TEST_BURN"

func TestMain(m *testing.M) {
	if pattern := os.Getenv(burnEnv); pattern != "" {
		burn(pattern)
		return
	}
	os.Exit(m.Run())
}

// binary returns the path of a built command.
func binary(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run make build", err)
	}
	return path
}

// process is a running command and what it has written.
type process struct {
	cmd *exec.Cmd
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

// start runs a built command until the test ends; it must then end by itself
// when asked to.
func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(binary(t, name), args...)}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		ended := make(chan error, 1)
		go func() { ended <- p.cmd.Wait() }()
		select {
		case err := <-ended:
			if err != nil && !t.Failed() {
				t.Errorf("%s ended with %v after SIGTERM:\n%s", name, err, p.output())
			}
		case <-time.After(20 * time.Second):
			_ = p.cmd.Process.Kill()
			t.Errorf("%s did not end within 20 s of SIGTERM:\n%s", name, p.output())
		}
		if t.Failed() {
			t.Logf("%s wrote:\n%s", name, tail(p.output(), 60))
		}
	})
	return p
}

func tail(s string, n int) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// eventually waits until ok holds, and fails the test with what it said last if
// it never does.
func eventually(t *testing.T, within time.Duration, ok func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not within %v: %v", within, err)
		case <-tick.C:
		}
	}
}

// serving matches the line in which weir says where it serves.
var serving = regexp.MustCompile(`weir serves on (http://\S+)`)

// address waits until p says where it serves.
func address(t *testing.T, p *process) (url string) {
	t.Helper()
	eventually(t, 30*time.Second, func() error {
		m := serving.FindStringSubmatch(p.output())
		if m == nil {
			return fmt.Errorf("no address yet in:\n%s", p.output())
		}
		url = m[1]
		return nil
	})
	return url
}

func get(url string) ([]byte, error) {
	response, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return body, nil
}

// used reads what weir says each node, pod, container or cgroup uses.
func used(url string, r usage.Resource, query string) (usage.List, error) {
	var list usage.List
	body, err := get(url + wire.Path + string(r) + query)
	if err != nil {
		return list, err
	}
	return list, json.Unmarshal(body, &list)
}

// families counts the samples of each metric in an exposition.
func families(exposition []byte) map[string]int {
	n := map[string]int{}
	for s := bufio.NewScanner(bytes.NewReader(exposition)); s.Scan(); {
		line := s.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		name, _, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, "{")
		n[name]++
	}
	return n
}
