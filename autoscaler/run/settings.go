package run

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster/gates"
)

// clusterSettings are the settings of decisions about autoscalers, with the feature gates of the
// cluster. It asks the API server for them in the background, so that a silent API server does not
// delay the start. Until the API server answers, the gates are assumed.
type clusterSettings struct {
	plan     *Plan
	api      rest.Interface
	log      *zap.Logger
	current  atomic.Pointer[settingsAndGates]
	once     sync.Once
	answered chan struct{} // closed when the API server has named its release, or refused to
}

type settingsAndGates struct {
	settings autoscaler.Settings
	gates    gates.Gates
}

func newClusterSettings(p *Plan, api rest.Interface, log *zap.Logger) *clusterSettings {
	c := &clusterSettings{plan: p, api: api, log: log, answered: make(chan struct{})}
	c.set("", nil)
	return c
}

// now returns the newest settings and their gates. They do not change later.
func (c *clusterSettings) now() (*autoscaler.Settings, *gates.Gates) {
	s := c.current.Load()
	return &s.settings, &s.gates
}

func (c *clusterSettings) set(release string, known map[string]bool) {
	on := c.plan.featureGates(release, known)
	c.current.Store(&settingsAndGates{c.plan.settings(on), on})
}

// awaitAnswer waits until the API server has named its release, or refused to. It returns false if
// ctx ends before.
func (c *clusterSettings) awaitAnswer(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-c.answered:
		return true
	}
}

const (
	// askGatesTimeout limits each of the two requests for a cluster's feature gates.
	askGatesTimeout = 5 * time.Second
	// askGatesSoon and askGatesLate are the first and the longest pause between two attempts.
	askGatesSoon, askGatesLate = time.Second, 5 * time.Minute
)

// run asks for the cluster's release and gates until both are known, with increasing pauses, and
// then waits for the end of ctx. It logs an error that differs from the one before.
func (c *clusterSettings) run(ctx context.Context) error {
	logged := ""
	pauses := wait.Backoff{Duration: askGatesSoon, Factor: 2, Cap: askGatesLate, Steps: math.MaxInt}
	_ = pauses.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (done bool, _ error) {
		release, known, err := askGates(ctx, c.api)
		if release != "" {
			c.set(release, known)
		}
		if release != "" || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) {
			c.once.Do(func() { close(c.answered) })
		}
		if err != nil && err.Error() != logged && ctx.Err() == nil {
			logged = err.Error()
			level := zap.InfoLevel
			if apierrors.IsForbidden(err) {
				level = zap.DebugLevel // the shipped rights do not have it, and the defaults are those of nearly all clusters
			}
			c.log.Log(level, "not all feature gates of the cluster can be read, so decisions about autoscalers assume their defaults; weir asks again", zap.String("release", release), zap.Error(err))
		}
		return err == nil, nil
	})
	<-ctx.Done()
	return nil
}

// askGates returns the release of the API server, and the feature gates that its /metrics has. They
// are taken for those of kube-controller-manager, which no other program can read. Everybody may
// read the release, but /metrics only with the right get on it. What is read is valid even if there
// is an error.
func askGates(ctx context.Context, api rest.Interface) (release string, known map[string]bool, err error) {
	get := func(path string) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, askGatesTimeout)
		defer cancel()
		return api.Get().AbsPath(path).MaxRetries(0).Do(ctx).Raw()
	}
	body, err := get("/version")
	if err != nil {
		return "", nil, fmt.Errorf("ask the API server for its version: %w", err)
	}
	var answer version.Info
	if err := json.Unmarshal(body, &answer); err != nil {
		return "", nil, fmt.Errorf("parse the API server's version: %w", err)
	}
	if body, err = get("/metrics"); err != nil {
		return answer.GitVersion, nil, fmt.Errorf("ask the API server for its metrics: %w", err)
	}
	return answer.GitVersion, gates.ParseMetrics(body), nil
}
