package simulator_test

import (
	"fmt"
	"time"

	"github.com/weir-metrics/weir/test/simulator"
)

// A rate that is read from two payloads is the one that Truth returns. Both are
// pure functions of time, so the test waits for nothing.
func Example() {
	fault, err := simulator.Parse("restart pod=*-store-0-0 container=app at=30s")
	if err != nil {
		fmt.Println(err)
		return
	}
	start := time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)
	fleet, err := simulator.New(simulator.Options{Nodes: 3, Start: start, Faults: []simulator.Fault{fault}})
	if err != nil {
		fmt.Println(err)
		return
	}
	payload := fleet.Append(nil, fleet.Nodes()[0], simulator.Resource, start.Add(time.Minute))
	runs := 0
	for _, u := range fleet.Truth(start, start.Add(time.Minute)) {
		if u.Node == "node-0001" {
			runs++
		}
	}
	fmt.Println(len(payload) > 0, runs)
	// Output: true 61
}
