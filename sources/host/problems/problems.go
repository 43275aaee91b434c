// Package problems keeps what went wrong in one read of a machine: beyond the first few
// it only counts, since where one thing is wrong it is wrong with every cgroup.
package problems

import (
	"errors"
	"fmt"
)

// Most is how many are kept.
const Most = 10

// List is what went wrong. The zero List is ready to use.
type List struct {
	errs []error
	more int
}

// Add adds those that are not nil.
func (l *List) Add(errs ...error) {
	for _, err := range errs {
		switch {
		case err == nil:
		case len(l.errs) < Most:
			l.errs = append(l.errs, err)
		default:
			l.more++
		}
	}
}

// Err returns them joined; nil if there are none.
func (l *List) Err() error {
	errs := l.errs
	if l.more > 0 {
		errs = append(errs[:len(errs):len(errs)], fmt.Errorf("and %d more", l.more))
	}
	return errors.Join(errs...)
}
