//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-metrics/weir/test/bench/process"
)

// sender is a program that reads kubelets and sends what it read to a receiver.
type sender struct {
	name string
	// start starts the program, and returns the URL of its own metrics.
	start func(ctx context.Context, c *cluster, endpoint, receiver string) (metrics string, p *process.Process, err error)
	// scrapes and samples are prefixes of its series that count scrapes, and samples that it sent.
	// samples is empty for a program that sends nothing.
	scrapes, samples string
}

// endpoints are what the kubelets are asked for. Where together is set, all programs read the same nodes at the same
// time: what else the machine does then is in all rows alike. For /metrics/cadvisor two cores are too few for that.
var endpoints = []struct {
	name     string
	together bool
}{{"resource", true}, {"cadvisor", false}}

// writePath is the path at which Prometheus takes remote write.
const writePath = "/api/v1/write"

// senders returns the programs that are measured.
func (p plan) senders(resolution time.Duration, nodes int) []sender {
	weir := func(flags func(receiver string) []string) func(context.Context, *cluster, string, string) (string, *process.Process, error) {
		return func(ctx context.Context, c *cluster, endpoint, receiver string) (string, *process.Process, error) {
			base, weir, err := c.startWeir(ctx, p, resolution, nodes, append(flags(receiver), "--secure-port=0", "--source", c.source+"&endpoint="+endpoint)...)
			return base + "/metrics", weir, err
		}
	}
	const rounds = "weir_rounds_total{"
	return []sender{
		{"weir, no sender", weir(func(string) []string { return nil }), rounds, ""},
		{"weir, remote write 2.0", weir(func(receiver string) []string {
			return []string{"--sink", "memory:", "--sink", "remotewrite:" + receiver + writePath}
		}),
			rounds, "weir_remotewrite_samples_total{"},
		{"weir, OTLP", weir(func(receiver string) []string { return []string{"--sink", "memory:", "--sink", "otlp:" + receiver} }),
			rounds, "weir_otlp_samples_total{"},
		{"weir, OTLP without gzip", weir(func(receiver string) []string {
			return []string{"--sink", "memory:", "--sink", "otlp:" + receiver + "?compression=none"}
		}),
			rounds, "weir_otlp_samples_total{"},
		{"vmagent", func(_ context.Context, c *cluster, endpoint, receiver string) (string, *process.Process, error) {
			return c.startScraper(p.vmagent, endpoint, resolution, "", func(config, listen string) []string {
				return []string{"-promscrape.config=" + config, "-httpListenAddr=" + listen, "-remoteWrite.url=" + receiver + writePath,
					"-remoteWrite.forcePromProto=true", "-remoteWrite.tmpDataPath=" + filepath.Join(c.dir, "data")}
			})
		}, `vm_promscrape_scrapes_total{status_code="200"}`, "vmagent_remotewrite_rows_pushed_after_relabel_total{"},
		{"Prometheus, agent mode", func(_ context.Context, c *cluster, endpoint, receiver string) (string, *process.Process, error) {
			return c.startScraper(p.prometheus, endpoint, resolution, "remote_write: [{url: '"+receiver+writePath+"'}]\n", func(config, listen string) []string {
				return []string{"--agent", "--config.file=" + config, "--web.listen-address=" + listen, "--storage.agent.path=" + filepath.Join(c.dir, "data")}
			})
		}, "prometheus_target_interval_length_seconds_count{", "prometheus_remote_storage_samples_total{"},
	}
}

// startScraper starts a program that has Prometheus' configuration, which is completed with more.
func (c *cluster) startScraper(path, endpoint string, resolution time.Duration, more string, args func(config, listen string) []string) (metrics string, p *process.Process, err error) {
	targets, err := os.ReadFile(c.targets)
	if err != nil {
		return "", nil, fmt.Errorf("read targets: %w", err)
	}
	var config strings.Builder
	fmt.Fprintf(&config, "scrape_configs:\n- job_name: kubelets\n  scheme: https\n  metrics_path: /metrics/%s\n  scrape_interval: %v\n  scrape_timeout: 10s\n"+
		"  tls_config: {ca_file: %s}\n  static_configs:\n  - targets:\n", endpoint, resolution, c.ca)
	for line := range strings.Lines(string(targets)) {
		_, address, _ := strings.Cut(strings.TrimSpace(line), "=")
		fmt.Fprintf(&config, "    - %s\n", address)
	}
	file := filepath.Join(c.dir, "scrape.yaml")
	if err := os.WriteFile(file, []byte(config.String()+more), 0o600); err != nil {
		return "", nil, fmt.Errorf("write configuration: %w", err)
	}
	port, err := process.FreePort()
	if err != nil {
		return "", nil, err
	}
	listen := "127.0.0.1:" + strconv.Itoa(port)
	p, err = process.Start(c.dir, filepath.Base(path), nil, path, args(file, listen)...)
	return "http://" + listen + "/metrics", p, err
}

// running is a sender that runs.
type running struct {
	*sender
	*process.Process
	metrics  string
	receiver *httptest.Server
	received *atomic.Int64 // bytes
	steady   []float64     // resident memory in bytes, each second
}

