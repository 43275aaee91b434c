//go:build linux

package harness

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// NodeDisk is a separate file system of the node, for everything that the
// kubelet and the runtime write: pods' volumes and logs, images, and
// containers' layers. So a test can fill it without effect on other programs of
// this machine, and they have no effect on the test.
//
// It is ext4 in a file that is mounted through a loop device, or a tmpfs. If
// neither can be mounted, Start returns an error. The zero value means no
// separate disk.
type NodeDisk struct {
	Bytes  int64 // size; images need the first few hundred MiB
	Inodes int64 // maximum number of files and folders
}

// args returns the arguments for node.sh.
func (d NodeDisk) args() ([]string, error) {
	if d == (NodeDisk{}) {
		return nil, nil
	}
	if d.Bytes <= 0 || d.Inodes <= 0 {
		return nil, fmt.Errorf("make the node's disk of %d bytes with %d inodes: give both", d.Bytes, d.Inodes)
	}
	return []string{strconv.FormatInt(d.Bytes, 10), strconv.FormatInt(d.Inodes, 10)}, nil
}

// NodePath returns the path on this machine of a path in the node's file
// system.
func (c *Cluster) NodePath(path string) (string, error) {
	node, ok := c.process(holder)
	if !ok || !node.Alive() {
		return "", fmt.Errorf("find %s: cluster %s does not run", path, c.state.Name)
	}
	return filepath.Join("/proc", strconv.Itoa(node.PID), "root", path), nil
}
