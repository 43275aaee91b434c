package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// supported is the largest number of nodes that weir supports with its default
// settings. Above it, the benchmark lets weir read more nodes at a time.
const supported = 5000

// measure runs a weir with this many simulated nodes.
func measure(ctx context.Context, p plan, resolution time.Duration, nodes int) (point, error) {
	got := point{Nodes: nodes}
	settle, window := p.times(resolution)
	err := withWeir(ctx, p, resolution, nodes, func(base string, weir, simulator *process, ready time.Duration) error {
		got.Ready = ready
		if err := pause(ctx, settle); err != nil {
			return err
		}
		return watch(ctx, resolution, window, base, weir, simulator, &got)
	})
	return got, err
}

// withWeir starts a simulator with this many nodes and the given faults, and a weir that reads it. It
// calls f with weir's URL when weir is ready, and ends both after f.
func withWeir(ctx context.Context, p plan, resolution time.Duration, nodes int, f func(base string, weir, simulator *process, ready time.Duration) error, faults ...string) error {
	dir, err := os.MkdirTemp("", "weir-scale-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	var ports [3]int // of kubelets, API server and weir
	for i := range ports {
		if ports[i], err = freePort(); err != nil {
			return err
		}
	}
	ca, kubeconfig := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "kubeconfig")
	args := []string{"--nodes", strconv.Itoa(nodes), "--pods", strconv.Itoa(p.pods), "--containers", strconv.Itoa(p.containers),
		"--listen-port", strconv.Itoa(ports[0]), "--churn", p.churn, "--fresh=" + strconv.FormatBool(!p.housekeeping),
		"--api-server", "127.0.0.1:" + strconv.Itoa(ports[1]), "--kubeconfig-file", kubeconfig}
	if len(faults) > 0 {
		file := filepath.Join(dir, "faults")
		if err := os.WriteFile(file, []byte(strings.Join(faults, "\n")), 0o600); err != nil {
			return fmt.Errorf("write faults: %w", err)
		}
		args = append(args, "--faults", file)
	}
	source := "kubelet:?scheme=http"
	if p.plain {
		args = append(args, "--insecure-http")
	} else {
		args, source = append(args, "--ca-file", ca), "kubelet:?ca="+ca
	}
	flags := strings.Fields(p.extra)
	if nodes > supported {
		// A thousand reads a second of 0.1 s each are a hundred at a time.
		flags = append([]string{"--max-reads=640"}, flags...)
	}
	if most := connections(); nodes > most {
		args = append(args, "--connections", strconv.Itoa(most)) // weir has the same limit and keeps fewer open
	}
	// With many nodes, the simulator's pods take half of the memory, and they make
	// no garbage.
	simulator, err := start(ctx, []string{"GOGC=25"}, p.simulate, args...)
	if err != nil {
		return err
	}
	defer simulator.stop()
	if err := until(ctx, p.ready, simulator, func() bool { _, err := os.Stat(kubeconfig); return err == nil }); err != nil {
		return fmt.Errorf("wait for the simulator: %w", err)
	}

	began := time.Now()
	base := "http://127.0.0.1:" + strconv.Itoa(ports[2])
	weir, err := start(ctx, nil, p.weir, append([]string{"server", "--kubeconfig", kubeconfig, "--source", source,
		"--metric-resolution", resolution.String(), "--listen", strings.TrimPrefix(base, "http://")}, flags...)...)
	if err != nil {
		return err
	}
	defer weir.stop()
	if err := until(ctx, p.ready, weir, func() bool { return answers(ctx, base+"/readyz") }); err != nil {
		return fmt.Errorf("wait for weir to be ready: %w", err)
	}
	return f(base, weir, simulator, time.Since(began))
}

