//go:build e2e

package faults

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cluster/harness"
	"github.com/weir-metrics/weir/test/commands"
	"github.com/weir-metrics/weir/test/promtest"
)

// peerInterval is the interval between two reads of a node in metrics-server's own manifest.
const peerInterval = PeerResolution * time.Second

// peerRecovery is how long a row waits after a fault until metrics-server has all numbers: two reads of
// each node. The first may still fail.
const peerRecovery = 3*peerInterval + timeout

// buildPeer returns the path of metrics-server.
var buildPeer = sync.OnceValues(func() (string, error) {
	return harness.BuildMetricsServer(context.Background(), os.Stderr)
})

// peer is a metrics-server that reads the same kubelets and the same API server as weir.
type peer struct {
	*commands.Process
	url    string
	client *http.Client
}

// startPeer starts metrics-server with the flags of its own manifest, in the memory cgroup with this
// folder if one is given. It returns nil without -long.
func (s *stage) startPeer(api *endpoint, cgroup string) *peer {
	s.t.Helper()
	if !*long {
		return nil
	}
	program, err := buildPeer()
	if err != nil {
		s.t.Fatal(err)
	}
	address := promtest.Address(s.t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		s.t.Fatal(err)
	}
	config := s.kubeconfig(api)
	arguments := []string{
		"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config, "--authentication-skip-lookup",
		"--bind-address=127.0.0.1", "--secure-port=" + port, "--cert-dir=" + filepath.Join(s.t.TempDir(), "serving"),
		"--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname", "--kubelet-use-node-status-port",
		"--kubelet-certificate-authority=" + s.ca, "--metric-resolution=" + peerInterval.String(),
	}
	p := &peer{url: "https://" + address}
	p.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	s.t.Cleanup(p.client.CloseIdleConnections)
	if cgroup != "" {
		p.Process = commands.StartInCgroup(s.t, cgroup, program, arguments...)
	} else {
		p.Process = commands.Start(s.t, program, arguments...)
	}
	return p
}

// watchPeer begins to ask metrics-server until the end of the test. It returns nil without -long.
func (s *stage) watchPeer(p *peer, struck func(*usage.Item) bool, ahead time.Duration) *watch {
	if p == nil {
		return nil
	}
	w := &watch{s: s, interval: peerInterval, rounding: time.Second, struck: struck, ahead: ahead}
	w.ask = func() ([]usage.Item, error) {
		list, err := commands.ListPods(s.t.Context(), p.client, p.url, "watch")
		if err != nil {
			return nil, err
		}
		return s.items(list), nil
	}
	w.begin()
	return w
}

// items returns all containers of the stage, with the usage that the list has of them.
func (s *stage) items(list *metricsv1beta1.PodMetricsList) []usage.Item {
	type name struct{ namespace, pod, container string }
	served := map[name]*usage.CPUUsage{}
	for i := range list.Items {
		p := &list.Items[i]
		for k := range p.Containers {
			c := &p.Containers[k]
			// Quantities of nanocores have an exact value at the scale of nano.
			served[name{p.Namespace, p.Name, c.Name}] = &usage.CPUUsage{
				Nanocores: c.Usage.Cpu().ScaledValue(-9), Time: p.Timestamp.Time, WindowSeconds: p.Window.Seconds(),
			}
		}
	}
	var items []usage.Item
	added := map[name]bool{} // a pod and the one that replaces it have the same name
	for _, n := range s.fleet.Nodes() {
		for _, p := range n.Pods() {
			for _, c := range p.Containers {
				of := name{p.Namespace, p.Name, c.Name}
				if added[of] {
					continue
				}
				added[of] = true
				it := usage.Item{Node: metric.NodeName(n.Name), Namespace: metric.Namespace(of.namespace), Pod: metric.PodName(of.pod), Container: of.container, CPU: served[of]}
				if it.CPU == nil {
					it.Reasons = []usage.GroupReason{{Reason: "no number"}}
				}
				items = append(items, it)
			}
		}
	}
	return items
}

// peerResult waits until metrics-server has all numbers after the fault, for peerRecovery at most, and
// ends the watch. It returns what was served as text, which is empty without -long.
func (w *watch) peerResult(began, over time.Time) string {
	if w == nil {
		return ""
	}
	back := w.firstComplete(over)
	for back.IsZero() && time.Since(over) < peerRecovery {
		time.Sleep(pause)
		back = w.firstComplete(over)
	}
	w.end()
	all := w.between(began, time.Now())
	text := all.healthy.text(began)
	if all.other.containers > 0 {
		text = fmt.Sprintf("Others: %s. Theirs: %s", text, all.other.text(began))
	} else {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	if all.failed > 0 {
		text += fmt.Sprintf("; %d of %d requests failed", all.failed, all.looks)
	}
	if back.IsZero() {
		return text + fmt.Sprintf("; not all numbers again within %s.", seconds(peerRecovery))
	}
	return text + fmt.Sprintf("; all numbers again after %s.", seconds(max(0, back.Sub(over))))
}

// firstComplete returns the time of the first answer since a moment that has all numbers, or zero.
func (w *watch) firstComplete(since time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.looks {
		if l := &w.looks[i]; !l.at.Before(since) && l.isComplete() {
			return l.at
		}
	}
	return time.Time{}
}

// text says what was served, as a part of a sentence.
func (s *span) text(began time.Time) string {
	var b strings.Builder
	if len(s.wrong) > 0 {
		fmt.Fprintf(&b, "**%d wrong numbers**", len(s.wrong))
	} else {
		b.WriteString("right")
	}
	fmt.Fprintf(&b, ", at most %s old", seconds(s.oldest))
	switch {
	case s.fewest == s.containers:
	case s.fewest == 0:
		fmt.Fprintf(&b, "; all absent, the first from %s after the beginning", seconds(s.firstAbsent.Sub(began)))
	default:
		fmt.Fprintf(&b, "; at most %d of %d absent, the first from %s after the beginning", s.containers-s.fewest, s.containers, seconds(s.firstAbsent.Sub(began)))
	}
	return b.String()
}

// result says how many LISTs failed, as text.
func (l *lists) result() string {
	if len(l.failed) > 0 {
		return fmt.Sprintf("**%d of %d LISTs failed**", len(l.failed), l.made)
	}
	return fmt.Sprintf("None of %d LISTs failed", l.made)
}

// askPeer calls disturb, which asks metrics-server for LISTs, and returns how these were answered. It
// is empty without -long.
func (s *stage) askPeer(api *endpoint, disturb func(url string, l *lists)) string {
	p := s.startPeer(api, "")
	if p == nil {
		return ""
	}
	w := s.watchPeer(p, nobody, 0)
	w.complete(time.Minute)
	began := time.Now()
	var l lists
	disturb(p.url, &l)
	return fmt.Sprintf("%s; the slowest took %s. %s", l.result(), seconds(l.slowest), w.peerResult(began, time.Now()))
}
