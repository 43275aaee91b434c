package app

import (
	"strings"
	"testing"
)

// TestBanner checks that weir names where it serves, and a command that works as it was called itself.
func TestBanner(t *testing.T) {
	f := func(p *plan, local string, urls []string, want string) {
		t.Helper()
		w := &weirProcess{plan: p, served: served{localURL: local, urls: urls}}
		var out strings.Builder
		if w.writeBanner(&out, "bin/weir"); out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	}
	const local = "http://127.0.0.1:8087"
	machine := func(address string) *plan { return &plan{Host: &hostPlan{}, Listen: address} }
	f(machine("127.0.0.1:8087"), local, []string{local},
		"weir serves on http://127.0.0.1:8087\nIn a browser:         http://127.0.0.1:8087/ui/\nIn another terminal:  bin/weir top cgroups --watch\n")
	f(machine(":9000"), "http://127.0.0.1:9000", []string{"http://127.0.0.1:9000"},
		"weir serves on http://127.0.0.1:9000\nIn a browser:         http://127.0.0.1:9000/ui/\nIn another terminal:  bin/weir top cgroups --watch --server=http://127.0.0.1:9000\n")
	f(&plan{Listen: "127.0.0.1:8087"}, local, []string{local, shownURL("[::]:10250")},
		"weir serves on http://127.0.0.1:8087 and https://127.0.0.1:10250 (all addresses)\nIn a browser:         http://127.0.0.1:8087/ui/\n")
	f(&plan{}, "", []string{shownURL("0.0.0.0:10250")}, "weir serves on https://127.0.0.1:10250 (all addresses)\n")
	f(&plan{}, "", []string{shownURL("127.0.0.1:10250")}, "weir serves on https://127.0.0.1:10250\n")
	f(&plan{}, "", []string{shownURL("192.0.2.1:10250")}, "weir serves on https://192.0.2.1:10250\n")
	f(&plan{}, "", nil, "weir serves on no address\n")
}
