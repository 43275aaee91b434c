package server_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/server"
)

// A token for another audience is refused, and the server's own audience is accepted beside that of
// the API server. The API server decides which audiences a token has.
func TestTokensOfAnAudience(t *testing.T) {
	c := newCluster(t)
	c.user("weir", "get /metrics")
	ordinary := c.user("jane", "get /metrics")
	r := start(t, c, func(_ *server.Options, config *server.Config) { config.Audience = "weir-agent" }, nil)
	plain := start(t, c, nil, nil)
	for _, test := range []struct {
		what, token string
		own, none   int // the answers of a server with this audience, and of one with none
	}{
		{"no audience", ordinary, 200, 200},
		{"the API server", c.tokenFor("weir", "api-server"), 200, 200},
		{"agents", c.tokenFor("weir", "weir-agent"), 200, 401},
		{"replicas", c.tokenFor("weir", "weir-replica"), 401, 401},
		{"agents and replicas", c.tokenFor("weir", "weir-replica", "weir-agent"), 200, 401},
		{"agents, made up", "e30.eyJhdWQiOlsid2Vpci1hZ2VudCJdfQ.bm9uZQ", 401, 401},
		{"nothing that can be read", "a.%%%.c", 401, 401},
	} {
		if got := r.get(t, "/metrics", bearer(test.token)).code; got != test.own {
			t.Errorf("a token for %s: got %d from a server for weir-agent, want %d", test.what, got, test.own)
		}
		if got := plain.get(t, "/metrics", bearer(test.token)).code; got != test.none {
			t.Errorf("a token for %s: got %d from a server without an audience, want %d", test.what, got, test.none)
		}
	}
}

// Made-up tokens of one address cost the API server only a few TokenReviews. Health checks, callers
// that come through the API server and callers with a right token are answered meanwhile.
func TestMadeUpTokens(t *testing.T) {
	c := newCluster(t)
	jane := bearer(c.user("jane", "get /metrics"))
	r := start(t, c, nil, nil)
	proxied := behindProxy(c.proxyCA.client(t, "front-proxy-client"), "jane")
	if got := r.get(t, "/metrics", jane).code; got != 200 {
		t.Fatalf("a right token: %d, want 200", got)
	}
	c.mu.Lock()
	before := c.tokenReviews
	c.mu.Unlock()
	codes, began := map[int]int{}, time.Now()
	var mu sync.Mutex
	var callers sync.WaitGroup
	for caller := range 6 {
		callers.Go(func() {
			for i := range 100 {
				code := r.get(t, "/metrics", bearer(fmt.Sprintf("made-up-%d-%d", caller, i))).code
				mu.Lock()
				codes[code]++
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	c.mu.Lock()
	reviews := c.tokenReviews - before
	c.mu.Unlock()
	// 30 at once, 10 that were under way at the same time, and one for each second.
	most := 41 + int(time.Since(began)/time.Second)
	if reviews > most || codes[401] != reviews || codes[401]+codes[429] != 600 {
		t.Errorf("600 made-up tokens: %d TokenReviews, answers %v; want at most %d TokenReviews, and 401 or 429", reviews, codes, most)
	}
	for what, got := range map[string]int{
		"a right token": r.get(t, "/metrics", jane).code, "through the API server": r.get(t, "/metrics", proxied).code, "health": r.get(t, "/livez", nil).code,
	} {
		if got != 200 {
			t.Errorf("%s: %d, want 200", what, got)
		}
	}
}
