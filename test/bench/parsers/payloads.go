package main

import (
	"fmt"
	"time"

	"github.com/weir-metrics/weir/test/capture"
	"github.com/weir-metrics/weir/test/simulator"
)

// endpoint is the endpoint of a payload.
type endpoint string

const (
	resourceEndpoint endpoint = "resource"
	summaryEndpoint  endpoint = "summary"
)

// payloads are the answers of one node in successive rounds: the same names
// with different numbers, as a parser gets them.
type payloads struct {
	name     string
	endpoint endpoint
	bodies   [][]byte
}

// successive is the number of rounds of a node that are parsed in turn.
const successive = 8

// load returns the payloads of the comparison: those captured from a real
// kubelet, and those of simulated nodes with 30 pods of 2 containers.
func load() ([]payloads, error) {
	all := []payloads{
		{name: "resource, captured", endpoint: resourceEndpoint},
		{name: "resource, simulated 30 pods × 2", endpoint: resourceEndpoint},
		{name: "summary, captured", endpoint: summaryEndpoint},
		{name: "summary, simulated 30 pods × 2", endpoint: summaryEndpoint},
		{name: "summary, simulated under pressure", endpoint: summaryEndpoint},
	}
	for i, read := range []func() ([][]byte, error){
		func() ([][]byte, error) { return captured("resource.prom") },
		func() ([][]byte, error) { return simulated(simulator.Resource, 0) },
		func() ([][]byte, error) { return captured("summary.json") },
		// On the first simulated node, all pressure is zero, as in the capture. On the
		// second one, none of it is.
		func() ([][]byte, error) { return simulated(simulator.Summary, 0) },
		func() ([][]byte, error) { return simulated(simulator.Summary, 1) },
	} {
		var err error
		if all[i].bodies, err = read(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// captured returns the answers of a real kubelet.
func captured(file string) (bodies [][]byte, err error) {
	for i := range successive {
		body, err := capture.Load(fmt.Sprintf("01-steady/%02d/%s", i, file))
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, body)
	}
	return bodies, nil
}

// simulated returns the answers of the simulated node with that index.
func simulated(e simulator.Endpoint, node int) (bodies [][]byte, err error) {
	start := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	fleet, err := simulator.New(simulator.Options{Start: start, Nodes: 2})
	if err != nil {
		return nil, err
	}
	for i := range successive {
		now := start.Add(time.Hour + time.Duration(i)*15*time.Second)
		bodies = append(bodies, fleet.Append(nil, fleet.Nodes()[node], e, now))
	}
	return bodies, nil
}
