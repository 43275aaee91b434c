// Package promtest runs a real Prometheus for tests.
package promtest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/weir-metrics/weir/internal/history"
)

// Start starts the Prometheus in $PATH with this configuration and its data in
// dir/data, until the end of the test. It returns its URL, which may not answer
// yet, and a function that returns its log. It skips the test if there is no
// Prometheus.
func Start(t testing.TB, dir, config string, flags ...string) (url string, log func() string) {
	t.Helper()
	address := Address(t)
	stop, log := StartAt(t, address, dir, config, flags...)
	t.Cleanup(func() { stop(syscall.SIGTERM) })
	return "http://" + address, log
}

// StartClient starts a Prometheus as Start does, and returns its URL and a client of it. If the test
// fails, the test's log has the configuration and what Prometheus wrote.
func StartClient(t testing.TB, dir, config string, flags ...string) (url string, client *history.Client) {
	t.Helper()
	url, log := Start(t, dir, config, flags...)
	client, err := history.New(history.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Prometheus has this configuration:\n%s\nand wrote:\n%s", config, log())
		}
	})
	return url, client
}

// Address returns an address of this machine on which nothing listens.
func Address(t testing.TB) string {
	t.Helper()
	var listen net.ListenConfig
	free, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	return free.Addr().String()
}

// StartAt is like Start, at an address. It also returns a function that ends
// Prometheus with a signal and waits until it has ended.
func StartAt(t testing.TB, address, dir, config string, flags ...string) (stop func(syscall.Signal), log func() string) {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("no prometheus in $PATH: apt-get install prometheus")
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	args := []string{"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary, append(args, flags...)...) // stop ends it
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func(by syscall.Signal) {
		if err := cmd.Process.Signal(by); err != nil {
			t.Errorf("end Prometheus: %v", err)
		}
		_ = cmd.Wait() // it ends because of the signal
	}
	return stop, func() string {
		text, _ := os.ReadFile(said.Name())
		return string(text)
	}
}
