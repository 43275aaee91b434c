package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// ask sends a request with a token from an address through limits. The token "right" is valid. It
// returns the answer's status and whether the token was verified.
func ask(l *failureLimits, token, from string) (status int, verified bool) {
	h := l.apply(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		verified = token != ""
		if endAttempt(r.Context(), token == "right"); token != "" && token != "right" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = from
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, verified
}

// One address can have only so many tokens verified that are wrong. It gets more with time. Other
// addresses, right tokens and requests without a token are not concerned.
func TestFailuresOfAnAddressAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFailureLimits()
		made := 0
		guess := func(n int, from string) (verified int) {
			for range n {
				made++
				if status, ok := ask(l, fmt.Sprint("guess-", made), from); ok {
					verified++
				} else if status != http.StatusTooManyRequests {
					t.Fatalf("got %d, want 429", status)
				}
			}
			return verified
		}
		if status, _ := ask(l, "right", "10.0.0.1:1000"); status != http.StatusOK {
			t.Errorf("a right token: %d, want 200", status)
		}
		if n := guess(600, "10.0.0.1:1001"); n != failureBurst {
			t.Errorf("%d of 600 wrong tokens were verified, want %d", n, failureBurst)
		}
		for token, from := range map[string]string{"right": "10.0.0.1:1002", "": "10.0.0.1:1003"} {
			if status, _ := ask(l, token, from); status != http.StatusOK {
				t.Errorf("token %q from the same address: %d, want 200", token, status)
			}
		}
		if n := guess(1, "10.0.0.2:1000"); n != 1 {
			t.Error("another address is refused")
		}
		time.Sleep(5 * time.Second)
		if n := guess(100, "10.0.0.1:1004"); n != 5*failuresPerSecond {
			t.Errorf("%d wrong tokens were verified after five seconds, want %d", n, 5*failuresPerSecond)
		}
		// One machine can have all addresses of its IPv6 network.
		n := 0
		for i := range 100 {
			n += guess(1, fmt.Sprintf("[2001:db8::%x]:1000", i))
		}
		if n != failureBurst {
			t.Errorf("%d wrong tokens of one IPv6 network were verified, want %d", n, failureBurst)
		}
	})
}

// Wrong tokens that are verified at the same time all have their cost, so they gain nothing by it.
func TestFailuresAtOnceAllHaveTheirCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFailureLimits()
		var verified atomic.Int64
		h := l.apply(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			time.Sleep(10 * time.Millisecond) // a TokenReview
			verified.Add(1)
			endAttempt(r.Context(), false)
		}))
		const seconds = 60
		for second := range seconds {
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() {
					r := httptest.NewRequest(http.MethodGet, "/", nil)
					r.Header.Set("Authorization", fmt.Sprintf("Bearer guess-%d-%d", second, i))
					h.ServeHTTP(httptest.NewRecorder(), r)
				})
			}
			time.Sleep(time.Second)
			all.Wait()
		}
		if n, most := int(verified.Load()), failureBurst+attemptsAtOnce+seconds*failuresPerSecond; n > most {
			t.Errorf("%d wrong tokens were verified in a minute, want at most %d", n, most)
		}
	})
}

// Many right requests at the same moment wait for each other, and none is refused.
func TestManyRightTokensAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFailureLimits()
		most, now := 0, 0
		var mu sync.Mutex
		h := l.apply(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(10 * time.Millisecond) // a TokenReview
			mu.Lock()
			now--
			mu.Unlock()
			endAttempt(r.Context(), true)
		}))
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				r.Header.Set("Authorization", fmt.Sprint("Bearer right-", i))
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != http.StatusOK {
					t.Errorf("request %d: %d, want 200", i, w.Code)
				}
			})
		}
		all.Wait()
		if most != attemptsAtOnce {
			t.Errorf("%d were verified at the same time, want %d", most, attemptsAtOnce)
		}
	})
}

// Addresses and tokens beyond the bounds are forgotten.
func TestFailureLimitsAreBounded(t *testing.T) {
	l := newFailureLimits()
	for i := range maxAddresses + 100 {
		ask(l, "wrong", fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
		l.known.Add(uint64(i), nil)
	}
	if a, k := l.byAddress.Len(), l.known.Len(); a != maxAddresses || k != maxKnown {
		t.Errorf("%d addresses and %d tokens are remembered, want %d and %d", a, k, maxAddresses, maxKnown)
	}
}
