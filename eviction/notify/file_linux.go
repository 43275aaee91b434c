package notify

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// file is an open file of the kernel's that is read again and again from its start. It is no
// os.File: Go's poller must not have it (see kernel).
type file struct {
	path string
	fd   int
	buf  []byte
}

func openFile(path string, flags int) (*file, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return &file{path: path, fd: fd}, nil
	}
}

// read returns all of it, valid until the next read.
func (f *file) read() ([]byte, error) {
	f.buf = f.buf[:0]
	for {
		f.buf = slices.Grow(f.buf, 4096)
		n, err := unix.Pread(f.fd, f.buf[len(f.buf):cap(f.buf)], int64(len(f.buf)))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, &os.PathError{Op: "read", Path: f.path, Err: err}
		case n == 0:
			return f.buf, nil
		default:
			f.buf = f.buf[:len(f.buf)+n]
		}
	}
}

func (f *file) readBytes() (int64, error) {
	b, err := f.read()
	if err != nil {
		return 0, err
	}
	n, err := parseBytes(b)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", f.path, err)
	}
	return n, nil
}

func (f *file) write(b []byte) error {
	if _, err := unix.Write(f.fd, b); err != nil {
		return &os.PathError{Op: "write", Path: f.path, Err: err}
	}
	return nil
}

func (f *file) close() {
	if f != nil {
		_ = unix.Close(f.fd)
	}
}

// lacks says, of an open that failed, that the directory is there and the file is not.
func lacks(path string, err error) bool {
	if !errors.Is(err, unix.ENOENT) {
		return false
	}
	_, err = os.Stat(filepath.Dir(path))
	return err == nil
}

// unified says that a directory is in a hierarchy of version 2.
func unified(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}
