//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/weir-metrics/weir/test/bench/process"
)

// A program is one of the programs that are measured.
type program struct {
	name string
	path string
	args []string
	// scrapes and failures are the prefixes of the lines of its own counters on
	// /metrics.
	scrapes, failures string
}

const (
	weirName  = "weir"
	peerName  = "metrics-server"
	plainName = "fetch, HTTP/1.1 plain"
	beatFetch = "fetch, HTTP/1.1 plain, in weir's beats"
	peerFetch = "fetch, HTTP/2 gzip"
)

// peers returns both programs with the same settings: the same API server
// authorizes requests, the same CA verifies kubelets, and kubelets are read at
// the same interval.
func (w *environment) peers(port int) []program {
	o := w.options
	common := []string{
		"--kubeconfig=" + w.kubeconfig, "--authentication-kubeconfig=" + w.kubeconfig, "--authorization-kubeconfig=" + w.kubeconfig,
		"--secure-port=" + strconv.Itoa(port), "--cert-dir=" + filepath.Join(w.dir, "serving"),
		"--kubelet-certificate-authority=" + w.ca, "--kubelet-preferred-address-types=InternalIP", "--kubelet-use-node-status-port",
		"--metric-resolution=" + o.Resolution.String(),
	}
	return []program{
		{weirName, w.weir, append([]string{"server"}, common...), `weir_rounds_total{kind="kubelet:resource"}`, `weir_sources_failing{kind="kubelet:resource"}`},
		{peerName, w.cluster.Binary(peerName), common, `metrics_server_kubelet_request_total{success="true"}`, `metrics_server_kubelet_request_total{success="false"}`},
	}
}

// A target is a running program that gets requests.
type target struct {
	*process.Process
	program program
	base    string
	client  *http.Client
}

func (w *environment) startProgram(p program, base string) (*target, error) {
	c, err := process.Start(w.dir, p.name, nil, p.path, p.args...)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, Certificates: w.admin}, //nolint:gosec // each signs its own, on this machine
		ForceAttemptHTTP2: true, DisableCompression: true,
	}
	return &target{c, p, base, &http.Client{Transport: transport, Timeout: time.Minute}}, nil
}

// Stop ends the program.
func (t *target) Stop() {
	t.client.CloseIdleConnections()
	t.Process.Stop()
}

// An answer is the answer of a server to one request.
type answer struct {
	body  []byte
	asked time.Time
	took  time.Duration // to the last byte
}

// ask sends a GET for a path. It reuses buffer.
func (t *target) ask(ctx context.Context, path, accept, encoding string, buffer []byte) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.base+path, nil)
	if err != nil {
		return answer{}, fmt.Errorf("ask %s: %w", t.Name, err)
	}
	request.Header.Set("Accept", accept)
	if encoding != "" {
		request.Header.Set("Accept-Encoding", encoding)
	}
	asked := time.Now()
	response, err := t.client.Do(request)
	if err != nil {
		return answer{}, fmt.Errorf("ask %s: %w", t.Name, err)
	}
	defer response.Body.Close()
	into := bytes.NewBuffer(buffer[:0])
	_, err = io.Copy(into, response.Body)
	a := answer{into.Bytes(), asked, time.Since(asked)}
	switch {
	case err != nil:
		return a, fmt.Errorf("ask %s for %s: %w", t.Name, path, err)
	case response.StatusCode != http.StatusOK:
		return a, fmt.Errorf("ask %s for %s: status %s: %.200s", t.Name, path, response.Status, a.body)
	}
	// Small answers are not compressed, even if the client accepts that.
	if got := response.Header.Get("Content-Encoding"); got != "" && got != encoding {
		return a, fmt.Errorf("ask %s for %s: it answers in encoding %q, not %q", t.Name, path, got, encoding)
	}
	return a, nil
}

// counts returns how many reads of nodes have succeeded and failed, by the
// program's own counters.
func (t *target) counts(ctx context.Context) (scrapes, failures float64, err error) {
	a, err := t.ask(ctx, "/metrics", "text/plain", "", nil)
	if err != nil {
		return 0, 0, err
	}
	if scrapes, err = counter(a.body, t.program.scrapes); err != nil {
		return 0, 0, fmt.Errorf("count %s's scrapes: %w", t.Name, err)
	}
	failures, _ = counter(a.body, t.program.failures) // missing until there is a failure
	return scrapes, failures, nil
}

// counter returns the value of a series in Prometheus' text format.
func counter(text []byte, series string) (float64, error) {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(series+" ")); ok {
			return strconv.ParseFloat(string(bytes.TrimSpace(rest)), 64)
		}
	}
	return 0, fmt.Errorf("no series %s", series)
}
