package main

import (
	"fmt"
	"time"

	"github.com/weir-metrics/weir/test/capture"
	"github.com/weir-metrics/weir/test/simulator"
)

// endpoint is what a payload is the answer of.
type endpoint string

const (
	resourceEndpoint endpoint = "resource"
	summaryEndpoint  endpoint = "summary"
)

// payloads are the answers of one node in successive rounds: the same names, other
// numbers, as a parser meets them.
type payloads struct {
	name     string
	endpoint endpoint
	bodies   [][]byte
}

// successive is how many rounds of a node are parsed in turn.
const successive = 8

// load returns the payloads to compare on: of a real kubelet, captured, and of simulated
// nodes of 30 pods of 2 containers.
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
		// Pressure is all zeros, as where it was captured; on the other node it is nowhere.
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

// captured returns what a real kubelet answered.
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

// simulated returns what the simulated node of that index answers.
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
