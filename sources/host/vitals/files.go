//go:build linux

package vitals

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// fileReader reads small files and lists directories through one buffer. It does so by system
// calls: an os.File would ask the poller, and make an entry for each of the forty files of a cgroup.
type fileReader struct{ buffer []byte }

// initialBuffer holds every file read here at once, but for long lists of processes.
const initialBuffer = 32 << 10

// openFile is a file that stays open once it was read: opening one costs several times what reading
// does.
type openFile struct {
	name string
	fd   int
	open bool
}

// close closes it until it is read again.
func (h *openFile) close() {
	if h.open {
		closeFD(h.fd)
		h.open = false
	}
}

// read returns what a file holds now, until the next is read. The file's name may be relative to the
// directory at.
func (f *fileReader) read(h *openFile, at int) ([]byte, error) {
	kept := h.open
	data, err := f.readOnce(h, at)
	if kept && errors.Is(err, unix.ENODEV) { // its cgroup was removed: there may be another
		data, err = f.readOnce(h, at)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.name, err)
	}
	return data, nil
}

func (f *fileReader) readOnce(h *openFile, at int) (data []byte, err error) {
	if !h.open {
		if h.fd, err = retryInterrupted(func() (int, error) { return unix.Openat(at, h.name, unix.O_RDONLY|unix.O_CLOEXEC, 0) }); err != nil {
			return nil, err
		}
		h.open = true
	}
	for length := 0; ; {
		n, err := retryInterrupted(func() (int, error) { return unix.Pread(h.fd, f.buffer[length:], int64(length)) })
		switch {
		case err != nil:
			h.close()
			return nil, err
		case n == 0:
			return f.buffer[:length], nil
		}
		if length += n; length == len(f.buffer) {
			f.buffer = append(f.buffer, make([]byte, len(f.buffer))...)
		}
	}
}

// readNumber reads a file that is one number.
func (f *fileReader) readNumber(h *openFile, at int) (uint64, error) {
	data, err := f.read(h, at)
	if err != nil {
		return 0, err
	}
	n, err := cgroupfs.ParseUint(data)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", h.name, err)
	}
	return n, nil
}

// eachDirectory calls do for each directory in one that is open. The name lasts until do returns.
func (f *fileReader) eachDirectory(fd int, do func(name []byte, inode uint64)) error {
	if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err != nil {
		return fmt.Errorf("list directory: %w", err)
	}
	for {
		n, err := retryInterrupted(func() (int, error) { return unix.Getdents(fd, f.buffer) })
		if err != nil {
			return fmt.Errorf("list directory: %w", err)
		}
		if n == 0 {
			return nil
		}
		parseEntries(f.buffer[:n], do)
	}
}

// parseEntries calls do for the directories among the entries that getdents64(2) gave: an inode and an
// offset of eight bytes each, the entry's length of two, the type of one, and the name until a zero.
func parseEntries(entries []byte, do func(name []byte, inode uint64)) {
	const length, kind, text = 16, 18, 19
	for len(entries) > text {
		n := int(binary.NativeEndian.Uint16(entries[length:]))
		if n <= text || n > len(entries) {
			return
		}
		entry := entries[:n]
		entries = entries[n:]
		// A file system that does not tell types says so: opening will.
		if entry[kind] != unix.DT_DIR && entry[kind] != unix.DT_UNKNOWN {
			continue
		}
		name, _, _ := bytes.Cut(entry[text:], nulByte)
		if s := string(name); s != "" && s != "." && s != ".." {
			do(name, binary.NativeEndian.Uint64(entry))
		}
	}
}

var nulByte = []byte{0}

// openDir opens a directory below another; at is unix.AT_FDCWD for a path of its own.
func openDir(at int, name string) (int, error) {
	return retryInterrupted(func() (int, error) { return unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
}

// closeFD closes a directory or a file of which nothing was written.
func closeFD(fd int) { _ = unix.Close(fd) }

// retryInterrupted repeats a system call that a signal interrupted.
func retryInterrupted(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR { //nolint:errorlint // it comes bare
			return n, err
		}
	}
}
