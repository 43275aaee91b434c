package eviction

import "fmt"

// The closed lists, as they are written in transcripts and told to machines.
var (
	outcomes = [...]string{"Idle", "NoLayout", "NoSummary", "LocalLimit", "Calm", "Stale", "Reclaim", "Reclaimed",
		"Evict", "NoPods", "Nobody", "Watched", "Settling"}
	passes     = [...]string{"NotPassed", "Critical", "Doubt", "Self", "Blocked"}
	keys       = [...]string{"None", "NoStats", "Over", "Priority", "Excess", "Processes", "Name"}
	criticals  = [...]string{"NotCritical", "StaticPod", "MirrorPod", "CriticalPriority"}
	admissions = [...]string{"NoPressure", "Critical", "Requests", "Tolerates", "Memory", "Other"}
)

func (o Outcome) String() string       { return word(outcomes[:], uint8(o)) }
func (p Pass) String() string          { return word(passes[:], uint8(p)) }
func (k Key) String() string           { return word(keys[:], uint8(k)) }
func (c Critical) String() string      { return word(criticals[:], uint8(c)) }
func (a AdmissionCase) String() string { return word(admissions[:], uint8(a)) }

// MarshalText writes the word, not the number.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// MarshalText writes the word, not the number.
func (p Pass) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// MarshalText writes the word, not the number.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// MarshalText writes the word, not the number.
func (c Critical) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// MarshalText writes the word, not the number.
func (a AdmissionCase) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

func word(list []string, i uint8) string {
	if int(i) < len(list) {
		return list[i]
	}
	return fmt.Sprint("unknown ", i)
}
