package push

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-metrics/weir/internal/humanize"
)

// maxAnswer is how many bytes of an answer are read, and maxText how many of them an error quotes. An
// answer of OTLP counts only if it is whole, and has a text of any length.
const (
	maxAnswer = 64 << 10
	maxText   = 300
)

// firstPause is the pause after the first try. It doubles with each try, up to Options.MaxBackoff.
const firstPause = 100 * time.Millisecond

// maxRetryAfter is the longest wait before the next try that a receiver can ask for.
const maxRetryAfter = time.Minute

// Request is one HTTP request to the receiver.
type Request struct {
	// Path is appended to the path of Options.URL.
	Path string
	// Header has the headers of the protocol, by name.
	Header map[string]string
	Body   []byte
	// IsTemporary reports whether the request is sent again after an answer with this status.
	IsTemporary func(code int) bool
}

// Answer is what is bounded of an answer.
type Answer struct {
	Code   int // the status code; 0 if there was no answer
	Header http.Header
	Body   []byte // its beginning
}

// Post sends a request until the receiver accepts it (2xx), rejects it, or ctx ends. It sends the
// request again if there is no answer, if Request.IsTemporary reports it, and after a redirect:
// credentials and headers reach the given receiver only, and the samples wait until the URL is right.
// The error of a rejected request has the beginning of the answer, and what to do.
func (s *Sender) Post(ctx context.Context, r *Request) (Answer, error) {
	pause := wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.5, Steps: math.MaxInt, Cap: s.o.MaxBackoff}
	for attempt := 0; ; attempt++ {
		answer, err := s.try(ctx, r, attempt)
		switch {
		case err == nil:
			return answer, nil
		case ctx.Err() != nil:
			return answer, ctx.Err()
		case answer.Code != 0 && answer.Code/100 != 3 && !r.IsTemporary(answer.Code):
			return answer, s.advise(answer.Code, err)
		}
		s.reportRetry(err)
		select {
		case <-ctx.Done():
			return answer, ctx.Err()
		case <-time.After(pause.Step() + retryAfter(answer.Header.Get("Retry-After"), time.Now())):
		}
	}
}

// try sends a request once.
func (s *Sender) try(ctx context.Context, r *Request, attempt int) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	address, query, hasQuery := strings.Cut(s.o.URL, "?")
	if r.Path != "" {
		address = strings.TrimSuffix(address, "/") + r.Path
	}
	if hasQuery {
		address += "?" + query
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, http.NoBody)
	if err != nil {
		return Answer{}, fmt.Errorf("make a request: %w", err)
	}
	unread := s.unread
	request.ContentLength = int64(len(r.Body))
	request.GetBody = func() (io.ReadCloser, error) { return newBody(r.Body, unread), nil }
	request.Body, _ = request.GetBody()
	for name, value := range r.Header {
		request.Header.Set(name, value)
	}
	if attempt > 0 {
		request.Header.Set("Retry-Attempt", strconv.Itoa(attempt))
	}
	if user := request.URL.User; user != nil {
		password, _ := user.Password()
		request.SetBasicAuth(user.Username(), password)
	}
	// A RoundTripper follows no redirect.
	resp, err := s.Transport.RoundTrip(request)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	// An answer that breaks off has its status all the same: the request is not sent a second time.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	answer := Answer{Code: resp.StatusCode, Header: resp.Header, Body: body}
	switch resp.StatusCode / 100 {
	case 2:
		return answer, nil
	case 3:
		return answer, fmt.Errorf("the receiver redirects to %s: put that address in --sink", humanize.Excerpt(humanize.URL(resp.Header.Get("Location")), maxText))
	}
	return answer, fmt.Errorf("the receiver answers %d %s: %s", resp.StatusCode, http.StatusText(resp.StatusCode), humanize.Excerpt(string(body), maxText))
}

// body is a request that a transport reads, until it closes it.
type body struct {
	*bytes.Reader
	close func()
}

// newBody returns a body. It counts in unread until it is closed.
func newBody(request []byte, unread *atomic.Int32) *body {
	unread.Add(1)
	return &body{bytes.NewReader(request), sync.OnceFunc(func() { unread.Add(-1) })}
}

// Close ends the reading of the body. It may be called more than once.
func (b *body) Close() error {
	b.close()
	return nil
}

// retryAfter returns the wait that a Retry-After header asks for, from 0 to maxRetryAfter.
func retryAfter(header string, now time.Time) time.Duration {
	seconds, err := strconv.ParseInt(header, 10, 64)
	if at, e := http.ParseTime(header); e == nil {
		seconds, err = at.Unix()-now.Unix(), nil
	}
	if err != nil {
		return 0
	}
	return time.Duration(min(max(seconds, 0), int64(maxRetryAfter.Seconds()))) * time.Second
}

// advise adds advice to the error of a rejected request.
func (s *Sender) advise(code int, err error) error {
	switch code {
	case http.StatusNotFound:
		return fmt.Errorf("%w: %s", err, s.o.NotFound)
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: see the sink's token-file, username and header options", err)
	}
	return err
}
