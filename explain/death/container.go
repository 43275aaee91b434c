package death

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/cluster/eventlog/event"
)

// failedProbe finds the kubelet's Event that it kills the container because of a probe.
func failedProbe(d *decision) bool {
	for _, p := range probes {
		kill := d.killing(func(message string) bool { return strings.Contains(message, p.killing) })
		if kill == nil {
			continue
		}
		if failed := d.eventOfRun(d.End.Container, "Unhealthy", func(message string) bool {
			return strings.HasPrefix(strings.ToLower(message), p.unhealthy)
		}); failed != nil {
			d.fact(fromEvents, "Unhealthy, of the kubelet: the %s failed, %s", p.unhealthy, occurrence(failed, d.End.At))
		}
		d.fact(fromEvents, "Killing, of the kubelet: the container failed its %s, %s", p.unhealthy, occurrence(kill, d.End.At))
		d.conclude(p.cause, Certain, "")
		d.limitConfidence(kill)
		return true
	}
	return false
}

// limitConfidence makes an answer likely if the Event that it is from may be of another run.
func (d *decision) limitConfidence(e *event.Event) {
	happened, sure := d.during(e)
	if !happened {
		d.fact(fromEvents, "not known: %s", d.eventsMissing())
	}
	if !sure {
		d.death.Confidence = Likely
	}
}

// stoppedByKubelet finds another reason for which a kubelet kills a container.
func stoppedByKubelet(d *decision) bool {
	kill, done := d.killing(nil), d.podWasDone()
	if kill == nil {
		s, signalled := signalOf(d.run)
		return done && signalled && !s.crash && d.eventsMissing() != "" && d.conclude(KubeletStopped, Likely, podDone)
	}
	d.fact(fromEvents, "Killing, of the kubelet, %s", occurrence(kill, d.End.At))
	switch {
	case d.concludeReported(containerKilling, "", kill.Message):
	case done:
		d.conclude(KubeletStopped, Certain, podDone)
	case d.eventOfRun("", "SandboxChanged", nil) != nil:
		d.conclude(KubeletStopped, Certain, "stopped by the kubelet: the sandbox of its pod was made again")
	default:
		d.conclude(KubeletStopped, Likely, "")
	}
	d.limitConfidence(kill)
	return true
}

const podDone = "stopped by the kubelet: it is a sidecar, and the main containers of its pod had ended"

// podWasDone reports whether the container is a sidecar, and all regular containers had ended and are not started again.
func (d *decision) podWasDone() bool {
	return d.container != nil && d.container.Role == cluster.Sidecar && !slices.ContainsFunc(d.pod.Containers, func(c cluster.Container) bool {
		return c.Role == cluster.Regular && (c.State != cluster.StateTerminated || c.EndedAt().After(d.End.At))
	})
}

// runtimeError applies to runs that the runtime could not start, or lost.
func runtimeError(d *decision) bool { return d.concludeReported(runFailed, d.run.Reason, "") }

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
	{1, "HUP", "hangup", false}, {2, "INT", "interrupt", false}, {3, "QUIT", "quit", true}, {4, "ILL", "illegal instruction", true},
	{5, "TRAP", "breakpoint", true}, {6, "ABRT", "abort", true}, {7, "BUS", "bus error", true}, {8, "FPE", "arithmetic error, such as a division by zero", true},
	{9, "KILL", "cannot be caught", false}, {10, "USR1", "user-defined", false}, {11, "SEGV", "invalid memory access", true}, {12, "USR2", "user-defined", false},
	{13, "PIPE", "wrote to a pipe or socket that nobody reads", true}, {14, "ALRM", "timer", true}, {15, "TERM", "asked to terminate", false},
	{24, "XCPU", "exceeded its ulimit on CPU time", true}, {25, "XFSZ", "exceeded its ulimit on file size", true}, {31, "SYS", "forbidden system call, as by seccomp", true},
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
	case !ok && d.run.ExitCode == 0 && d.run.Ended.IsZero():
		return false
	}
	confidence := Certain
	if missing := d.eventsMissing(); missing != "" {
		confidence = Likely // the kubelet may have asked it to end
		d.fact(fromEvents, "not known: %s", missing)
	}
	switch {
	case ok:
		words := s.String()
		if s.words != "" {
			words += " (" + s.words + ")"
		}
		if s.number == 9 && d.nearLimit() {
			d.fact(fromHistory, "it used nearly all of its memory limit: the kernel may have killed it, although the runtime did not notice")
			return d.conclude(MemoryKill, Undecided, "killed by an unknown sender, near its memory limit")
		}
		confidence = Likely
		if s.number == 9 {
			confidence = Undecided // a person, a process or the kernel: SIGKILL leaves no trace
		}
		return d.conclude(Signalled, confidence, "ended by %s", words)
	case d.run.ExitCode != 0:
		return d.conclude(Exited, confidence, "exited with code %d", d.run.ExitCode)
	}
	return d.conclude(Completed, confidence, "")
}
