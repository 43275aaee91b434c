// Package accounttoken keeps a token of a service account fresh, so that weir can show nodes
// another account than its own.
package accounttoken

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"
	authentication "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-metrics/weir/metric"
)

// Options configure a Source. Client, Namespace and Name are required.
type Options struct {
	// Client creates the tokens. It needs create on serviceaccounts/token of this account.
	Client corev1.ServiceAccountsGetter
	// Namespace and Name are those of the service account.
	Namespace, Name string
	// Nodes returns how many nodes are shown the token. Default: several.
	Nodes func() int
	// Logger gets a line when a token cannot be created, or is refused. Default: none.
	Logger *zap.Logger
	// Registerer registers the Source's metric. Default: none.
	Registerer prometheus.Registerer
}

const (
	// lifetime is how long a token shall be valid. The API server may choose another time.
	lifetime = time.Hour
	// createTimeout limits one request for a token.
	createTimeout = 10 * time.Second
	// retrySoon and retryLate are the first and the longest pause after a failed request.
	retrySoon, retryLate = time.Second, time.Minute
	// renewSoon and renewLate are the shortest life of a token that nodes refuse, and that of later ones
	// if they refuse each new one too.
	renewSoon, renewLate = 30 * time.Second, 10 * time.Minute
	// enoughRefusals is how many nodes must refuse a token before it is replaced. One node can refuse every
	// token, by a fault or on purpose. In a cluster of one node, its refusal is enough.
	enoughRefusals = 2
)

// Source has a token of a service account while Run runs. Several goroutines may call Token.
type Source struct {
	opts   Options
	tried  chan struct{} // closed after the first request
	latest atomic.Pointer[result]
	renew  chan struct{} // with a buffer of one: the newest token was refused
	tokens *prometheus.CounterVec
}

// result is the newest token or, before there is one, why not.
type result struct {
	token string
	err   error

	mu      sync.Mutex
	refused []metric.NodeName // nodes that do not accept the token, at most enoughRefusals
}

// New returns a Source. It does nothing before Run.
func New(o Options) (*Source, error) {
	if o.Client == nil || o.Namespace == "" || o.Name == "" {
		return nil, errors.New("tokens of a service account need Options.Client, Namespace and Name")
	}
	o.Logger = cmp.Or(o.Logger, zap.NewNop())
	if o.Nodes == nil {
		o.Nodes = func() int { return enoughRefusals }
	}
	s := &Source{opts: o, tried: make(chan struct{}), renew: make(chan struct{}, 1), tokens: promauto.With(o.Registerer).NewCounterVec(prometheus.CounterOpts{
		Name: "weir_kubelet_tokens_total",
		Help: "Number of tokens of the account that reads kubelets, by outcome: created, not created (failed), or refused by kubelets and replaced.",
	}, []string{"result"})}
	for _, outcome := range [...]string{"created", "failed", "refused"} {
		s.tokens.WithLabelValues(outcome)
	}
	return s, nil
}

// Token returns the newest token. Before the first request has ended it waits, until ctx ends. It
// returns an error as long as no token could be created. A token that could not be replaced in time
// stays the newest.
func (s *Source) Token(ctx context.Context) (string, error) {
	select {
	case <-s.tried:
	case <-ctx.Done():
		return "", fmt.Errorf("wait for a token of service account %s/%s: %w", s.opts.Namespace, s.opts.Name, context.Cause(ctx))
	}
	r := s.latest.Load()
	return r.token, r.err
}

// Refuse reports that a node does not accept a token. Run replaces a token that two nodes do not accept:
// the account may have been deleted and made again, which ends its tokens.
func (s *Source) Refuse(node metric.NodeName, token string) {
	r := s.latest.Load()
	if r == nil || r.token != token {
		return // the token is replaced already
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.refused, node) || len(r.refused) == enoughRefusals {
		return
	}
	r.refused = append(r.refused, node)
	if len(r.refused) < enoughRefusals && s.opts.Nodes() != 1 {
		return
	}
	select {
	case s.renew <- struct{}{}:
	default:
	}
}

// refusedBy returns the nodes that do not accept the newest token.
func (s *Source) refusedBy() []metric.NodeName {
	r := s.latest.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.refused)
}

// Run replaces the token after 70% to 80% of its life, and earlier if nodes refuse it, until ctx ends.
// It logs an error that differs from the one before, and tries again. Call it once.
func (s *Source) Run(ctx context.Context) error {
	logged, pause, tried := "", retrySoon, s.tried
	born, least := time.Time{}, renewSoon
	for {
		token, life, err := s.create(ctx)
		wait := pause
		if err == nil {
			s.tokens.WithLabelValues("created").Inc()
			born = time.Now()
			s.latest.Store(&result{token: token})
			wait = time.Duration(float64(life) * (0.8 - 0.1*rand.Float64()))
			logged, pause = "", retrySoon
		} else {
			s.tokens.WithLabelValues("failed").Inc()
			if r := s.latest.Load(); r == nil || r.err != nil {
				s.latest.Store(&result{err: err})
			}
			pause = min(2*pause, retryLate)
			if text := err.Error(); text != logged && ctx.Err() == nil {
				logged = text
				s.opts.Logger.Warn("kubelets are read with an older token or not at all; weir tries again", zap.Error(err))
			}
		}
		if tried != nil {
			close(tried)
			tried = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
			continue
		case <-s.renew:
		}
		age := time.Since(born)
		if age > renewLate {
			least = renewSoon
		}
		s.tokens.WithLabelValues("refused").Inc()
		s.opts.Logger.Warn("kubelets refuse the token of service account "+s.opts.Namespace+"/"+s.opts.Name+"; perhaps the account was deleted and made again; weir asks for another token",
			zap.Any("nodes", s.refusedBy()), zap.Duration("in", max(least-age, 0)))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(least - age):
			least = min(2*least, renewLate)
		}
	}
}

// create returns a new token, for the audiences of the API server, and how long it is valid.
func (s *Source) create(ctx context.Context) (token string, life time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	seconds := int64(lifetime / time.Second)
	request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := s.opts.Client.ServiceAccounts(s.opts.Namespace).CreateToken(ctx, s.opts.Name, request, metav1.CreateOptions{})
	if err != nil {
		return "", 0, fmt.Errorf("create a token of service account %s/%s: %w", s.opts.Namespace, s.opts.Name, err)
	}
	if answer.Status.Token == "" {
		return "", 0, fmt.Errorf("create a token of service account %s/%s: the API server's answer has none", s.opts.Namespace, s.opts.Name)
	}
	if given := answer.Spec.ExpirationSeconds; given != nil && *given > 0 {
		seconds = *given
	}
	return answer.Status.Token, time.Duration(seconds) * time.Second, nil
}
