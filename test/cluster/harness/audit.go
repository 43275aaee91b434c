//go:build linux

package harness

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// auditPolicy says which requests the API server logs.
//
//go:embed audit.yaml
var auditPolicy []byte

func (c *Cluster) auditDir() string { return filepath.Join(c.dir, "audit") }

// auditArgs returns the API server's flags for its audit log. The API server
// writes an event before it continues with the request, and starts a new file
// at 100 MB.
func (c *Cluster) auditArgs() []string {
	return []string{
		"--audit-policy-file=" + filepath.Join(c.dir, "audit.yaml"),
		"--audit-log-path=" + filepath.Join(c.auditDir(), "audit.log"),
		"--audit-log-mode=blocking",
	}
}

// Audit returns the writes that the API server's audit log contains so far, in
// order of time: those for which match returns true, or all if match is nil.
// audit.yaml defines the content of an event: the user, verb and object, and
// for scales and autoscalers the object that was sent.
//
// A write appears in the log a moment after its caller has the answer. A test
// that expects no write must first wait for a later write of the same kind.
func (c *Cluster) Audit(match func(*auditv1.Event) bool) ([]auditv1.Event, error) {
	files, err := filepath.Glob(filepath.Join(c.auditDir(), "audit*.log")) // full files have a time in their name
	if err != nil {
		return nil, fmt.Errorf("find audit log: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("read audit log: cluster %s has none: it was started before there was one; start it again", c.state.Name)
	}
	var all []auditv1.Event
	for _, path := range files {
		b, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was renamed, and is read under its new name next time
		}
		if err != nil {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
		events, err := parseAudit(b, match)
		if err != nil {
			return nil, fmt.Errorf("read audit log %s: %w", path, err)
		}
		all = append(all, events...)
	}
	slices.SortStableFunc(all, func(a, b auditv1.Event) int {
		return cmp.Compare(a.RequestReceivedTimestamp.UnixMicro(), b.RequestReceivedTimestamp.UnixMicro())
	})
	return all, nil
}

// parseAudit parses a log with one event on each line. It ignores a last line
// without a line end, because that line is still being written.
func parseAudit(b []byte, match func(*auditv1.Event) bool) (events []auditv1.Event, err error) {
	for n := 1; ; n++ {
		line, rest, whole := bytes.Cut(b, []byte{'\n'})
		if !whole {
			return events, nil
		}
		var e auditv1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if e.ObjectRef == nil {
			return nil, fmt.Errorf("line %d: no object in %s", n, line)
		}
		if match == nil || match(&e) {
			events = append(events, e)
		}
		b = rest
	}
}
