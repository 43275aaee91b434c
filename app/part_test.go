package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// partLog is a list of what parts did, in order.
type partLog struct {
	mu   sync.Mutex
	list []string
}

func (r *partLog) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, fmt.Sprintf(format, args...))
}

// part returns a part that runs until its context ends.
func (r *partLog) part(name string, endsFirst bool) Part {
	return Part{
		Name: name, EndsFirst: endsFirst,
		Run:   func(ctx context.Context) error { <-ctx.Done(); r.add("%s ends", name); return nil },
		Close: func() error { r.add("%s closes", name); return nil },
	}
}

func TestPartsEndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r partLog
		ctx, cancel := context.WithCancel(t.Context())
		file := Part{Name: "file", Close: func() error { r.add("file closes"); return nil }}
		ended := make(chan error)
		go func() { ended <- Run(ctx, []Part{r.part("pipeline", false), file, r.part("server", true)}) }()
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
		want := []string{"server ends", "pipeline ends", "server closes", "file closes", "pipeline closes"}
		if !slices.Equal(r.list, want) {
			t.Errorf("got %v, want %v", r.list, want)
		}
	})
}

// If one part ends, all end, and the error names it.
func TestOnePartEnds(t *testing.T) {
	for want, run := range map[string]func(context.Context) error{
		"guard: no disk":       func(context.Context) error { return errors.New("no disk") },
		"guard: ended unasked": func(context.Context) error { return nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			var r partLog
			err := Run(t.Context(), []Part{r.part("server", true), {Name: "guard", Run: run}, r.part("pipeline", false)})
			if err == nil || err.Error() != want {
				t.Errorf("got error %v, want %s", err, want)
			}
			if got := strings.Join(r.list, ", "); got != "server ends, pipeline ends, pipeline closes, server closes" {
				t.Errorf("got %s", got)
			}
		})
	}
}

// Without a part that ends first, the others end at once.
func TestNoPartEndsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r partLog
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		broken := Part{Name: "file", Close: func() error { return errors.New("full") }}
		if err := Run(ctx, []Part{broken, r.part("pipeline", false)}); err == nil || err.Error() != "close file: full" {
			t.Errorf("got error %v, want that the file cannot be closed", err)
		}
	})
}
