package death

import (
	"fmt"
	"strings"

	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/cluster/eventlog/event"
)

// failedProbe finds the kubelet's Event that it kills the container because of a probe.
func failedProbe(d *decision) bool {
	for _, p := range []struct {
		cause Cause
		name  string
	}{{LivenessProbe, "liveness"}, {StartupProbe, "startup"}} {
		var how Confidence
		kill := d.event(kubelet, d.End.Container, func(e *event.Event) bool {
			happened, sure := d.during(e)
			if how = Likely; sure {
				how = Certain
			}
			return happened && e.Reason == "Killing" && strings.Contains(e.Message, "failed "+p.name+" probe")
		})
		if kill == nil {
			continue
		}
		if failed := d.event(kubelet, d.End.Container, func(e *event.Event) bool {
			happened, _ := d.during(e)
			return happened && e.Reason == "Unhealthy" && strings.HasPrefix(strings.ToLower(e.Message), p.name+" probe")
		}); failed != nil {
			d.fact(fromEvents, "Unhealthy, of the kubelet: the %s probe failed, %s", p.name, occurrence(failed, d.End.At))
		}
		d.fact(fromEvents, "Killing, of the kubelet: the container failed its %s probe, %s", p.name, occurrence(kill, d.End.At))
		return d.conclude(p.cause, how, "")
	}
	return false
}

// stoppedByKubelet finds another reason for which a kubelet kills a container.
func stoppedByKubelet(d *decision) bool {
	var reason string
	kill := d.event(kubelet, d.End.Container, func(e *event.Event) bool {
		happened, _ := d.during(e)
		if !happened || e.Reason != "Killing" {
			return false
		}
		switch {
		case strings.Contains(e.Message, "definition changed"):
			reason = "its definition changed"
		case strings.Contains(e.Message, "FailedPostStartHook"):
			reason = "its postStart hook failed"
		case strings.Contains(e.Message, "resize"):
			reason = "a resize of its resources needs a restart"
		default:
			reason = ""
		}
		return true
	})
	if kill == nil {
		return false
	}
	d.fact(fromEvents, "Killing, of the kubelet, %s", occurrence(kill, d.End.At))
	if reason == "" {
		if sandbox := d.event(kubelet, "", func(e *event.Event) bool {
			happened, _ := d.during(e)
			return happened && e.Reason == "SandboxChanged"
		}); sandbox != nil {
			reason = "the sandbox of its pod was made again"
		}
	}
	if reason != "" {
		return d.conclude(KubeletStopped, Certain, "stopped by the kubelet: %s", reason)
	}
	return d.conclude(KubeletStopped, Likely, "")
}

// runtimeErrors are the reasons of runs that the runtime could not start, or lost.
var runtimeErrors = map[string]string{
	"ContainerCannotRun":     "the runtime could not start it",
	"StartError":             "the runtime could not start it",
	"ContainerStatusUnknown": "the kubelet found no trace of it, as after a restart of the node or of the container runtime",
}

func runtimeError(d *decision) bool {
	meaning, ok := runtimeErrors[d.run.Reason]
	if !ok {
		return false
	}
	how := Certain
	if d.run.Reason == "ContainerStatusUnknown" {
		how = Likely
	}
	return d.conclude(RuntimeError, how, "%s", meaning)
}

// signal is a signal of Linux.
type signal struct {
	number int32
	name   string
	words  string
	crash  bool // the program did something that it may not, or gave up by itself
}

// String returns the name, such as SIGTERM.
func (s signal) String() string {
	if s.name == "" {
		return fmt.Sprintf("signal %d", s.number)
	}
	return "SIG" + s.name
}

var signals = []signal{
	{1, "HUP", "hang up", false}, {2, "INT", "interrupt", false}, {3, "QUIT", "quit", true}, {4, "ILL", "an instruction that does not exist", true},
	{5, "TRAP", "a breakpoint", true}, {6, "ABRT", "it aborted itself", true}, {7, "BUS", "memory that does not exist", true}, {8, "FPE", "a calculation that is not possible", true},
	{9, "KILL", "killed at once", false}, {10, "USR1", "which a program defines", false}, {11, "SEGV", "memory that is not its own", true}, {12, "USR2", "which a program defines", false},
	{13, "PIPE", "nobody reads what it writes", true}, {14, "ALRM", "a timer", true}, {15, "TERM", "asked to end", false},
	{24, "XCPU", "more CPU time than its ulimit", true}, {25, "XFSZ", "a larger file than its ulimit", true}, {31, "SYS", "a system call that is forbidden", true},
}

// signalOf returns the signal that ended a run. A runtime reports it as exit code 128+signal.
func signalOf(r *endlog.Run) (signal, bool) {
	n := r.Signal
	if n == 0 && r.ExitCode > 128 && r.ExitCode <= 128+64 {
		n = r.ExitCode - 128
	}
	if n <= 0 {
		return signal{}, false
	}
	for _, s := range signals {
		if s.number == n {
			return s, true
		}
	}
	return signal{number: n}, n <= 64
}

// ownExit applies to runs that nobody is known to have ended.
func ownExit(d *decision) bool {
	s, ok := signalOf(d.run)
	switch {
	case ok && s.crash:
		return d.conclude(Crashed, Likely, "crashed: %s (%s)", s, s.words)
	case ok:
		if d.EventsUnread != "" {
			d.fact(fromEvents, "not known: %s", d.EventsUnread)
		}
		words := s.String()
		if s.words != "" {
			words += " (" + s.words + ")"
		}
		if s.number == 9 && d.nearLimit() {
			d.fact(fromHistory, "it used nearly all of its memory limit: the kernel may have killed it, although the runtime did not notice")
			return d.conclude(MemoryKill, Undecided, "killed at once by an unknown sender, near its memory limit")
		}
		how := Likely
		if s.number == 9 {
			how = Undecided // a person, a process or the kernel: SIGKILL leaves no trace
		}
		return d.conclude(Signalled, how, "ended by %s", words)
	case d.run.ExitCode != 0:
		return d.conclude(Exited, Certain, "ended by itself with exit code %d", d.run.ExitCode)
	case d.run.Ended.IsZero():
		return false
	}
	how := Certain
	if d.EventsUnread != "" {
		how = Likely // the kubelet may have asked it to end
	}
	return d.conclude(Completed, how, "")
}
