package server

import (
	"context"
	"hash/maphash"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/lru"
)

const (
	// failureBurst is how many authentications of one address may fail at once, and
	// failuresPerSecond how many after that.
	failureBurst      = 30
	failuresPerSecond = 1
	// attemptsAtOnce is how many authentications of one address are under way at the same time. The
	// others wait, at most for attemptWait.
	attemptsAtOnce = 10
	attemptWait    = 5 * time.Second
	// maxAddresses and maxKnown bound the memory. What was not used for longest is forgotten.
	maxAddresses, maxKnown = 4096, 4096
)

// failureLimits bound the failed authentications of one address, because each made-up token costs
// the API server a TokenReview. Requests without a token cost nothing. Credentials that were right
// the last time are not bounded, so a caller that shares its address with another one is not
// refused because of it.
type failureLimits struct {
	seed  maphash.Seed
	known *lru.Cache // hashes of credentials that were right

	mu        sync.Mutex
	byAddress *lru.Cache // *addressLimits by netip.Prefix
}

type addressLimits struct {
	failures *rate.Limiter
	underWay chan struct{}
}

func newFailureLimits() *failureLimits {
	return &failureLimits{seed: maphash.MakeSeed(), known: lru.New(maxKnown), byAddress: lru.New(maxAddresses)}
}

// of returns the limits of the address of a connection. The addresses of an IPv6 network of one
// machine (64 bits) are one address.
func (l *failureLimits) of(remote string) *addressLimits {
	var key netip.Prefix // of all connections whose address is not an IP address
	if at, err := netip.ParseAddrPort(remote); err == nil {
		address := at.Addr().Unmap()
		key, _ = address.Prefix(min(64, address.BitLen())) // the length is valid
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, ok := l.byAddress.Get(key); ok {
		return a.(*addressLimits)
	}
	a := &addressLimits{rate.NewLimiter(failuresPerSecond, failureBurst), make(chan struct{}, attemptsAtOnce)}
	l.byAddress.Add(key, a)
	return a
}

// credentialsOf returns the headers in which an authenticator looks for a token, or "" if there are
// none.
func credentialsOf(r *http.Request) string {
	token := r.Header.Get("Authorization")
	if protocols := strings.Join(r.Header.Values("Sec-Websocket-Protocol"), ","); protocols != "" {
		token += "\n" + protocols
	}
	return token
}

// apply must be outside the authentication, which must call endAttempt.
func (l *failureLimits) apply(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		credentials := credentialsOf(r)
		if credentials == "" {
			next.ServeHTTP(w, r)
			return
		}
		t := &attempt{limits: l, key: maphash.String(l.seed, credentials), address: l.of(r.RemoteAddr)}
		if _, known := l.known.Get(t.key); !known && !t.begin(r.Context()) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many tokens from this address could not be verified: wait, and ask again with a valid token", http.StatusTooManyRequests)
			return
		}
		defer t.end(true) // without effect if the authentication has ended it
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), attemptKey{}, t)))
	})
}

type attemptKey struct{}

// attempt is one authentication with a token.
type attempt struct {
	limits  *failureLimits
	key     uint64 // hash of the credentials
	address *addressLimits
	waited  bool // it has a place in address.underWay
	once    sync.Once
}

// begin waits for a place. It returns false if the address has had too many failures.
func (a *attempt) begin(ctx context.Context) bool {
	select {
	case a.address.underWay <- struct{}{}:
	case <-time.After(attemptWait):
		return false
	case <-ctx.Done():
		return false
	}
	if a.address.failures.Tokens() < 1 {
		<-a.address.underWay
		return false
	}
	a.waited = true
	return true
}

// end ends the attempt. Only a failure has a cost.
func (a *attempt) end(authenticated bool) {
	a.once.Do(func() {
		if !authenticated {
			a.address.failures.Reserve() // Allow would take nothing while several attempts share the last place
			a.limits.known.Remove(a.key)
		}
		if a.waited {
			<-a.address.underWay
		}
	})
}

// endAttempt ends the attempt of a request's context, if it has one.
func endAttempt(ctx context.Context, authenticated bool) {
	t, _ := ctx.Value(attemptKey{}).(*attempt)
	if t == nil {
		return
	}
	if authenticated {
		t.limits.known.Add(t.key, nil)
	}
	t.end(authenticated)
}
