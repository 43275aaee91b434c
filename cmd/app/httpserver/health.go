package httpserver

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/weir-metrics/weir/api/server"
)

// HandleHealth serves /livez and /healthz, which succeed while the process answers, and /readyz.
// That is 503, with what it waits for, until every check passes.
func (m *Mux) HandleHealth(checks ...server.HealthCheck) {
	alive := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	m.Handle("/livez", "whether the process lives", alive)
	m.Handle("/healthz", "as /livez, by its older name", alive)
	m.Handle("/readyz", "whether everything is served, and if not, what is waited for", ready(checks))
}

func ready(checks []server.HealthCheck) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var text strings.Builder
		holds := true
		for _, c := range checks {
			waits := c.WaitsFor()
			if len(waits) == 0 {
				fmt.Fprintf(&text, "[+] %s\n", c.Name)
				continue
			}
			holds = false
			for _, wait := range waits {
				fmt.Fprintf(&text, "[-] %s: %s\n", c.Name, wait)
			}
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if holds {
			text.WriteString("ready\n")
		} else {
			w.WriteHeader(http.StatusServiceUnavailable)
			text.WriteString("not ready\n")
		}
		fmt.Fprint(w, text.String())
	})
}
