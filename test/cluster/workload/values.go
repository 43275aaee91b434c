package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// level is CPU in thousandths of a core. It is the value of a flag.
type level int64

// maxLevel limits the threads that a mistyped number can start.
const maxLevel = 64_000

func (l *level) String() string { return strconv.FormatInt(int64(*l), 10) }

// Set parses "250". "250m", as Kubernetes writes it, means the same.
func (l *level) Set(v string) error {
	n, err := strconv.ParseInt(strings.TrimSuffix(v, "m"), 10, 64)
	if err != nil || n < 0 || n > maxLevel {
		return fmt.Errorf("want thousandths of a core, 0 to %d", maxLevel)
	}
	*l = level(n)
	return nil
}

// size is a number of bytes. It is the value of a flag.
type size int64

func (s *size) String() string { return strconv.FormatInt(int64(*s), 10) }

// Set parses "1048576", "1024Ki", "1Mi", "1Gi".
func (s *size) Set(v string) error {
	number, shift := v, 0
	for i, unit := range []string{"Ki", "Mi", "Gi"} {
		if before, ok := strings.CutSuffix(v, unit); ok {
			number, shift = before, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64>>shift {
		return fmt.Errorf("want bytes, as 1048576, 1024Ki or 1Mi")
	}
	*s = size(n << shift)
	return nil
}
