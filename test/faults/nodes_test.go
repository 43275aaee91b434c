//go:build e2e

package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/test/commands"
)

const outage = "the readings of these nodes in the 90 s"

// nodeFaults are the faults of TestNodes, in the simulator's language without node, at and for.
var nodeFaults = []struct {
	name, fault string
	reason      string        // of the absent numbers; empty if the numbers need not become absent
	all         bool          // whether all numbers must be there, and young
	ahead       time.Duration // by how much the clock jumps
	lost        string
}{
	{name: "hang", fault: "hang", reason: "NodeTimeout", lost: outage},
	{name: "refused-connections", fault: "down", reason: "NodeUnreachable", lost: outage},
	{name: "garbage", fault: "garbage", reason: "NodeBadPayload", lost: outage},
	{name: "error-page", fault: "garbage style=html", reason: "NodeBadPayload", lost: outage},
	{name: "refused-credentials", fault: "refuse", reason: "NodeUnauthorized", lost: outage},
	{name: "runtime", fault: "scrapeerror", reason: "NodeScrapeError", lost: outage},
	{name: "expired-certificate", fault: "certificate style=expired", reason: "NodeCertificate", lost: outage},
	{name: "late", fault: "slow delay=9s", lost: "readings that would have been due while an answer was awaited"},
	{name: "ten-times", fault: "bulk", all: true, lost: "nothing"},
	{name: "clock-ahead", fault: "clockstep", ahead: 5 * time.Minute, lost: "nothing; the numbers have the times of the nodes' clocks"},
	{name: "clock-behind", fault: "clockstep", ahead: -5 * time.Minute, lost: "nothing; the numbers have the times of the nodes' clocks"},
}

// hold is how long weir serves a last known value.
const hold = time.Minute

// timeout is how long a read may take.
const timeout = 10 * time.Second

// isStruck reports whether the node is of the third that the faults concern.
func isStruck(it *usage.Item) bool {
	var n int
	_, err := fmt.Sscanf(string(it.Node), "node-%d", &n)
	return err == nil && n%3 == 0
}

// TestNodes injects faults into a third of the nodes.
func TestNodes(t *testing.T) {
	nightly(t)
	const begins, lasts = 75 * time.Second, 90 * time.Second
	for _, f := range nodeFaults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			var faults []string
			for i := 3; i <= 30; i += 3 {
				node := fmt.Sprintf(" node=node-%04d", i)
				if f.ahead != 0 {
					faults = append(faults, fmt.Sprintf("%s%s by=%v at=%v", f.fault, node, f.ahead, begins),
						fmt.Sprintf("%s%s by=%v at=%v", f.fault, node, -f.ahead, begins+lasts))
					continue
				}
				faults = append(faults, fmt.Sprintf("%s%s at=%v for=%v", f.fault, node, begins, lasts))
			}
			s := raise(t, options{faults: faults})
			api := s.serveAPI("127.0.0.1:0")
			beside := s.watchPeer(s.startPeer(api, ""), isStruck, f.ahead)
			weir := commands.Start(t, "weir", s.server(api)...)
			w := s.watch(weir.Address(t), isStruck, f.ahead)
			w.complete(begins)
			beside.complete(begins)
			s.until(begins)
			s.until(begins + lasts)
			back := w.complete(6*interval + timeout)
			over := s.start.Add(begins + lasts)
			time.Sleep(2 * interval)
			w.end()

			during := w.between(s.start.Add(begins), over)
			all := w.between(s.start.Add(begins), time.Now())
			all.check(t, allContainers*2/3)
			if took := back.Sub(over); took > 6*interval {
				t.Errorf("the numbers were back after %v, want %v at most", took, 6*interval)
			}
			var served strings.Builder
			fmt.Fprintf(&served, "Others: right, at most %s old. Theirs: ", seconds(all.healthy.oldest))
			switch other := &during.other; {
			case f.all:
				if other.fewest != allContainers/3 || other.oldest > 2*interval {
					t.Errorf("at least %d of their numbers were served, at most %v old; want all %d, at most %v old", other.fewest, other.oldest, allContainers/3, 2*interval)
				}
				fmt.Fprintf(&served, "right, at most %s old.", seconds(other.oldest))
			case f.reason != "":
				if other.fewest != 0 || len(other.reasons) != 1 || other.reasons[f.reason] == 0 {
					t.Errorf("at least %d of their numbers were served, absent with %v; want none, with %s", other.fewest, other.reasons, f.reason)
				}
				// A value that is too old is dropped at the end of the next read.
				if most := hold + timeout + 2*interval; other.oldest > most {
					t.Errorf("a number of theirs was served when it was %v old, want at most %v", other.oldest, most)
				}
				fmt.Fprintf(&served, "the last known, at most %s old; absent from %s after the beginning (%s).",
					seconds(other.oldest), seconds(other.firstAbsent.Sub(s.start.Add(begins))), f.reason)
			case other.firstAbsent.IsZero():
				fmt.Fprintf(&served, "right or the last known, at most %s old.", seconds(other.oldest))
			default:
				fmt.Fprintf(&served, "right or the last known, at most %s old; some absent from %s after the beginning (%s).",
					seconds(other.oldest), seconds(other.firstAbsent.Sub(s.start.Add(begins))), other.reasonNames())
			}
			record(t, "Nodes/"+f.name, Result{
				Served: served.String(),
				Lost:   f.lost,
				Ended:  fmt.Sprintf("all numbers again after %s", seconds(max(0, back.Sub(over)))),
				Peer:   beside.peerResult(s.start.Add(begins), over),
			})
		})
	}
}
