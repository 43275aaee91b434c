package notify

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// trigger is a Trigger in force.
type trigger struct {
	kernel *kernel
	token  int32
	want   Trigger
	file   *file
	total  time.Duration // the stall when it last gave notice
}

func openTrigger(k *kernel, want Trigger) (*trigger, error) {
	free := mayAnyWindow()
	if !free && want.Window%stallWindow != 0 {
		return nil, fmt.Errorf("a window of %s needs the capability CAP_SYS_RESOURCE, which this process lacks: without it the window must be a multiple of %s", want.Window, stallWindow)
	}
	f, err := openFile(want.Path, unix.O_RDWR)
	switch {
	case lacks(want.Path, err) || errors.Is(err, unix.ENOENT) && strings.HasPrefix(want.Path, "/proc/"):
		return nil, unsupported("there is no such file: the kernel keeps no pressure stall information (it wants Linux 4.20, CONFIG_PSI, and psi=1 at boot where that is not the default)")
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("%w: before Linux 6.5 a trigger needs CAP_SYS_RESOURCE, and the file must be writable", err)
	case err != nil:
		return nil, psiOff(err)
	}
	t := &trigger{kernel: k, want: want, file: f}
	if err := t.set(free); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *trigger) set(free bool) error {
	total, hasFull, err := t.stall()
	if err != nil {
		return psiOff(err)
	}
	if t.want.Full && !hasFull {
		return unsupported("this kernel does not tell when all tasks stall for it")
	}
	t.total = total
	line := fmt.Appendf(nil, "%s %d %d\x00", t.want.share(), t.want.Stall.Microseconds(), t.want.Window.Microseconds())
	if err := t.file.write(line); err != nil {
		if errors.Is(err, unix.EINVAL) && free {
			return fmt.Errorf("%w: CAP_SYS_RESOURCE counts only outside of user namespaces; without it the window must be a multiple of %s", err, stallWindow)
		}
		return psiOff(err)
	}
	t.token, err = t.kernel.add(t.file.fd, unix.EPOLLPRI, t)
	return err
}

// psiOff tells a kernel that has pressure stall information switched off.
func psiOff(err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) {
		return unsupported("pressure stall information is switched off: boot with psi=1; of a cgroup, write 1 to cgroup.pressure")
	}
	return err
}

// stall reads how long tasks stalled in all.
func (t *trigger) stall() (total time.Duration, hasFull bool, err error) {
	b, err := t.file.read()
	if err != nil {
		return 0, false, err
	}
	totals, err := parseStallTotals(b)
	if err != nil {
		return 0, false, fmt.Errorf("read %s: %w", t.want.Path, err)
	}
	if t.want.Full {
		return totals.full, totals.hasFull, nil
	}
	return totals.some, totals.hasFull, nil
}

// move has nothing to move, another figure is another trigger; it looks whether the cgroup
// is still there.
func (t *trigger) move(Watch) error {
	_, _, err := t.stall()
	return err
}

func (t *trigger) woken() (Source, bool, error) {
	source := Source{Watch: t.want}
	total, _, err := t.stall()
	if err != nil {
		return source, true, err
	}
	source.Stalled = total - t.total
	t.total = total
	return source, true, nil
}

func (t *trigger) close() {
	t.file.close()
	t.kernel.forget(t.token)
}

// mayAnyWindow says whether this process has CAP_SYS_RESOURCE. If that cannot be told,
// the kernel is asked and says so.
func mayAnyWindow() bool {
	var data [2]unix.CapUserData // version 3 fills both
	err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0])
	return err != nil || data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}
