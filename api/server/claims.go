package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// product is the Server header of all answers. By it weir recognizes its own answers behind the API
// server.
const product = "weir"

// withProduct sets the Server header.
func withProduct(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", product)
		h.ServeHTTP(w, r)
	})
}

// claimInterval is the time between two looks at who answers the API groups.
const claimInterval = time.Minute

// Claims notices when another server answers an API group that a Server serves: an APIService has
// one Service only, and two installations that both apply theirs take it from each other.
type Claims struct {
	paths  []string // such as /apis/external.metrics.k8s.io/v1beta1
	base   *url.URL
	client *http.Client
	log    *zap.Logger
	owned  *prometheus.GaugeVec
	others map[string]bool // groups that another server answered
}

// NewClaims returns the Claims for the API groups of s. config names the API server; its transport
// bounds the answers.
func (s *Server) NewClaims(config *rest.Config, registry prometheus.Registerer, log *zap.Logger) (*Claims, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	c := &Claims{
		base: base, client: client, log: log, others: map[string]bool{},
		owned: promauto.With(registry).NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_api_answered_by_weir",
			Help: "Whether the cluster's API server sends requests for an API group that weir serves to weir (1) or to another server (0). Absent without an APIService.",
		}, []string{"api"}),
	}
	for _, path := range s.generic.ListedPaths() {
		if strings.HasPrefix(path, "/apis/") && strings.Count(path, "/") == 3 {
			c.paths = append(c.paths, path)
		}
	}
	slices.Sort(c.paths)
	return c, nil
}

// Run looks at once and then each minute until ctx ends.
func (c *Claims) Run(ctx context.Context) error {
	defer c.client.CloseIdleConnections()
	wait.NonSlidingUntilWithContext(ctx, c.Look, claimInterval)
	return nil
}

// Look asks the API server who answers each group, and logs what changed.
func (c *Claims) Look(ctx context.Context) {
	for _, path := range c.paths {
		api := strings.TrimPrefix(path, "/apis/")
		own, err := c.isOwn(ctx, path)
		if err != nil {
			c.owned.DeleteLabelValues(api)
			continue
		}
		if own {
			c.owned.WithLabelValues(api).Set(1)
		} else {
			c.owned.WithLabelValues(api).Set(0)
		}
		if own == !c.others[api] {
			continue
		}
		c.others[api] = !own
		if own {
			c.log.Info("weir answers this API again", zap.String("api", api))
			continue
		}
		group, version, _ := strings.Cut(api, "/")
		c.log.Warn("another server answers this API, so nobody asks weir for it: its APIService names the Service; leave the API out of --apis if that is intended",
			zap.String("api", api), zap.String("APIService", version+"."+group))
	}
}

// isOwn reports whether weir answers path behind the API server. It returns an error if nobody answers
// it, or if the API server cannot be asked.
func (c *Claims) isOwn(ctx context.Context, path string) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath(path).String(), nil)
	if err != nil {
		return false, err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil { // so that the connection is used again
		return false, err
	}
	if response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("GET %s: %s", path, response.Status)
	}
	return response.Header.Get("Server") == product, nil
}
