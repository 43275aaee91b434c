package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	beat  = 50 * time.Millisecond // traffic is sent in equal pieces at this interval
	retry = time.Second           // wait after the receiver failed
)

func (c command) traffic() func(context.Context) error {
	to := c.flags.String("to", "", "URL to POST to; its path is /sink unless it has one")
	var rate size
	c.flags.Var(&rate, "bytes-per-second", "payload to send; HTTP, TCP and IP add a few percent")
	return func(ctx context.Context) error {
		target, err := url.Parse(*to)
		if err != nil || target.Host == "" || target.Scheme != "http" {
			return fmt.Errorf("cannot send to %q: give --to http://HOST:PORT", *to)
		}
		if target.Path == "" {
			target.Path = "/sink"
		}
		if rate == 0 {
			return errors.New("how much? give --bytes-per-second N")
		}
		for ctx.Err() == nil {
			if err := send(ctx, target.String(), rate); err != nil && ctx.Err() == nil {
				fmt.Fprintf(c.stdout, "%v; trying again in %v\n", err, retry)
				rest(ctx, retry)
			}
		}
		return nil
	}
}

// send posts one endless body at this rate, until the receiver or ctx ends it.
func send(ctx context.Context, target string, rate size) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, &paced{ctx: ctx, rate: rate, start: time.Now()})
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	defer response.Body.Close()
	return fmt.Errorf("send: the receiver answered %s instead of taking more", response.Status)
}

// paced is a reader of zeros that become available at a rate. If they could not
// be read in time, at most one second's bytes are made up for later, as in
// burner.
type paced struct {
	ctx   context.Context
	rate  size
	start time.Time
	given int64
}

// Read waits for the next beat and returns the bytes that are due by then.
func (p *paced) Read(buffer []byte) (int, error) {
	for {
		due := int64(time.Since(p.start).Seconds()*float64(p.rate)) - p.given
		if over := due - int64(p.rate); over > 0 {
			p.given += over
			due = int64(p.rate)
		}
		if due > 0 {
			n, _ := zeros{}.Read(buffer[:min(int64(len(buffer)), due)])
			p.given += int64(n)
			return n, nil
		}
		if !rest(p.ctx, beat) {
			return 0, io.EOF
		}
	}
}

// rest waits for d. It returns false if ctx ends before that.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
