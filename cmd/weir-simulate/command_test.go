package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/test/simulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRun runs the command as a user does: files are written, nodes answer to
// whoever trusts the CA, truth is served, and the end is clean.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	faults := filepath.Join(dir, "faults.txt")
	if err := os.WriteFile(faults, []byte("# one node is down\ndown node=node-0002\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := flags{
		fleet: simulator.Options{Nodes: 3, Pods: 4, Containers: 2, Seed: 1}, caFile: filepath.Join(dir, "ca.pem"), targetsFile: filepath.Join(dir, "targets.txt"),
		truth: "127.0.0.1:0", faultsFile: faults, faults: []string{"garbage node=node-0003"},
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var out bytes.Buffer
	type addrs struct{ kubelets, truth net.Addr }
	listening := make(chan addrs, 1)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, f, &out, io.Discard, func(k, t net.Addr) { listening <- addrs{k, t} }) }()
	var a addrs
	select {
	case a = <-listening:
	case err := <-ended:
		t.Fatalf("run: %v", err)
	}
	port := a.kubelets.(*net.TCPAddr).Port

	ca, err := os.ReadFile(f.caFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport}
	get := func(url string) string {
		t.Helper()
		r, err := c.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != 200 {
			t.Fatalf("GET %s: %d, %v", url, r.StatusCode, err)
		}
		return string(b)
	}
	if got := get(fmt.Sprintf("https://127.1.0.1:%d/metrics/resource", port)); strings.Count(got, "container_cpu_usage_seconds_total{") != 8 {
		t.Errorf("/metrics/resource does not have 8 containers:\n%s", got)
	}
	if _, err := c.Get(fmt.Sprintf("https://127.1.0.2:%d/metrics/resource", port)); err == nil {
		t.Error("the node that is down answers")
	}
	var usages []simulator.Usage
	if err := json.Unmarshal([]byte(get(fmt.Sprintf("http://%v/truth", a.truth))), &usages); err != nil || len(usages) != 24 {
		t.Errorf("/truth: got %d usages, %v; want 24", len(usages), err)
	}
	targets, err := os.ReadFile(f.targetsFile)
	if want := fmt.Sprintf("node-0001=127.1.0.1:%d\nnode-0002=127.1.0.2:%[1]d\nnode-0003=127.1.0.3:%[1]d\n", port); err != nil || string(targets) != want {
		t.Errorf("targets: got %q, %v; want %q", targets, err, want)
	}

	cancel()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
	for _, want := range []string{
		fmt.Sprintf("serving 3 nodes × 4 pods × 2 containers, node-0001 to node-0003 at 127.1.0.1 to 127.1.0.3 port %d, with 2 faults from 2", port),
		fmt.Sprintf("truth at http://%v/truth?from=NS&to=NS\n", a.truth),
		fmt.Sprintf("weir server '--source=kubelet:?targets=@%s&ca=%s'\n", f.targetsFile, f.caFile),
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it said\n%swithout %q", out.String(), want)
		}
	}
}

func TestCommandSaysWhatIsWrong(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "faults.txt")
	if err := os.WriteFile(bad, []byte("hang node=a\nrestart pod=x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := func(want string, args ...string) {
		t.Helper()
		c := newCommand()
		c.SetArgs(append([]string{"--listen-port=0"}, args...))
		c.SetOut(io.Discard)
		c.SetErr(io.Discard)
		if err := c.ExecuteContext(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("weir-simulate %q: got error %v, want %q", args, err, want)
		}
	}
	f(`--fault "restrat": column 1: unknown fault "restrat"`, "--fault", "restrat")
	f("faults.txt: line 2, column 14: restart needs at", "--faults", bad)
	f(`apply "hang node=node-0009": it concerns no node`, "--fault", "hang node=node-0009")
	f("nodes is -1", "--nodes=-1")
	f("--ca-file without TLS", "--insecure-http", "--ca-file", filepath.Join(t.TempDir(), "ca.pem"))
	f("open faults", "--faults", filepath.Join(t.TempDir(), "none"))
	f("read kubeconfig", "--seed-kubeconfig", filepath.Join(t.TempDir(), "none"))
	f("listen for truth", "--truth", "nowhere")
	f(`--churn "1": want a percentage a minute`, "--churn", "1")
	f("--kubeconfig-file without an API server", "--kubeconfig-file", filepath.Join(t.TempDir(), "kubeconfig"))
	f("16000000 connections need 16000100 open files", "--nodes=16000000")
	f("17000000 connections need 17000100 open files", "--connections=17000000")
	f("unknown flag", "--node=3")
}

// TestFlagErrors checks what a user sees after a wrong flag, and the status of the program.
func TestFlagErrors(t *testing.T) {
	const help = "Run \"weir-simulate --help\" to see what there is.\n"
	for args, want := range map[string]string{
		"--nodes x":      `error: invalid argument "x" for "--nodes" flag: write a whole number` + "\n" + help,
		"--seed=-1":      `error: invalid argument "-1" for "--seed" flag: write a whole number of 0 or more` + "\n" + help,
		"--node 3":       "error: unknown flag: --node: did you mean --nodes?\n" + help,
		"--nodes=-1":     "error: build fleet: nodes is -1: want 1 to 16711678\n",
		"--churn 1":      `error: --churn "1": want a percentage a minute, as in 1%/m` + "\n",
		"three --pods 1": `error: unknown command "three" for "weir-simulate"` + "\n" + help,
	} {
		var out, complaints bytes.Buffer
		if status := cli.Main(t.Context(), newCommand(), strings.Fields(args), &out, &complaints); complaints.String() != want || out.Len() > 0 || status != 1 {
			t.Errorf("weir-simulate %s: status %d\n%s%s\nwant status 1\n%s", args, status, &out, &complaints, want)
		}
	}
}

// TestExamplesParse keeps the help true.
func TestExamplesParse(t *testing.T) {
	var out bytes.Buffer
	c := newCommand()
	c.SetArgs([]string{"--help"})
	c.SetOut(&out)
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	faults := 0
	for part := range strings.SplitSeq(out.String(), "--fault '") {
		text, _, ok := strings.Cut(part, "'")
		if faults++; faults == 1 || !ok {
			continue
		}
		if _, err := simulator.Parse(text); err != nil {
			t.Errorf("--help shows %q: %v", text, err)
		}
	}
	if faults < 4 {
		t.Errorf("--help shows %d faults, want at least 3", faults-1)
	}
}
