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

// endpoints are what the kubelets are asked for.
var endpoints = []string{"resource", "cadvisor"}

// writePath is the path at which Prometheus takes remote write.
const writePath = "/api/v1/write"

// senders returns the programs that are measured.
func (p plan) senders(resolution time.Duration, nodes int) []sender {
	weir := func(flags func(receiver string) []string) func(context.Context, *cluster, string, string) (string, *process.Process, error) {
		return func(ctx context.Context, c *cluster, endpoint, receiver string) (string, *process.Process, error) {
			base, weir, err := c.startWeir(ctx, p, resolution, nodes, append(flags(receiver), "--source", c.source+"&endpoint="+endpoint)...)
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

// sent has what a sender used and did in a window.
type sent struct {
	usage            process.Usage
	scrapes, samples float64
	bytes            int64 // that the receiver got
}

// measureSenders prints a table for each endpoint.
func measureSenders(ctx context.Context, p plan, resolution time.Duration, nodes int) error {
	settle, window := p.times(resolution)
	for _, endpoint := range endpoints {
		fmt.Printf("/metrics/%s of %d nodes every %v: %d pods on a node, %d containers in a pod; measured for %v after %v.\n\n", endpoint, nodes, resolution, p.pods, p.containers, window, settle)
		fmt.Print("| program | node-scrapes | CPU a node-scrape (µs) | samples a node-scrape | CPU a sample (µs) | bytes a sample | RSS steady (MiB) | RSS peak (MiB) |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
		for _, s := range p.senders(resolution, nodes) {
			if p.only != "" && !strings.Contains(s.name, p.only) {
				continue
			}
			if err := s.measure(ctx, p, endpoint, nodes, settle, window); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		fmt.Println()
	}
	return nil
}

// measure prints the row of one sender.
func (s *sender) measure(ctx context.Context, p plan, endpoint string, nodes int, settle, window time.Duration) error {
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
	var received atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body) // a broken request counts as far as it came
		received.Add(n)
		w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "0") // says that this is a receiver of version 2.0
	}))
	defer receiver.Close()
	metrics, program, err := s.start(ctx, c, endpoint, receiver.URL)
	if err != nil {
		return err
	}
	defer program.Stop()
	look := func() (now sent, err error) {
		now.bytes = received.Load()
		if now.usage, err = program.Usage(); err != nil {
			return now, err
		}
		return now, eachSeries(ctx, metrics, func(name string, value float64) {
			switch {
			case strings.HasPrefix(name, s.scrapes):
				now.scrapes += value
			case s.samples != "" && strings.HasPrefix(name, s.samples) && !strings.Contains(name, `result="dropped"`) && !strings.Contains(name, `result="rejected"`):
				now.samples += value
			}
		})
	}
	if err := program.Wait(ctx, settle); err != nil {
		return err
	}
	before, err := look()
	if err != nil {
		return err
	}
	var steady []float64
	for began := time.Now(); time.Since(began) < window; {
		if err := program.Wait(ctx, time.Second); err != nil {
			return err
		}
		u, err := program.Usage()
		if err != nil {
			return err
		}
		steady = append(steady, float64(u.Resident))
	}
	after, err := look()
	if err != nil {
		return err
	}
	slices.Sort(steady)
	scrapes, samples := after.scrapes-before.scrapes, after.samples-before.samples
	micros := float64((after.usage.CPU - before.usage.CPU).Microseconds())
	each := func(total, of float64, digits int) string {
		if of == 0 {
			return "–"
		}
		return strconv.FormatFloat(total/of, 'f', digits, 64)
	}
	fmt.Printf("| %s | %.0f | %s | %s | %s | %s | %.0f | %d |\n", s.name, scrapes, each(micros, scrapes, 0), each(samples, scrapes, 0),
		each(micros, samples, 2), each(float64(after.bytes-before.bytes), samples, 1), steady[len(steady)/2]/(1<<20), after.usage.Peak>>20)
	return nil
}
