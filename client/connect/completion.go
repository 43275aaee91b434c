package connect

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/weir-metrics/weir/api/usage"
)

// Lister answers what is used. *Weir is one.
type Lister interface {
	List(ctx context.Context, r usage.Resource, q usage.Query) (*usage.List, error)
}

// patience is how long a shell waits for names after a key was pressed.
const patience = 3 * time.Second

// Names returns the names of what a list holds, sorted and each once, for a shell
// to complete: those that it takes as they are, for nodes say what cgroups are
// called. There are none where nobody answers: a shell is no place for errors.
func Names(ctx context.Context, w Lister, r usage.Resource, q usage.Query, name func(*usage.Item) string) []string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	q.Metrics = []string{} // only names are needed
	list, err := w.List(ctx, r, q)
	if err != nil {
		return nil
	}
	var names []string
	for i := range list.Items {
		if n := name(&list.Items[i]); n != "" && !strings.ContainsFunc(n, special) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// special reports whether a character means something to a shell or a terminal.
func special(r rune) bool {
	return !unicode.IsGraphic(r) || unicode.IsSpace(r) || strings.ContainsRune("$`\"'\\;&|<>(){}[]!*?#~", r)
}
