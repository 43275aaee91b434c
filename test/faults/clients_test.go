//go:build e2e

package faults

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-metrics/weir/test/commands"
)

// TestIdleConnections opens three thousand connections for 20 s and sends nothing, while another caller
// asks as usual. It is not parallel, because it needs the whole machine.
func TestIdleConnections(t *testing.T) {
	const many, lasts = 3000, 20 * time.Second
	s := raise(t, options{})
	url, arguments := secure(t)
	api := s.serveAPI("127.0.0.1:0")
	weir := commands.Start(t, "weir", s.server(api, arguments...)...)
	w := s.watch(weir.Address(t), nobody, 0)
	w.complete(30 * time.Second)
	began := time.Now()
	var well lists
	openIdle(t, url, many, lasts, &well)
	over := time.Now()
	back := w.complete(2 * interval)
	w.end()
	during := w.between(began, over)
	during.check(t, allContainers)
	well.check(t, allPods)
	record(t, "IdleConnections", Result{
		Served: fmt.Sprintf("Right, at most %s old. %d LISTs of another caller, each over a new connection, had all pods; the slowest took %s.",
			seconds(during.healthy.oldest), well.made, seconds(well.slowest)),
		Lost:  "nothing",
		Ended: fmt.Sprintf("all numbers after %s", seconds(back.Sub(over))),
		Peer:  s.askPeer(api, func(url string, l *lists) { openIdle(t, url, many, lasts, l) }),
	})
}

// openIdle opens connections to an https URL and sends nothing, while another caller asks as usual.
func openIdle(t *testing.T, url string, many int, lasts time.Duration, l *lists) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	var asks sync.WaitGroup
	asks.Go(func() { l.ask(ctx, url, "reader", false, 100*time.Millisecond) })
	for i := range many {
		c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", strings.TrimPrefix(url, "https://"))
		if err != nil {
			t.Errorf("connection %d: %v", i+1, err)
			break
		}
		defer c.Close()
	}
	<-ctx.Done()
	asks.Wait()
}

// TestFlood lets a caller send valid LISTs as fast as it can for 20 s, while another caller asks as usual.
// It is not parallel, because it needs the whole machine.
func TestFlood(t *testing.T) {
	nightly(t)
	const connections, lasts = 100, 20 * time.Second
	const nodes, pods, containers = 10, 10, 2
	s := raise(t, options{nodes: nodes, pods: pods, containers: containers})
	url, arguments := secure(t)
	api := s.serveAPI("127.0.0.1:0")
	weir := commands.Start(t, "weir", s.server(api, arguments...)...)
	w := s.watch(weir.Address(t), nobody, 0)
	w.complete(30 * time.Second)
	began := time.Now()
	var well lists
	flood := floodLists(t, url, connections, lasts, &well)
	over := time.Now()
	back := w.complete(2 * interval)
	w.end()
	during := w.between(began, over)
	during.check(t, nodes*pods*containers)
	well.check(t, nodes*pods)
	record(t, "Flood", Result{
		Served: fmt.Sprintf("Right, at most %s old. %d LISTs of another caller had all pods; the slowest took %s. Of the flood, %d LISTs were answered and %d refused.",
			seconds(during.healthy.oldest), well.made, seconds(well.slowest), flood.made-len(flood.failed), len(flood.failed)),
		Lost:  "nothing",
		Ended: fmt.Sprintf("all numbers after %s", seconds(back.Sub(over))),
		Peer:  s.askPeer(api, func(url string, l *lists) { floodLists(t, url, connections, lasts, l) }),
	})
}

// floodLists sends LISTs over as many connections, each without a pause, while another caller asks as
// usual. It returns the LISTs of the flood.
func floodLists(t *testing.T, url string, connections int, lasts time.Duration, l *lists) *lists {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	flood := new(lists)
	var asks sync.WaitGroup
	for range connections {
		asks.Go(func() { flood.ask(ctx, url, "flood", true, 0) })
	}
	asks.Go(func() { l.ask(ctx, url, "reader", false, 100*time.Millisecond) })
	asks.Wait()
	return flood
}
