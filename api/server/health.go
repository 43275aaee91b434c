package server

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	apimetrics "k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // counts the requests to the API server
)

// HealthCheck is one condition of readiness or liveness.
type HealthCheck struct {
	// Name is one word: "nodes".
	Name string
	// WaitsFor returns one short line for each thing that is not ready, and none if the condition
	// is true. Everyone who reaches the port may read the lines.
	WaitsFor func() []string
}

func (c HealthCheck) checker() healthz.HealthChecker {
	return healthz.NamedCheck(c.Name, func(*http.Request) error {
		if waits := c.WaitsFor(); len(waits) > 0 {
			return fmt.Errorf("waits: %s", strings.Join(waits, "; "))
		}
		return nil
	})
}

// showReasons adds to the answer of a failing health endpoint what the checks wait for. The
// library's handler withholds the reason, because it does not know what it contains. Ours are
// written for whoever asks why a pod does not become ready.
func showReasons(next http.Handler, endpoint string, checks []HealthCheck) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != endpoint || len(checks) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		response := &bufferedResponse{header: w.Header(), code: http.StatusOK}
		next.ServeHTTP(response, r)
		body := response.body.String()
		if response.code != http.StatusOK {
			for _, c := range checks {
				body = strings.Replace(body, withheldLine(c.Name), failureLines(c), 1)
			}
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(response.code)
		_, _ = w.Write([]byte(body)) // a write fails only when the client has gone
	})
}

// withheldLine is the library's line for a failed check.
func withheldLine(name string) string { return "[-]" + name + " failed: reason withheld\n" }

func failureLines(c HealthCheck) string {
	waits := c.WaitsFor()
	if len(waits) == 0 {
		return withheldLine(c.Name) // the check passes by now, but the answer is already written
	}
	var s strings.Builder
	for _, wait := range waits {
		fmt.Fprintf(&s, "[-]%s: %s\n", c.Name, wait)
	}
	return s.String()
}

// bufferedResponse is a response that stays in memory until it is complete.
type bufferedResponse struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *bufferedResponse) Header() http.Header         { return r.header }
func (r *bufferedResponse) Write(b []byte) (int, error) { return r.body.Write(b) }
func (r *bufferedResponse) WriteHeader(code int)        { r.code = code }

// metricsHandler serves own together with the metrics of Kubernetes' libraries, which count the
// requests to this API.
func metricsHandler(own prometheus.Gatherer) http.Handler {
	apimetrics.Register()
	all := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return gatherBoth(own, legacyregistry.DefaultGatherer) })
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true})
}

// gatherBoth returns the families of first, and those of second that are not in first: both may
// have the metrics of the process and of the Go runtime.
func gatherBoth(first, second prometheus.Gatherer) ([]*dto.MetricFamily, error) {
	if first == nil {
		return second.Gather()
	}
	families, err := first.Gather()
	gathered := make(map[string]bool, len(families))
	for _, f := range families {
		gathered[f.GetName()] = true
	}
	rest, restErr := second.Gather()
	for _, f := range rest {
		if !gathered[f.GetName()] {
			families = append(families, f)
		}
	}
	if err == nil {
		err = restErr
	}
	return families, err
}
