package run

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/cluster/gates"
	"github.com/weir-metrics/weir/test/background"
)

// gatesServer answers for an API server, by path. A path without an answer is forbidden.
type gatesServer struct {
	answers map[string]string
	silent  bool // requests wait until they are given up
	asked   atomic.Int32
}

func (s *gatesServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked.Add(1)
	if s.silent {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	answer := &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	body, ok := s.answers[r.URL.Path]
	if ok {
		answer.StatusCode = http.StatusOK
	}
	answer.Body = io.NopCloser(strings.NewReader(body))
	return answer, nil
}

const (
	version136  = `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`
	gateMetrics = "kubernetes_feature_enabled{name=\"HPAScaleToZero\",stage=\"ALPHA\"} 1\n"
)

// settingsOf returns the settings of a cluster.
func settingsOf(t *testing.T, s *gatesServer, p *Plan) *clusterSettings {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://cluster", Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	return newClusterSettings(p, client.Discovery().RESTClient(), zap.NewNop())
}

// expectGates checks whether scaling to zero is on, and what is said of it if that is assumed.
func (c *clusterSettings) expectGates(t *testing.T, when string, zero bool, assumed string) {
	t.Helper()
	s, on := c.now()
	got := on.Assumed(gates.ScaleToZero)
	if s.ScaleToZero != zero || !strings.Contains(got, assumed) || assumed == "" && got != "" {
		t.Errorf("%s: %v, %q, want %v, %q", when, s.ScaleToZero, got, zero, assumed)
	}
}

// TestSettingsFollowTheCluster checks that the feature gates are assumed while the API server is
// silent, that the cluster is asked until it has named them, and that nothing waits but decisions.
func TestSettingsFollowTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &gatesServer{silent: true, answers: map[string]string{}}
		c := settingsOf(t, server, &Plan{})
		background.Run(t, c.run)
		time.Sleep(time.Minute)
		synctest.Wait()
		c.expectGates(t, "silent", true, "version is not known")
		waiting, stop := context.WithTimeout(t.Context(), time.Second)
		if c.awaitAnswer(waiting) {
			t.Error("silent: there is an answer")
		}
		stop()

		server.silent, server.answers["/version"] = false, version136
		if !c.awaitAnswer(t.Context()) {
			t.Error("version 1.36: there is no answer")
		}
		c.expectGates(t, "version 1.36 alone", false, "HPAScaleToZero is off, the default of Kubernetes 1.36")

		server.answers["/metrics"] = gateMetrics
		time.Sleep(askGatesLate)
		synctest.Wait()
		c.expectGates(t, "with the gate on", true, "")

		server.asked.Store(0)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := server.asked.Load(); n != 0 {
			t.Errorf("%d requests after all was known", n)
		}
	})
}

// TestARefusalIsAnAnswer checks that decisions begin, by assumed gates, if weir may not read the
// release.
func TestARefusalIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settingsOf(t, &gatesServer{}, &Plan{})
		background.Run(t, c.run)
		if !c.awaitAnswer(t.Context()) {
			t.Error("there is no answer")
		}
		c.expectGates(t, "forbidden", true, "version is not known")
	})
}

// TestGatesThatTheShippedRightsExclude checks the levels of two failures: with the rights of the manifests, weir may
// not read the gates, which is only for debugging. Another failure is logged once, as information.
func TestGatesThatTheShippedRightsExclude(t *testing.T) {
	f := func(server *gatesServer, want zapcore.Level) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			core, logs := observer.New(zap.DebugLevel)
			c := settingsOf(t, server, &Plan{})
			c.log = zap.New(core)
			background.Run(t, c.run)
			time.Sleep(time.Hour)
			synctest.Wait()
			if all := logs.All(); len(all) != 1 || all[0].Level != want || !strings.Contains(all[0].Message, "not all feature gates of the cluster can be read") {
				t.Errorf("got %v, want one line of level %v", all, want)
			}
		})
	}
	f(&gatesServer{answers: map[string]string{"/version": version136}}, zap.DebugLevel) // 403 of /metrics
	f(&gatesServer{answers: map[string]string{"/version": "?"}}, zap.InfoLevel)
}

// TestAFlagOverridesAGate checks that a flag counts more than the cluster.
func TestAFlagOverridesAGate(t *testing.T) {
	c := settingsOf(t, &gatesServer{}, &Plan{ScaleToZero: new(true)})
	c.set("v1.36.3", nil)
	c.expectGates(t, "on by the flag", true, "")
}

// TestAskGatesSaysWhatFailed checks the errors.
func TestAskGatesSaysWhatFailed(t *testing.T) {
	f := func(server *gatesServer, release, want string) {
		t.Helper()
		got, _, err := askGates(t.Context(), settingsOf(t, server, &Plan{}).api)
		if got != release || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q: %s", got, err, release, want)
		}
	}
	f(&gatesServer{}, "", "ask the API server for its version")
	f(&gatesServer{answers: map[string]string{"/version": "?"}}, "", "parse the API server's version")
	f(&gatesServer{answers: map[string]string{"/version": version136}}, "v1.36.3", "ask the API server for its metrics")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := askGates(ctx, settingsOf(t, &gatesServer{silent: true}, &Plan{}).api); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
