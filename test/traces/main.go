// Traces converts public traces of load and use to the CSV of package internal/trace, and evaluates
// the estimators of requests on them:
//
//	go run ./test/traces convert DIR NAME >trace.csv
//	go run ./test/traces evaluate DIR >docs/resize-evaluation.md
//
// DIR has checkouts of the repositories in convert.go, in folders of their names. Nothing is fetched.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-metrics/weir/internal/trace"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "traces:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "convert":
		for i := range sources {
			if s := &sources[i]; s.name == args[2] {
				list, err := s.read(args[1])
				if err != nil {
					return err
				}
				return write(os.Stdout, list)
			}
		}
	case len(args) == 2 && args[0] == "evaluate":
		page, err := evaluate(context.Background(), args[1])
		if err != nil {
			return err
		}
		_, err = os.Stdout.WriteString(page)
		return err
	}
	var names []string
	for i := range sources {
		names = append(names, fmt.Sprintf("%q", sources[i].name))
	}
	return errors.New("usage: traces evaluate DIR, or traces convert DIR NAME, where NAME is " + strings.Join(names, ", "))
}

// read converts the trace from its checkout.
func (s *source) read(dir string) ([]trace.Entity, error) {
	list, err := s.convert(filepath.Join(dir, s.folder()))
	if err != nil {
		return nil, fmt.Errorf("convert %s, which is github.com/%s at %s: %w", s.name, s.repository, s.commit, err)
	}
	return list, nil
}
