//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
)

// fetched is the state that the process of the fetch floor prints, five times a
// second.
type fetched struct {
	Scrapes int64 `json:"scrapes"`
	Failed  int64 `json:"failed"`
	Bytes   int64 `json:"bytes"`
}

// beat is the same as weir's: nodes that are due within one beat are read
// together. The stricter floor has the same rhythm, because a single fetch
// costs a process with cold caches at least twice as much.
const beat = 250 * time.Millisecond

// newFloor returns the command that fetches every node's resource metrics once
// in each resolution and drops them. Every program in Go pays at least this
// cost.
func newFloor() *cobra.Command {
	var ca string
	var nodes, port int
	var resolution, together time.Duration
	var asPeer bool
	c := &cobra.Command{
		Use: "floor", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := fetcher(ca, asPeer)
			if err != nil {
				return err
			}
			fleet, err := Shape{Nodes: nodes, Pods: 1, Containers: 1, Start: time.Now()}.fleet()
			if err != nil {
				return err
			}
			var urls []string
			for _, n := range fleet.Nodes() {
				urls = append(urls, fmt.Sprintf("https://%s:%d/metrics/resource", n.Address, port))
			}
			fleet = nil // only the fetches are measured
			return fetch(cmd.Context(), client, urls, resolution, together, json.NewEncoder(cmd.OutOrStdout()))
		},
	}
	c.Flags().StringVar(&ca, "ca-file", "", "the kubelets' authority")
	c.Flags().IntVar(&nodes, "nodes", 1, "number of nodes")
	c.Flags().IntVar(&port, "port", 10250, "port of the kubelets")
	c.Flags().DurationVar(&resolution, "resolution", 15*time.Second, "time between two fetches of a node")
	c.Flags().DurationVar(&together, "together", 0, "nodes that are due within so long of each other are fetched together")
	c.Flags().BoolVar(&asPeer, "as-peer", false, "by the transport that metrics-server uses: HTTP/2 and gzip; without, HTTP/1.1 without compression")
	return c
}

func fetcher(ca string, asPeer bool) (*http.Client, error) {
	if asPeer {
		t, err := rest.TransportFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: ca}})
		if err != nil {
			return nil, fmt.Errorf("make transport: %w", err)
		}
		return &http.Client{Transport: t, Timeout: 10 * time.Second}, nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read authority: no certificate in %s", ca)
	}
	return &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableCompression: true},
		Timeout:   10 * time.Second,
	}, nil
}

// fetch gets each URL once in each resolution, spread evenly over it. URLs that
// are due within the same time of length together are fetched at once.
func fetch(ctx context.Context, client *http.Client, urls []string, resolution, together time.Duration, out *json.Encoder) error {
	var scrapes, failed, size atomic.Int64
	var wait sync.WaitGroup
	for i, url := range urls {
		wait.Go(func() {
			first := time.NewTimer((resolution * time.Duration(i) / time.Duration(len(urls))).Truncate(together))
			defer first.Stop()
			select {
			case <-ctx.Done():
				return
			case <-first.C:
			}
			every := time.NewTicker(resolution)
			defer every.Stop()
			for {
				n, err := drop(ctx, client, url)
				if err != nil {
					failed.Add(1)
				} else {
					scrapes.Add(1)
					size.Add(n)
				}
				select {
				case <-ctx.Done():
					return
				case <-every.C:
				}
			}
		})
	}
	defer wait.Wait()
	report := time.NewTicker(200 * time.Millisecond)
	defer report.Stop()
	for {
		if err := out.Encode(fetched{scrapes.Load(), failed.Load(), size.Load()}); err != nil {
			return fmt.Errorf("report: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-report.C:
		}
	}
}

func drop(ctx context.Context, client *http.Client, url string) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	n, err := io.Copy(io.Discard, answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", answer.Status)
	}
	return n, err
}
