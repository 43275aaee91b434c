//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weir-metrics/weir/test/bench/process"
)

// supported is the largest number of nodes that weir supports with its default
// settings. Above it, the benchmark lets weir read more nodes at a time.
const supported = 5000

// measure runs a weir with this many simulated nodes.
func measure(ctx context.Context, p plan, resolution time.Duration, nodes int) (point, error) {
	got := point{Nodes: nodes}
	settle, window := p.times(resolution)
	err := withWeir(ctx, p, resolution, nodes, func(base string, weir, simulator *process.Process, ready time.Duration) error {
		got.Ready = ready
		if err := weir.Wait(ctx, settle); err != nil {
			return err
		}
		return watch(ctx, resolution, window, base, weir, simulator, &got)
	})
	return got, err
}

// cluster is a simulated cluster: kubelets and an API server.
type cluster struct {
	*process.Process
	dir        string // of logs and files
	source     string // of weir
	ca         string // of the kubelets; unused over plain HTTP
	kubeconfig string
	targets    string // NAME=HOST:PORT of each kubelet
}

// startCluster starts a simulator with this many nodes and the given faults. Its files and logs are in dir.
func startCluster(ctx context.Context, p plan, dir string, nodes int, faults ...string) (*cluster, error) {
	kubelets, err := process.FreePort()
	if err != nil {
		return nil, err
	}
	api, err := process.FreePort()
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, ca: filepath.Join(dir, "ca.pem"), kubeconfig: filepath.Join(dir, "kubeconfig"), targets: filepath.Join(dir, "targets")}
	args := []string{"--nodes", strconv.Itoa(nodes), "--pods", strconv.Itoa(p.pods), "--containers", strconv.Itoa(p.containers),
		"--listen-port", strconv.Itoa(kubelets), "--churn", p.churn, "--fresh=" + strconv.FormatBool(!p.housekeeping),
		"--api-server", "127.0.0.1:" + strconv.Itoa(api), "--kubeconfig-file", c.kubeconfig, "--targets-file", c.targets}
	if len(faults) > 0 {
		file := filepath.Join(dir, "faults")
		if err := os.WriteFile(file, []byte(strings.Join(faults, "\n")), 0o600); err != nil {
			return nil, fmt.Errorf("write faults: %w", err)
		}
		args = append(args, "--faults", file)
	}
	if p.plain {
		args, c.source = append(args, "--insecure-http"), "kubelet:?scheme=http"
	} else {
		args, c.source = append(args, "--ca-file", c.ca), "kubelet:?ca="+c.ca
	}
	if most := connections(); nodes > most {
		args = append(args, "--connections", strconv.Itoa(most)) // weir has the same limit and keeps fewer open
	}
	// With many nodes, the simulator's pods take half of the memory, and they make
	// no garbage.
	if c.Process, err = process.Start(dir, "weir-simulate", []string{"GOGC=25"}, p.simulate, args...); err != nil {
		return nil, err
	}
	err = c.Until(ctx, "kubeconfig of the simulator", 100*time.Millisecond, p.ready, func() (bool, error) {
		_, err := os.Stat(c.kubeconfig)
		return err == nil, nil
	})
	if err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// startWeir starts a weir that reads the cluster, and waits until it is ready. It returns weir's URL.
func (c *cluster) startWeir(ctx context.Context, p plan, resolution time.Duration, nodes int, flags ...string) (base string, weir *process.Process, err error) {
	port, err := process.FreePort()
	if err != nil {
		return "", nil, err
	}
	args := []string{"server", "--kubeconfig", c.kubeconfig, "--metric-resolution", resolution.String(), "--listen", "127.0.0.1:" + strconv.Itoa(port)}
	if nodes > supported {
		// A thousand reads a second of 0.1 s each are a hundred at a time.
		args = append(args, "--max-reads=640", "--max-nodes="+strconv.Itoa(nodes))
	}
	base = "http://127.0.0.1:" + strconv.Itoa(port)
	if weir, err = process.Start(c.dir, "weir", nil, p.weir, slices.Concat(args, strings.Fields(p.extra), flags)...); err != nil {
		return "", nil, err
	}
	err = weir.Until(ctx, "readiness of weir (--ready gives it more time)", 100*time.Millisecond, p.ready, func() (bool, error) {
		return answers(ctx, base+"/readyz"), nil
	})
	if err != nil {
		weir.Stop()
		return "", nil, err
	}
	return base, weir, nil
}

// withWeir starts a cluster with this many nodes and the given faults, and a weir that reads it. It
// calls f with weir's URL when weir is ready, and ends both after f.
func withWeir(ctx context.Context, p plan, resolution time.Duration, nodes int, f func(base string, weir, simulator *process.Process, ready time.Duration) error, faults ...string) error {
	dir, err := os.MkdirTemp("", "weir-scale-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	c, err := startCluster(ctx, p, dir, nodes, faults...)
	if err != nil {
		return err
	}
	defer c.Stop()
	base, weir, err := c.startWeir(ctx, p, resolution, nodes, "--source", c.source)
	if err != nil {
		return err
	}
	defer weir.Stop()
	return f(base, weir, c.Process, time.Since(weir.Began))
}

// watch measures during the window.
func watch(ctx context.Context, resolution, window time.Duration, base string, weir, simulator *process.Process, got *point) error {
	weirBefore, err := weir.Usage()
	if err != nil {
		return err
	}
	simBefore, err := simulator.Usage()
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
		now, err := weir.Usage()
		if err != nil {
			return err
		}
		got.Steady = max(got.Steady, now.Resident)
	}
	elapsed := time.Since(began)
	after, err := readsOf(ctx, base)
	if err != nil {
		return err
	}
	weirAfter, err := weir.Usage()
	if err != nil {
		return err
	}
	simAfter, err := simulator.Usage()
	if err != nil {
		return err
	}
	// This request comes after the window, because it costs CPU too.
	if got.Oldest, _, err = oldest(ctx, base, nil); err != nil {
		return err
	}
	last, err := weir.Usage()
	if err != nil {
		return err
	}
	got.Files, got.Peak, got.SimMemory = weirAfter.Files, last.Peak, simAfter.Resident
	weirCPU := weirAfter.CPU - weirBefore.CPU
	got.Cores = weirCPU.Seconds() / elapsed.Seconds()
	got.SimCores = (simAfter.CPU - simBefore.CPU).Seconds() / elapsed.Seconds()
	got.Reads = after.good - before.good
	got.PerScrape = float64(weirCPU.Microseconds()) / float64(max(got.Reads, 1))
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
	err = eachSeries(ctx, base+"/metrics", func(name string, value float64) {
		switch {
		case strings.HasPrefix(name, "weir_rounds_total{"):
			r.good += int64(value)
		case strings.HasPrefix(name, "weir_skipped_rounds_total{"), strings.HasPrefix(name, "weir_stage_errors_total{") && strings.Contains(name, `stage="read"`):
			r.bad += int64(value)
		}
	})
	return r, err
}

// eachSeries calls f with each series of a page in Prometheus' text format.
func eachSeries(ctx context.Context, url string, f func(name string, value float64)) error {
	response, err := get(ctx, url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		text := lines.Text()
		space := strings.LastIndexByte(text, ' ')
		if n, err := strconv.ParseFloat(text[space+1:], 64); space > 0 && err == nil {
			f(text[:space], n)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", url, err)
	}
	return nil
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

// connections returns how many connections fit into the open-file limit of a
// process, beside a few other files.
func connections() int {
	const others = 200
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	return int(min(limit.Max, 1<<30)) - others
}
