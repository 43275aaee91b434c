//go:build linux

package harness

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// NodeDisk is a file system of the node's own, for what the kubelet and the
// runtime write: pods' volumes and logs, images, containers' layers. So a test
// can fill it, and neither meets nor troubles whoever else uses this machine's.
//
// It is ext4 in a file (mounted through a loop device), or else a tmpfs; where
// neither can be mounted, Start fails and says so. The zero value is for none.
type NodeDisk struct {
	Bytes  int64 // how large; images take the first few hundred MiB
	Inodes int64 // how many files and folders fit
}

// args are what node.sh makes of it.
func (d NodeDisk) args() ([]string, error) {
	if d == (NodeDisk{}) {
		return nil, nil
	}
	if d.Bytes <= 0 || d.Inodes <= 0 {
		return nil, fmt.Errorf("make the node's disk of %d bytes with %d inodes: give both", d.Bytes, d.Inodes)
	}
	return []string{strconv.FormatInt(d.Bytes, 10), strconv.FormatInt(d.Inodes, 10)}, nil
}

// NodePath returns where this machine finds a path of the node's file system.
func (c *Cluster) NodePath(path string) (string, error) {
	node, ok := c.process(holder)
	if !ok || !node.Alive() {
		return "", fmt.Errorf("find %s: cluster %s does not run", path, c.state.Name)
	}
	return filepath.Join("/proc", strconv.Itoa(node.PID), "root", path), nil
}
