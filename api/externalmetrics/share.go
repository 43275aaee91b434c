package externalmetrics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/externalmetrics/rules"
	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/internal/history"
)

// Limits on what Prometheus returns, besides the bytes that package history reads.
const (
	maxSeries       = 20_000  // of one answer
	maxSharedSeries = 200_000 // of all answers that are kept
)

// pastAge is how long an answer about an earlier time is used again.
const pastAge = time.Minute

// failureAge is how long a failure is kept, so that each pod and each autoscaler does not wait again for a
// server that hangs.
const failureAge = 5 * time.Second

// queryKey distinguishes queries. The rule stands for the rules in use: rules that are read again ask
// again.
type queryKey struct {
	rule  *rules.Rule
	query string
	ago   time.Duration
}

// sharedQuery is a query for all requests that need its answer: those that wait for it, and those that
// come soon after it. Its answer is set when done is closed.
type sharedQuery struct {
	done   chan struct{}
	answer *history.Answer // nil if err is not
	err    error
	index  sync.Once
	byName map[string]int // for objects: the series of a name, or severalSeries

	cancel  context.CancelFunc
	waiting int       // requests
	expires time.Time // zero until done is closed
}

// sharedQueries are the queries that run, and those whose answers or failures are used again.
type sharedQueries struct {
	mu struct {
		sync.Mutex
		queries map[queryKey]*sharedQuery
		series  int // in all answers
	}
}

// share returns the answer to a query. Requests for one query share it. A query ends when nobody waits
// for it any more.
func (p *Provider) share(ctx context.Context, s *loadedRules, k queryKey) (*sharedQuery, error) {
	mu := &p.shared.mu
	mu.Lock()
	q := mu.queries[k]
	if now := time.Now(); q == nil || !q.expires.IsZero() && now.After(q.expires) {
		p.shared.dropExpired(now)
		q = p.start(ctx, s, k)
	}
	q.waiting++
	mu.Unlock()
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		if q.waiting--; q.waiting == 0 && q.expires.IsZero() {
			q.cancel()
			p.shared.drop(k, q)
		}
	}()
	select {
	case <-q.done:
		return q, q.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errRequestEnded, ctx.Err())
	}
}

// errRequestEnded is the error of a request that did not wait for its query. The server need not be slow:
// the caller may have had only a part of the query's timeout.
var errRequestEnded = errors.New("the request ended before Prometheus answered")

// start starts a query. The caller holds the lock.
func (p *Provider) start(ctx context.Context, s *loadedRules, k queryKey) *sharedQuery {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.rules.Server(k.rule).Timeout)
	q := &sharedQuery{done: make(chan struct{}), cancel: cancel}
	p.shared.mu.queries[k] = q
	go func() {
		defer cancel()
		answer, err := p.runQuery(ctx, s, k)
		mu := &p.shared.mu
		mu.Lock()
		defer mu.Unlock()
		defer close(q.done)
		q.answer, q.err = answer, err
		age := p.options.AnswerAge
		if k.ago > 0 {
			age = pastAge
		}
		if err != nil {
			age = min(age, failureAge)
		}
		q.expires = time.Now().Add(age)
		if age < 0 || mu.series+q.series() > maxSharedSeries {
			p.shared.drop(k, q)
		} else if mu.queries[k] == q {
			mu.series += q.series()
		}
	}()
	return q
}

// series returns how many series the answer has.
func (q *sharedQuery) series() int {
	if q.answer == nil {
		return 0
	}
	return len(q.answer.Series)
}

// drop forgets a query, unless another one has its place. The caller holds the lock.
func (s *sharedQueries) drop(k queryKey, q *sharedQuery) {
	if s.mu.queries[k] == q {
		delete(s.mu.queries, k)
	}
}

// dropExpired forgets the answers and failures that are too old. The caller holds the lock.
func (s *sharedQueries) dropExpired(now time.Time) {
	for k, q := range s.mu.queries {
		if !q.expires.IsZero() && now.After(q.expires) {
			s.mu.series -= q.series()
			delete(s.mu.queries, k)
		}
	}
}

// runQuery sends a query once a slot of its server is free.
func (p *Provider) runQuery(ctx context.Context, s *loadedRules, k queryKey) (*history.Answer, error) {
	began := time.Now()
	defer func() { p.telemetry.duration.Observe(time.Since(began).Seconds()) }()
	server := s.servers[k.rule.Prometheus]
	select {
	case server.slots <- struct{}{}:
		defer func() { <-server.slots }()
	case <-ctx.Done():
		return nil, &queueTimeout{k.rule.Prometheus, cap(server.slots), ctx.Err()}
	}
	p.telemetry.running.Inc()
	defer p.telemetry.running.Dec()
	answer, err := server.Query(ctx, k.query, time.Now().Add(-k.ago))
	if err == nil && len(answer.Series) > maxSeries {
		return nil, fmt.Errorf("the query returns %d series, at most %d are used: aggregate them", len(answer.Series), maxSeries)
	}
	return answer, err
}

// queueTimeout is the error of a query that got no slot in time.
type queueTimeout struct {
	server  string // empty for the first one of the rules
	queries int
	err     error
}

func (q *queueTimeout) Error() string {
	return fmt.Sprintf("%d other queries did not end in time: %s is slow", q.queries, strings.TrimSpace("Prometheus "+q.server))
}

func (q *queueTimeout) Unwrap() error { return q.err }

// queryFailure returns the error for the client of a failed query, and the result to count.
func queryFailure(metric string, timeout time.Duration, err error) (result string, answer error) {
	var no *history.Error
	var waited *queueTimeout
	switch {
	case errors.Is(err, errRequestEnded):
		return resultTimeout, metricsgroup.Error(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "%s: %v", metric, errRequestEnded)
	case errors.As(err, &waited):
		return resultTimeout, metricsgroup.Error(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "%s: %v", metric, waited)
	case errors.Is(err, context.DeadlineExceeded):
		return resultTimeout, metricsgroup.Error(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "%s: Prometheus did not answer within %v", metric, timeout)
	case errors.As(err, &no) && no.Kind == "timeout":
		return resultTimeout, metricsgroup.Error(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "%s: %v", metric, no)
	case errors.As(err, &no) && no.Status < 500:
		return resultError, metricsgroup.Error(http.StatusInternalServerError, metav1.StatusReasonInternalError, "%s: %v", metric, no)
	}
	return resultError, metricsgroup.Unavailable("%s: %v", metric, err)
}
