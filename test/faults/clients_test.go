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
	weir := commands.Start(t, "weir", s.server(s.serveAPI("127.0.0.1:0"), arguments...)...)
	w := s.watch(weir.Address(t), nobody)
	w.complete(30 * time.Second)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	var well lists
	var asks sync.WaitGroup
	asks.Go(func() { well.ask(ctx, url, "reader", false, 100*time.Millisecond) })
	open := 0
	for range many {
		c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", strings.TrimPrefix(url, "https://"))
		if err != nil {
			t.Errorf("connection %d: %v", open+1, err)
			break
		}
		defer c.Close()
		open++
	}
	<-ctx.Done()
	asks.Wait()
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
	})
}
