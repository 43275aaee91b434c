//go:build linux

package harness

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const stateFile = "state.json"

// ClusterRecord is the content of a cluster's state.json. With it, another process can
// use and stop the cluster.
type ClusterRecord struct {
	Name      string    `json:"name"`
	Node      string    `json:"node"`
	Kind      NodeKind  `json:"kind,omitempty"` // of the node
	Cgroup    string    `json:"cgroup"`         // below each hierarchy's root, with a leading slash
	Interface string    `json:"interface"`      // this machine's end of the link
	Network   Network   `json:"network"`
	Programs  Programs  `json:"programs"`
	Source    string    `json:"source"` // weir's source tree
	Created   time.Time `json:"created"`
	Boot      string    `json:"boot"` // the kernel's boot ID: processes end at a reboot
	Processes []Process `json:"processes"`
}

// Process is one process of a cluster. The process ID alone could belong to
// another process by now. Process ID and start time together identify it.
type Process struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Started uint64 `json:"started"` // clock ticks after boot, as in /proc/PID/stat
	Address string `json:"address,omitempty"`
	Health  string `json:"health,omitempty"` // URL that answers 200 when it is healthy
}

func newState(o Options, source string, p Programs, now time.Time) ClusterRecord {
	sum := sha256.Sum256([]byte(filepath.Join(o.Dir, o.Name)))
	return ClusterRecord{
		Name:      o.Name,
		Node:      o.Name + "-node",
		Kind:      o.Node,
		Cgroup:    string(cgroupOf(o.Name)),
		Interface: "weir-" + hex.EncodeToString(sum[:4]), // at most 15 bytes
		Programs:  p,
		Source:    source,
		Created:   now.UTC().Truncate(time.Second),
		Boot:      bootID(),
	}
}

func readState(dir string) (ClusterRecord, error) {
	var s ClusterRecord
	b, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return s, fmt.Errorf("read state: %w", err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("read state %s: %w", filepath.Join(dir, stateFile), err)
	}
	return s, nil
}

// write replaces the file in one step, so a reader sees the old or the new
// state.
func (s ClusterRecord) write(dir string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	path := filepath.Join(dir, stateFile)
	if err := os.WriteFile(path+".new", append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}

// Alive reports whether any process of the cluster runs.
func (s ClusterRecord) Alive() bool {
	for _, p := range s.Processes {
		if s.Boot == bootID() && p.Alive() {
			return true
		}
	}
	return false
}

// Alive reports whether exactly this process runs. A zombie does not count, nor
// does another process with the same process ID.
func (p Process) Alive() bool {
	started, state, err := processStat(p.PID)
	return err == nil && started == p.Started && state != 'Z' && state != 'X'
}

// processStat returns when a process started, in clock ticks after boot, and
// the letter of its state.
func processStat(pid int) (started uint64, state byte, err error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, fmt.Errorf("read process: %w", err)
	}
	return parseStat(b)
}

func parseStat(b []byte) (started uint64, state byte, err error) {
	// The name in parentheses may itself contain spaces and parentheses.
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return 0, 0, fmt.Errorf("read process: no name in %q", b)
	}
	fields := strings.Fields(string(b[end+1:])) // from field 3, the state
	if len(fields) < 20 || len(fields[0]) != 1 {
		return 0, 0, fmt.Errorf("read process: too few fields in %q", b)
	}
	started, err = strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("read process: start time: %w", err)
	}
	return started, fields[0][0], nil
}

func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without it, all boots count as one
	return strings.TrimSpace(string(b))
}

// within reports whether path is folder or is in it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}
