package execute

import "fmt"

// Mode is how far an Executor goes.
type Mode uint8

// The modes.
const (
	Observe Mode = iota // touch nothing
	Evict               // ask the Eviction API, for hard thresholds too
	Kill                // ask it for soft thresholds; for hard ones and local limits, delete
)

var modes = [...]string{"observe", "evict", "kill"}

func (m Mode) String() string {
	if int(m) < len(modes) {
		return modes[m]
	}
	return fmt.Sprint("unknown ", uint8(m))
}

// MarshalText writes the word.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// ParseMode reads the word of a mode.
func ParseMode(s string) (Mode, error) {
	for i, name := range modes {
		if s == name {
			return Mode(i), nil
		}
	}
	return Observe, fmt.Errorf("parse mode %q: it is none of observe, evict, kill", s)
}
