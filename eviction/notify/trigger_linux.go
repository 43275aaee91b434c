package notify

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// activeTrigger is an active StallTrigger.
type activeTrigger struct {
	kernel *kernel
	token  int32
	want   StallTrigger
	file   *kernelFile
	total  time.Duration // the total stall at its last notice
}

func openTrigger(k *kernel, want StallTrigger) (*activeTrigger, error) {
	free := hasSysResource()
	if !free && want.Window%stallWindow != 0 {
		return nil, fmt.Errorf("a window of %s needs the capability CAP_SYS_RESOURCE, which this process lacks: without it the window must be a multiple of %s", want.Window, stallWindow)
	}
	f, err := openFile(want.Path, unix.O_RDWR)
	switch {
	case fileMissing(want.Path, err) || errors.Is(err, unix.ENOENT) && strings.HasPrefix(want.Path, "/proc/"):
		return nil, unsupported("there is no such file: the kernel keeps no pressure stall information (it needs Linux 4.20, CONFIG_PSI, and psi=1 at boot where that is not the default)")
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("%w: before Linux 6.5 a trigger needs CAP_SYS_RESOURCE, and the file must be writable", err)
	case err != nil:
		return nil, explainPSIError(err)
	}
	t := &activeTrigger{kernel: k, want: want, file: f}
	if err := t.register(free); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *activeTrigger) register(free bool) error {
	total, hasFull, err := t.readTotal()
	if err != nil {
		return explainPSIError(err)
	}
	if t.want.Full && !hasFull {
		return unsupported("this kernel does not report when all tasks stall for it")
	}
	t.total = total
	line := fmt.Appendf(nil, "%s %d %d\x00", t.want.share(), t.want.Stall.Microseconds(), t.want.Window.Microseconds())
	if err := t.file.write(line); err != nil {
		if errors.Is(err, unix.EINVAL) && free {
			return fmt.Errorf("%w: CAP_SYS_RESOURCE counts only outside of user namespaces; without it the window must be a multiple of %s", err, stallWindow)
		}
		return explainPSIError(err)
	}
	t.token, err = t.kernel.add(t.file.fd, unix.EPOLLPRI, t)
	return err
}

// explainPSIError replaces the error of a kernel without pressure stall information.
func explainPSIError(err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) {
		return unsupported("pressure stall information is switched off: boot with psi=1; of a cgroup, write 1 to cgroup.pressure")
	}
	return err
}

// readTotal reads the total stall time.
func (t *activeTrigger) readTotal() (total time.Duration, hasFull bool, err error) {
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

// check checks whether the cgroup still exists.
func (t *activeTrigger) check() error {
	_, _, err := t.readTotal()
	return err
}

func (t *activeTrigger) readNotice() (NoticeSource, bool, error) {
	source := NoticeSource{Watch: t.want}
	total, _, err := t.readTotal()
	if err != nil {
		return source, true, err
	}
	// The kernel adds up what it shows only every 2 s (psi_avgs_work), but gives notice earlier.
	source.Stalled = max(total-t.total, t.want.Stall)
	t.total = total
	return source, true, nil
}

func (t *activeTrigger) close() {
	t.file.close()
	t.kernel.removeToken(t.token)
}

// hasSysResource reports whether this process has CAP_SYS_RESOURCE, which allows any window. It
// returns true if that is not known; the kernel may then refuse the window.
func hasSysResource() bool {
	var data [2]unix.CapUserData // version 3 fills both
	err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0])
	return err != nil || data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}
