package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// Limits are what a cgroup may use, as the kernel has it. What no hierarchy says is
// nil: version 1 has shares, version 2 a weight.
type Limits struct {
	// Shares is cpu.shares of version 1, Weight cpu.weight of version 2.
	Shares *int64 `json:"shares,omitempty"`
	Weight *int64 `json:"weight,omitempty"`
	// Quota is the CPU time it may use in each Period, in microseconds; NoLimit if as
	// much as it likes.
	Quota  *int64 `json:"quotaMicroseconds,omitempty"`
	Period *int64 `json:"periodMicroseconds,omitempty"`
	// Memory is in bytes; NoLimit if there is none.
	Memory *int64 `json:"memoryLimitBytes,omitempty"`
}

// NoLimit is a limit that is none.
const NoLimit = -1

// read takes from a cgroup's directory, which has these entries, what its hierarchy
// says. A file that vanishes says nothing.
func (l *Limits) read(dir *os.Root, entries []fs.DirEntry) error {
	var errs []error
	for _, e := range entries {
		name := e.Name()
		parse := l.parserOf(name)
		if parse == nil {
			continue
		}
		text, err := dir.ReadFile(name)
		if err == nil {
			err = parse(strings.TrimSpace(string(text)))
		}
		if err != nil && !cgroupfs.IsRemoved(err) {
			errs = append(errs, fmt.Errorf("read %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// parserOf returns what reads a file of that name; nil if it is of no interest.
func (l *Limits) parserOf(name string) func(text string) error {
	switch name {
	case "cpu.shares":
		return func(text string) error { return parseLimit(&l.Shares, text) }
	case "cpu.weight":
		return func(text string) error { return parseLimit(&l.Weight, text) }
	case "cpu.cfs_quota_us":
		return func(text string) error { return parseLimit(&l.Quota, text) }
	case "cpu.cfs_period_us":
		return func(text string) error { return parseLimit(&l.Period, text) }
	case "memory.limit_in_bytes", "memory.max":
		return func(text string) error { return parseLimit(&l.Memory, text) }
	case "cpu.max":
		return func(text string) error {
			quota, period, _ := strings.Cut(text, " ")
			return errors.Join(parseLimit(&l.Quota, quota), parseLimit(&l.Period, period))
		}
	}
	return nil
}

// parseLimit reads a number, or the kernel's words for no limit.
func parseLimit(to **int64, text string) error {
	n := int64(NoLimit)
	if text != "max" {
		var err error
		if n, err = strconv.ParseInt(text, 10, 64); err != nil {
			return err
		}
		if n < 0 || n >= cgroupfs.NoLimit {
			n = NoLimit
		}
	}
	*to = &n
	return nil
}

// orNil returns l, or nil if it says nothing.
func (l *Limits) orNil() *Limits {
	if *l == (Limits{}) {
		return nil
	}
	return l
}

// columns are l's in a table: shares or weight, quota and period, memory.
func (l *Limits) columns() (cpu, quota, memory string) {
	cpu, quota, memory = "-", "-", "-"
	if l == nil {
		return cpu, quota, memory
	}
	switch {
	case l.Shares != nil:
		cpu = strconv.FormatInt(*l.Shares, 10)
	case l.Weight != nil:
		cpu = "weight " + strconv.FormatInt(*l.Weight, 10)
	}
	switch {
	case l.Quota != nil && *l.Quota == NoLimit:
		quota = "none"
	case l.Quota != nil && l.Period != nil:
		quota = fmt.Sprintf("%d/%d", *l.Quota, *l.Period)
	}
	switch {
	case l.Memory != nil && *l.Memory == NoLimit:
		memory = "none"
	case l.Memory != nil:
		memory = resource.NewQuantity(*l.Memory, resource.BinarySI).String()
	}
	return cpu, quota, memory
}
