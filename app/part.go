package app

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// Part is one piece of a running weir: a server, a background loop, an open file.
type Part struct {
	// Name is a noun, for errors: "pipeline".
	Name string
	// Run works until its context ends, and returns when everything it started has ended. Nil:
	// there is nothing to run.
	Run func(context.Context) error
	// Close frees what the part opened. It is called once, after every Run has ended, or without a
	// Run if a later part could not be opened. Nil: there is nothing to free.
	Close func() error
	// EndsFirst is set for a part that answers requests or acts, because it depends on the others.
	// Such parts end first; the others end only after all of them.
	EndsFirst bool
}

// Run starts the parts in their order and runs them until ctx ends or one of them ends. Then it
// ends the parts with EndsFirst, ends the others, closes all in reverse order, and returns the
// first error.
func Run(ctx context.Context, parts []Part) error {
	first, cancel := context.WithCancel(ctx)
	defer cancel()
	last, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	type end struct {
		*Part
		err error
	}
	ends := make(chan end)
	running, endingFirst := 0, 0
	for i := range parts {
		p := &parts[i]
		if p.Run == nil {
			continue
		}
		running++
		ctx := last
		if p.EndsFirst {
			ctx = first
			endingFirst++
		}
		go func() { ends <- end{p, p.Run(ctx)} }()
	}
	if endingFirst == 0 {
		context.AfterFunc(first, stop)
	}
	var failed error
	for range running {
		e := <-ends
		if e.err != nil && failed == nil {
			failed = fmt.Errorf("%s: %w", e.Name, e.err)
		}
		if first.Err() == nil {
			cancel() // if one part has ended, the others have no use
			if failed == nil {
				failed = fmt.Errorf("%s: ended unasked", e.Name)
			}
		}
		if e.EndsFirst {
			if endingFirst--; endingFirst == 0 {
				stop()
			}
		}
	}
	if err := closeParts(parts); failed == nil {
		failed = err
	}
	return failed
}

// closeParts closes parts in reverse order. A listener that is already closed is not an error.
func closeParts(parts []Part) error {
	var errs []error
	for i := len(parts) - 1; i >= 0; i-- {
		p := &parts[i]
		if p.Close == nil {
			continue
		}
		if err := p.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, fmt.Errorf("close %s: %w", p.Name, err))
		}
	}
	return errors.Join(errs...)
}
