// Traces converts public traces of load and use to the CSV of package internal/trace:
//
//	go run ./test/traces convert DIR NAME >trace.csv
//
// DIR has checkouts of the repositories in convert.go, in folders of their names. Nothing is fetched.
package main

import (
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
	if len(args) == 3 && args[0] == "convert" {
		for i := range sources {
			if s := &sources[i]; s.name == args[2] {
				list, err := s.convert(filepath.Join(args[1], s.folder()))
				if err != nil {
					return fmt.Errorf("convert %s: %w", s.name, err)
				}
				return trace.Write(os.Stdout, list)
			}
		}
	}
	var names []string
	for i := range sources {
		names = append(names, sources[i].name)
	}
	return fmt.Errorf("usage: traces convert DIR NAME, where NAME is one of: %s", strings.Join(names, ", "))
}
