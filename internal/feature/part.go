package feature

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
	// Ends is the phase in which the part ends. The zero value is between the others.
	Ends EndPhase
}

// EndPhase is one of the steps in which parts end. The parts of one phase end together.
type EndPhase int

const (
	// EndsFirst is for parts that answer requests or act, because they depend on the others.
	EndsFirst EndPhase = -1
	// EndsLast is for parts that send what the others still produce while they end.
	EndsLast EndPhase = 1
)

// Run starts the parts in their order and runs them until ctx ends or one of them ends. Then it
// ends the others, phase by phase, closes all in reverse order, and returns the first error.
func Run(ctx context.Context, parts []Part) error {
	type phase struct {
		context.Context
		end     context.CancelFunc
		running int
	}
	var phases [EndsLast - EndsFirst + 1]phase
	for i := range phases {
		p := &phases[i]
		p.Context, p.end = context.WithCancel(context.WithoutCancel(ctx))
		defer p.end()
	}
	type end struct {
		*Part
		err error
	}
	ends := make(chan end)
	running := 0
	for i := range parts {
		p := &parts[i]
		if p.Run == nil {
			continue
		}
		running++
		ph := &phases[p.Ends-EndsFirst]
		ph.running++
		go func() { ends <- end{p, p.Run(ph)} }()
	}
	var failed error
	signal := ctx.Done()
	for running > 0 {
		select {
		case <-signal:
			signal = nil
		case e := <-ends:
			running--
			phases[e.Ends-EndsFirst].running--
			if e.err != nil && failed == nil {
				failed = fmt.Errorf("%s: %w", e.Name, e.err)
			}
			if signal != nil && ctx.Err() == nil && failed == nil {
				failed = fmt.Errorf("%s: stopped unexpectedly", e.Name)
			}
			signal = nil // if one part has ended, the others are of no use
		}
		for i := range phases {
			phases[i].end()
			if phases[i].running > 0 {
				break
			}
		}
	}
	if err := Close(parts); failed == nil {
		failed = err
	}
	return failed
}

// Close closes parts in reverse order, without running them. A listener that is already closed is not an error.
func Close(parts []Part) error {
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