// sent has what a sender used and did up to a time.
type sent struct {
	usage            process.Usage
	scrapes, samples float64
	bytes            int64 // that the receiver got
}

// measureSenders prints a table for each endpoint.
func measureSenders(ctx context.Context, p plan, resolution time.Duration, nodes int) error {
	chosen := slices.DeleteFunc(p.senders(resolution, nodes), func(s sender) bool { return !strings.Contains(s.name, p.only) })
	settle, window := p.times(resolution)
	for _, endpoint := range endpoints {
		order, atOnce := "one after the other", 1
		if endpoint.together {
			order, atOnce = "all at the same time", len(chosen)
		}
		fmt.Printf("/metrics/%s of %d nodes every %v: %d pods on a node, %d containers in a pod; %s, measured for %v after %v.\n\n", endpoint.name, nodes, resolution, p.pods, p.containers, order, window, settle)
		fmt.Print("| program | node-scrapes | CPU a node-scrape (µs) | samples a node-scrape | CPU a sample (µs) | bytes a sample | RSS steady (MiB) | RSS peak (MiB) |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
		for group := range slices.Chunk(chosen, max(atOnce, 1)) {
			if err := measureTogether(ctx, p, group, endpoint.name, nodes, settle, window); err != nil {
				return err
			}
		}
		fmt.Println()
	}
	return nil
}

// measureTogether prints the rows of senders that run at the same time.
func measureTogether(ctx context.Context, p plan, senders []sender, endpoint string, nodes int, settle, window time.Duration) error {
	dir, err := os.MkdirTemp("", "weir-senders-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	c, err := startCluster(ctx, p, dir, nodes)
	if err != nil {
		return err
	}
	defer c.Stop()
	var all []*running
	defer func() {
		for _, r := range all {
			r.Stop()
			r.receiver.Close()
		}
	}()
	for i := range senders {
		r, err := senders[i].startWithReceiver(ctx, c, filepath.Join(dir, strconv.Itoa(i)), endpoint)
		if err != nil {
			return fmt.Errorf("%s: %w", senders[i].name, err)
		}
		all = append(all, r)
	}
	if err := c.Wait(ctx, settle); err != nil {
		return err
	}
	look := func() (now []sent, err error) {
		for _, r := range all {
			one, err := r.readCounters(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.name, err)
			}
			now = append(now, one)
		}
		return now, nil
	}
	before, err := look()
	if err != nil {
		return err
	}
	for began := time.Now(); time.Since(began) < window; {
		if err := c.Wait(ctx, time.Second); err != nil {
			return err
		}
		for _, r := range all {
			u, err := r.Usage()
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			r.steady = append(r.steady, float64(u.Resident))
		}
	}
	after, err := look()
	if err != nil {
		return err
	}
	for i, r := range all {
		r.print(before[i], after[i])
	}
	return nil
}

// startWithReceiver starts a sender with a receiver of its own. Its files are in dir.
func (s *sender) startWithReceiver(ctx context.Context, c *cluster, dir, endpoint string) (*running, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	own := *c
	own.dir = dir
	r := &running{sender: s, received: new(atomic.Int64)}
	r.receiver = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		n, _ := io.Copy(io.Discard, request.Body) // a broken request counts as far as it came
		r.received.Add(n)
		w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "0") // says that this is a receiver of version 2.0
	}))
	var err error
	if r.metrics, r.Process, err = s.start(ctx, &own, endpoint, r.receiver.URL); err != nil {
		r.receiver.Close()
		return nil, err
	}
	return r, nil
}

// readCounters returns what the sender used and did so far.
func (r *running) readCounters(ctx context.Context) (now sent, err error) {
	now.bytes = r.received.Load()
	if now.usage, err = r.Usage(); err != nil {
		return now, err
	}
	return now, eachSeries(ctx, r.metrics, func(name string, value float64) {
		switch {
		case strings.HasPrefix(name, r.scrapes):
			now.scrapes += value
		case r.samples != "" && strings.HasPrefix(name, r.samples) && !strings.Contains(name, `result="dropped"`) && !strings.Contains(name, `result="rejected"`):
			now.samples += value
		}
	})
}

// print prints a row.
func (r *running) print(before, after sent) {
	slices.Sort(r.steady)
	scrapes, samples := after.scrapes-before.scrapes, after.samples-before.samples
	micros := float64((after.usage.CPU - before.usage.CPU).Microseconds())
	each := func(total, of float64, digits int) string {
		if of == 0 {
			return "–"
		}
		return strconv.FormatFloat(total/of, 'f', digits, 64)
	}
	fmt.Printf("| %s | %.0f | %s | %s | %s | %s | %.0f | %d |\n", r.name, scrapes, each(micros, scrapes, 0), each(samples, scrapes, 0),
		each(micros, samples, 2), each(float64(after.bytes-before.bytes), samples, 1), r.steady[len(r.steady)/2]/(1<<20), after.usage.Peak>>20)
}
