package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/weir-metrics/weir/simulator"
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

// load returns the payloads to compare on: of a real kubelet, captured, and of a
// simulated node of 30 pods of 2 containers.
func load(captures string) ([]payloads, error) {
	var all []payloads
	for _, p := range []struct {
		endpoint  endpoint
		file      string
		simulated simulator.Endpoint
	}{
		{resourceEndpoint, "resource.prom", simulator.Resource},
		{summaryEndpoint, "summary.json", simulator.Summary},
	} {
		real := payloads{name: fmt.Sprintf("%s, captured", p.endpoint), endpoint: p.endpoint}
		for i := range successive {
			body, err := unpack(filepath.Join(captures, "01-steady", fmt.Sprintf("%02d", i), p.file+".gz"))
			if err != nil {
				return nil, err
			}
			real.bodies = append(real.bodies, body)
		}
		made, err := simulated(p.simulated)
		if err != nil {
			return nil, err
		}
		all = append(all, real, payloads{name: fmt.Sprintf("%s, simulated 30 pods × 2", p.endpoint), endpoint: p.endpoint, bodies: made})
	}
	return all, nil
}

func simulated(e simulator.Endpoint) ([][]byte, error) {
	start := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	fleet, err := simulator.New(simulator.Options{Start: start})
	if err != nil {
		return nil, err
	}
	var bodies [][]byte
	for i := range successive {
		now := start.Add(time.Hour + time.Duration(i)*15*time.Second)
		bodies = append(bodies, fleet.Append(nil, fleet.Nodes()[0], e, now))
	}
	return bodies, nil
}

func unpack(path string) ([]byte, error) {
	packed, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read capture: %w; run from test/bench, or give -captures", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", path, err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", path, err)
	}
	return body, nil
}
