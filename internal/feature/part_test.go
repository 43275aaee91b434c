package feature_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weir-metrics/weir/internal/feature"
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
func (r *partLog) part(name string, ends feature.EndPhase) feature.Part {
	return feature.Part{
		Name: name, Ends: ends,
		Run:   func(ctx context.Context) error { <-ctx.Done(); r.add("%s ends", name); return nil },
		Close: func() error { r.add("%s closes", name); return nil },
	}
}

func TestPartsEndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r partLog
		ctx, cancel := context.WithCancel(t.Context())
		file := feature.Part{Name: "file", Close: func() error { r.add("file closes"); return nil }}
		ended := make(chan error)
		go func() {
			ended <- feature.Run(ctx, []feature.Part{r.part("remote write", feature.EndsLast), r.part("pipeline", 0), file, r.part("server", feature.EndsFirst)})
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
		want := []string{"server ends", "pipeline ends", "remote write ends", "server closes", "file closes", "pipeline closes", "remote write closes"}
		if !slices.Equal(r.list, want) {
			t.Errorf("got %v, want %v", r.list, want)
		}
	})
}

// If one part ends, all end, and the error names it.
func TestOnePartEnds(t *testing.T) {
	for want, run := range map[string]func(context.Context) error{
		"guard: no disk":              func(context.Context) error { return errors.New("no disk") },
		"guard: stopped unexpectedly": func(context.Context) error { return nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			var r partLog
			err := feature.Run(t.Context(), []feature.Part{r.part("server", feature.EndsFirst), {Name: "guard", Run: run}, r.part("pipeline", 0)})
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
		broken := feature.Part{Name: "file", Close: func() error { return errors.New("full") }}
		if err := feature.Run(ctx, []feature.Part{broken, r.part("pipeline", 0)}); err == nil || err.Error() != "close file: full" {
			t.Errorf("got error %v, want that the file cannot be closed", err)
		}
	})
}