// watch measures during the window.
func watch(ctx context.Context, resolution, window time.Duration, base string, weir, simulator *process, got *point) error {
	cpu, err := weir.cpu()
	if err != nil {
		return err
	}
	simCPU, err := simulator.cpu()
	if err != nil {
		return err
	}
	before, err := readsOf(ctx, base)
	if err != nil {
		return err
	}
	began := time.Now()
	looks := time.NewTicker(max(window/8, time.Second))
	defer looks.Stop()
	for time.Since(began) < window {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-looks.C:
		}
		now, _, err := weir.memory()
		if err != nil {
			return err
		}
		got.Steady = max(got.Steady, now)
	}
	elapsed := time.Since(began)
	after, err := readsOf(ctx, base)
	if err != nil {
		return err
	}
	cpuAfter, err := weir.cpu()
	if err != nil {
		return err
	}
	simAfter, err := simulator.cpu()
	if err != nil {
		return err
	}
	if got.Files, err = weir.files(); err != nil {
		return err
	}
	// This request comes after the window, because it costs CPU too.
	if got.Oldest, _, err = oldest(ctx, base, nil); err != nil {
		return err
	}
	if _, got.Peak, err = weir.memory(); err != nil {
		return err
	}
	if got.SimMemory, _, err = simulator.memory(); err != nil {
		return err
	}
	got.Cores = (cpuAfter - cpu).Seconds() / elapsed.Seconds()
	got.SimCores = (simAfter - simCPU).Seconds() / elapsed.Seconds()
	got.Reads = after.good - before.good
	got.PerScrape = float64((cpuAfter - cpu).Microseconds()) / float64(max(got.Reads, 1))
	// Every node is read once in each resolution. At the two ends of the window,
	// chance decides, by at most one read per node.
	due := int64(float64(got.Nodes) * elapsed.Seconds() / resolution.Seconds())
	got.Missed = max(due-got.Reads-int64(got.Nodes)/100, after.bad-before.bad, 0)
	return nil
}

// reads has the number of reads that succeeded, and of those that failed or
// were not started.
type reads struct{ good, bad int64 }

func readsOf(ctx context.Context, base string) (r reads, err error) {
	response, err := get(ctx, base+"/metrics")
	if err != nil {
		return r, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		text := lines.Text()
		space := strings.LastIndexByte(text, ' ')
		name := text[:max(space, 0)]
		n, err := strconv.ParseFloat(text[space+1:], 64)
		switch {
		case space < 0 || err != nil:
		case strings.HasPrefix(name, "weir_rounds_total{"):
			r.good += int64(n)
		case strings.HasPrefix(name, "weir_skipped_rounds_total{"), strings.HasPrefix(name, "weir_stage_errors_total{") && strings.Contains(name, `stage="read"`):
			r.bad += int64(n)
		}
	}
	if err := lines.Err(); err != nil {
		return r, fmt.Errorf("read weir's metrics: %w", err)
	}
	return r, nil
}

// oldest returns the age of the oldest CPU sample of a node that weir serves, and how many nodes have
// one. It counts only nodes that of names; nil names all.
func oldest(ctx context.Context, base string, of func(node string) bool) (age time.Duration, nodes int, err error) {
	response, err := get(ctx, base+"/apis/weir.dev/v1alpha1/nodes")
	if err != nil {
		return 0, 0, err
	}
	defer response.Body.Close()
	var list struct {
		Items []struct {
			Node string                    `json:"node"`
			CPU  *struct{ Time time.Time } `json:"cpu"`
		} `json:"items"`
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return 0, 0, fmt.Errorf("read the nodes that weir serves: %w", err)
	}
	now := time.Now()
	for _, item := range list.Items {
		if item.CPU != nil && (of == nil || of(item.Node)) {
			age, nodes = max(age, now.Sub(item.CPU.Time)), nodes+1
		}
	}
	return age, nodes, nil
}

func get(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return response, nil
}

func answers(ctx context.Context, url string) bool {
	response, err := get(ctx, url)
	if err != nil {
		return false
	}
	response.Body.Close()
	return true
}

// until waits until done returns true. It returns an error after the time most,
// or if the process ends.
func until(ctx context.Context, most time.Duration, of *process, done func() bool) error {
	deadline := time.Now().Add(most)
	for !done() {
		if err := of.died(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("it takes longer than %v: give it more with --ready", most)
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
