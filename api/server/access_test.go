package server_test

import (
	"testing"

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
