package notify

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
)

// Watch is something to ask the kernel for: a Threshold, a Trigger or Events.
type Watch interface {
	// String names it for people.
	String() string
	// key tells watches apart. One that comes again under its key is the same watch,
	// perhaps with another figure.
	key() string
	// check says what is wrong with it, whatever the kernel.
	check() error
}

// Threshold is crossed when the usage of a memory cgroup (version 1) passes a figure, up
// or down. The kernel compares when about 128 pages were charged or freed on a
// processor, so it is late by up to so many pages for each.
type Threshold struct {
	// Name tells thresholds on one cgroup apart.
	Name string
	// Notice is where and at which figure, as eviction.Threshold.Notice computes it. With a
	// WorkingSet, Bytes only stands in for it: the figure is WorkingSet and the
	// inactive_file of the moment, and follows it.
	eviction.Notice
}

// Trigger is pulled when tasks stall for Stall or longer within Window.
type Trigger struct {
	// Path is of a pressure file: /proc/pressure/memory, or memory.pressure in a cgroup
	// of version 2.
	Path string
	// Full asks for stalls of all tasks that are not idle, not of some.
	Full bool
	// Window is 500 ms to 10 s; without CAP_SYS_RESOURCE a multiple of 2 s, and the
	// kernel looks every 2 s only. Stall is at most Window. It is pulled once a Window.
	Stall, Window time.Duration
}

// Events gives notice when a counter changes in a cgroup file of version 2 that lists
// counters: memory.events, memory.events.local, pids.events, cgroup.events.
type Events struct{ Path string }

// stallWindow is the shortest window that needs no capability; the kernel also computes
// its averages at this pace.
const stallWindow = 2 * time.Second

// The windows that the kernel takes (WINDOW_MIN_US and WINDOW_MAX_US in
// kernel/sched/psi.c).
const minWindow, maxWindow = 500 * time.Millisecond, 10 * time.Second

// Of is what to watch for a threshold of eviction: a Threshold for memory, a Trigger for a
// pressure signal (of the whole node), an error for what the kernel gives no notice of.
//
// The trigger asks for the signal's share of a window of 2 s. The kernel's averages are of
// samples of 2 s, and an average rises past a figure only by a sample above it: so whenever
// avg10 rises past the threshold the trigger is pulled. It is pulled more often, by stalls too
// short to move the average so far.
func Of(t *eviction.Threshold, s *stats.Summary, c eviction.Cgroups) (Watch, error) {
	if t.Signal.Pressure() {
		parts := strings.Split(string(t.Signal), ".")
		return Trigger{
			Path:   filepath.Join("/proc/pressure", parts[0]),
			Full:   parts[2] == "full",
			Stall:  time.Duration(t.Value.Stall / 100 * float64(stallWindow)),
			Window: stallWindow,
		}, nil
	}
	n, err := t.Notice(s, c)
	if err != nil {
		return nil, err
	}
	return Threshold{Name: t.String(), Notice: n}, nil
}

// String is the name and the file.
func (t Threshold) String() string {
	return strings.TrimSpace(t.Name + " (" + filepath.Join(t.Path, t.Attribute) + ")")
}

// String is as the kernel is asked, in people's units.
func (t Trigger) String() string {
	return fmt.Sprintf("%s stalled for %s in %s (%s)", t.share(), t.Stall, t.Window, t.Path)
}

// String is the file.
func (e Events) String() string { return e.Path }

// Look is somebody's own look at what the kernel gives no notice of: see Notifier.Saw.
type Look struct {
	Of string // what was looked at
}

// String is what was looked at.
func (l Look) String() string { return l.Of }

func (l Look) key() string  { return "look " + l.Of }
func (l Look) check() error { return errors.New("the kernel gives no notice of it: tell with Saw") }

func (t Threshold) key() string { return "threshold " + t.String() }
func (t Trigger) key() string   { return "trigger " + t.String() }
func (e Events) key() string    { return "events " + e.Path }

func (t Trigger) share() string {
	if t.Full {
		return "full"
	}
	return "some"
}

func (t Threshold) check() error {
	switch {
	case t.Path == "" || t.Attribute == "":
		return errors.New("name the cgroup's directory and the file to watch")
	case strings.Contains(t.Attribute, "/"):
		return fmt.Errorf("%q is no file of a cgroup", t.Attribute)
	case t.Bytes <= 0, t.WorkingSet < 0:
		return fmt.Errorf("no usage can cross %d bytes: the threshold asks for more than there is", min(t.Bytes, t.WorkingSet))
	}
	return nil
}

func (t Trigger) check() error {
	switch {
	case t.Path == "":
		return errors.New("name the pressure file")
	case t.Window < minWindow || t.Window > maxWindow:
		return fmt.Errorf("the window is %s; the kernel takes %s to %s", t.Window, minWindow, maxWindow)
	case t.Window%time.Microsecond != 0:
		return fmt.Errorf("the window is %s; the kernel counts in microseconds", t.Window)
	case t.Stall < time.Microsecond || t.Stall > t.Window:
		return fmt.Errorf("the stall is %s; it must be above nothing and at most the window, %s", t.Stall, t.Window)
	}
	return nil
}

func (e Events) check() error {
	if e.Path == "" {
		return errors.New("name the file of counters")
	}
	return nil
}
