//go:build linux

package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// qmp is a connection to QEMU's monitor (the QEMU Machine Protocol).
type qmp struct {
	conn net.Conn
	in   *json.Decoder
}

// openMonitor connects to the monitor's socket, which QEMU opens as it starts.
func openMonitor(ctx context.Context, socket string) (*qmp, error) {
	var conn net.Conn
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var last error
	if err := poll(ctx, 20*time.Millisecond, func() (bool, error) {
		conn, last = (&net.Dialer{}).DialContext(ctx, "unix", socket)
		return last == nil, nil
	}); err != nil {
		return nil, fmt.Errorf("connect to the monitor: %w", errors.Join(err, last))
	}
	q := &qmp{conn: conn, in: json.NewDecoder(conn)}
	var greeting json.RawMessage
	if err := q.in.Decode(&greeting); err != nil {
		conn.Close()
		return nil, fmt.Errorf("connect to the monitor: %w", err)
	}
	if err := q.do("qmp_capabilities", nil, nil); err != nil {
		conn.Close()
		return nil, err
	}
	return q, nil
}

func (q *qmp) close() { q.conn.Close() }

// do runs a command and decodes what it returns into result, unless that is
// nil.
func (q *qmp) do(command string, arguments, result any) error {
	if err := q.conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return fmt.Errorf("monitor: %s: %w", command, err)
	}
	request := struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
	}{command, arguments}
	if err := json.NewEncoder(q.conn).Encode(request); err != nil {
		return fmt.Errorf("monitor: %s: %w", command, err)
	}
	for {
		var answer struct {
			Return json.RawMessage
			Error  *struct{ Desc string }
		}
		if err := q.in.Decode(&answer); err != nil {
			return fmt.Errorf("monitor: %s: %w", command, err)
		}
		switch {
		case answer.Error != nil:
			return fmt.Errorf("monitor: %s: %s", command, answer.Error.Desc)
		case answer.Return == nil: // an event
		case result != nil:
			return json.Unmarshal(answer.Return, result)
		default:
			return nil
		}
	}
}

// A capability of a migration.
type capability struct {
	Capability string `json:"capability"`
	State      bool   `json:"state"`
}

// ignoreShared leaves memory that is a file out of what a migration writes.
func (q *qmp) ignoreShared() error {
	return q.do("migrate-set-capabilities", map[string]any{"capabilities": []capability{{"x-ignore-shared", true}}}, nil)
}

// save writes the machine's state, without its memory, to a file. The machine
// does not continue.
func (q *qmp) save(ctx context.Context, path string) error {
	if err := q.ignoreShared(); err != nil {
		return err
	}
	if err := q.do("migrate", map[string]string{"uri": "exec:cat >" + path}, nil); err != nil {
		return err
	}
	return poll(ctx, 100*time.Millisecond, func() (bool, error) {
		var m struct {
			Status      string
			Description string `json:"error-desc"`
		}
		if err := q.do("query-migrate", nil, &m); err != nil {
			return false, err
		}
		if m.Status == "failed" || m.Status == "cancelled" {
			return false, fmt.Errorf("save the machine's state: %s %s", m.Status, m.Description)
		}
		return m.Status == "completed", nil
	})
}

// load continues from a state that save wrote.
func (q *qmp) load(ctx context.Context, path string) error {
	if err := q.ignoreShared(); err != nil {
		return err
	}
	if err := q.do("migrate-incoming", map[string]string{"uri": "exec:cat " + path}, nil); err != nil {
		return err
	}
	return poll(ctx, 20*time.Millisecond, func() (bool, error) {
		var s struct{ Status string }
		if err := q.do("query-status", nil, &s); err != nil {
			return false, err
		}
		return s.Status == "running", nil
	})
}
