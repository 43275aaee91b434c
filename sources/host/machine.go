//go:build linux

package host

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/google/cadvisor/lib/fs"
	_ "github.com/google/cadvisor/lib/fs/btrfs/install"
	_ "github.com/google/cadvisor/lib/fs/overlay/install"
	_ "github.com/google/cadvisor/lib/fs/vfs/install"
	facts "github.com/google/cadvisor/lib/machine"
	"github.com/google/cadvisor/lib/model"
	"github.com/google/cadvisor/lib/utils/sysfs"
	"golang.org/x/sys/unix"
)

// machine is what cAdvisor says of the machine, and what does not change
// while it is up.
type machine struct {
	info *model.MachineInfo
	fs   fs.FsInfo // mounts as of the last look
	// root is the device of the root file system; empty if unknown.
	root string
	boot time.Time
	// disks tells by /sys/block whether a device is hardware: not mapped onto
	// others, not in memory, not a partition.
	disks map[[2]uint64]string // major and minor to name
}

// machineAge is how old what is known of the machine may be: file systems are
// mounted and CPUs plugged rarely, and looking is slow.
const machineAge = time.Minute

// readMachine looks at the machine. What fails leaves a gap, and is returned
// as an error.
func readMachine(rootFS string, boot time.Time) (*machine, error) {
	m := &machine{info: &model.MachineInfo{}, boot: boot}
	var errs []error
	var err error
	if m.fs, err = fs.NewFsInfo(fs.Context{}); err != nil {
		return m, fmt.Errorf("list file systems: %w", err)
	}
	if device, err := m.fs.GetDirFsDevice(rootFS); err == nil {
		m.root = device.Device
	}
	if info, err := facts.Info(sysfs.NewRealSysFs(), m.fs, true); err == nil {
		m.info = info
	} else {
		errs = append(errs, fmt.Errorf("describe the machine: %w", err))
	}
	m.disks = findDisks("/sys/block")
	return m, errors.Join(errs...)
}

// GetMachineInfo makes m the factory cAdvisor's functions ask for.
func (m *machine) GetMachineInfo() (*model.MachineInfo, error) { return m.info, nil }

// GetVersionInfo is not asked for by what this package uses.
func (m *machine) GetVersionInfo() (*model.VersionInfo, error) {
	return nil, errors.ErrUnsupported
}

// isDisk reports whether a device is hardware.
func (m *machine) isDisk(major, minor uint64) bool {
	_, ok := m.disks[[2]uint64{major, minor}]
	return ok
}

func findDisks(sysBlock string) map[[2]uint64]string {
	disks := map[[2]uint64]string{}
	devices, _ := filepath.Glob(path.Join(sysBlock, "*", "device"))
	for _, d := range devices {
		dir := path.Dir(d)
		data, err := os.ReadFile(path.Join(dir, "dev"))
		if err != nil {
			continue
		}
		var n [2]uint64
		if _, err := fmt.Sscanf(string(data), "%d:%d", &n[0], &n[1]); err == nil {
			disks[n] = path.Base(dir)
		}
	}
	return disks
}

// bootTime returns when the kernel started, by today's clock. It is taken once in the life
// of a Host, so that it does not move when the clock is set.
func bootTime() (time.Time, error) {
	now, up := time.Now(), unix.Timespec{}
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return time.Time{}, fmt.Errorf("read time since boot: %w", err)
	}
	return now.Add(-time.Duration(up.Nano())).Round(0), nil
}
