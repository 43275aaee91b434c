package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// Limits are the kernel's limits for a cgroup. A field is nil if no hierarchy has its file.
type Limits struct {
	// Shares is cpu.shares of version 1. Weight is cpu.weight of version 2.
	Shares *int64 `json:"shares,omitempty"`
	Weight *int64 `json:"weight,omitempty"`
	// Quota is the CPU time for each Period, both in microseconds; NoLimit if the CPU time is not
	// limited.
	Quota  *int64 `json:"quotaMicroseconds,omitempty"`
	Period *int64 `json:"periodMicroseconds,omitempty"`
	// Memory is in bytes; NoLimit if memory is not limited.
	Memory *int64 `json:"memoryLimitBytes,omitempty"`
}

// NoLimit is the value of a field for a resource without a limit.
const NoLimit = -1

// read reads the limits in a cgroup's directory of one hierarchy. entries are the files in it. It
// is not an error if a file disappears in the meantime.
func (l *Limits) read(dir *os.Root, entries []fs.DirEntry) error {
	var errs []error
	for _, e := range entries {
		fields := l.fieldsOf(e.Name())
		if fields == nil {
			continue
		}
		text, err := dir.ReadFile(e.Name())
		if err == nil {
			err = parseLimits(fields, string(text))
		}
		if err != nil && !cgroupfs.IsRemoved(err) {
			errs = append(errs, fmt.Errorf("read %s: %w", e.Name(), err))
		}
	}
	return errors.Join(errs...)
}

// fieldsOf returns the fields for the numbers in a file, in their order. It returns nil for a file
// without limits.
func (l *Limits) fieldsOf(file string) []**int64 {
	switch file {
	case "cpu.shares":
		return []**int64{&l.Shares}
	case "cpu.weight":
		return []**int64{&l.Weight}
	case "cpu.cfs_quota_us":
		return []**int64{&l.Quota}
	case "cpu.cfs_period_us":
		return []**int64{&l.Period}
	case "cpu.max":
		return []**int64{&l.Quota, &l.Period}
	case "memory.limit_in_bytes", "memory.max":
		return []**int64{&l.Memory}
	}
	return nil
}

// parseLimits parses numbers. "max" (version 2), -1 and huge numbers (version 1) become NoLimit.
func parseLimits(fields []**int64, text string) error {
	words := strings.Fields(text)
	if len(words) != len(fields) {
		return fmt.Errorf("%d words in %q, want %d", len(words), text, len(fields))
	}
	for i, word := range words {
		n := int64(NoLimit)
		if word != "max" {
			var err error
			if n, err = strconv.ParseInt(word, 10, 64); err != nil {
				return err
			}
			if n < 0 || n >= cgroupfs.NoLimit {
				n = NoLimit
			}
		}
		*fields[i] = &n
	}
	return nil
}

// orNil returns l, or nil if no field is set.
func (l *Limits) orNil() *Limits {
	if *l == (Limits{}) {
		return nil
	}
	return l
}

// columns returns the columns of a table: shares or weight, quota and period, memory. l may be nil.
func (l *Limits) columns() []string {
	cpu, quota, memory := "-", "-", "-"
	if l == nil {
		l = &Limits{}
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
		memory = humanize.Bytes(float64(*l.Memory))
	}
	return []string{cpu, quota, memory}
}
