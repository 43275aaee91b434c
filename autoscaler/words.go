package autoscaler

import "fmt"

// The closed lists, as they are written in transcripts and told to machines.
var (
	outcomes = [...]string{"None", "Scaled", "WithinTolerance", "WouldTurn", "FromZero"}
	classes  = [...]string{"Counted", "Unready", "Missing", "Ignored", "Stranger"}
	whys     = [...]string{"Ready", "Terminating", "Failed", "Pending", "NoSample", "NoCondition", "Starting",
		"WindowTooEarly", "NeverReady", "NotRunning", "NotReady", "Unknown"}
	stepKinds = [...]string{"Disabled", "AboveMax", "BelowMin", "Propose", "StabilizeDown", "StabilizeUp",
		"PolicyUp", "PolicyDown", "Doubling", "Max", "Min", "LeaveZero"}
)

func (o Outcome) String() string  { return word(outcomes[:], uint8(o)) }
func (c Class) String() string    { return word(classes[:], uint8(c)) }
func (w Why) String() string      { return word(whys[:], uint8(w)) }
func (k StepKind) String() string { return word(stepKinds[:], uint8(k)) }

func word(list []string, i uint8) string {
	if int(i) < len(list) {
		return list[i]
	}
	return fmt.Sprint("unknown ", i)
}
