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

// fileReader reads small files and lists directories with one buffer. It uses system calls, because
// an os.File would use the poller, and would allocate memory for each of the forty files of a
// cgroup.
type fileReader struct{ buffer []byte }

// initialBuffer is larger than any file that is read here, except long lists of processes.
const initialBuffer = 32 << 10

// openFile is a file that stays open after it was read, because an open costs several times as much
// as a read.
type openFile struct {
	name string
	fd   int
	open bool
	// list is true for a list of processes, which the kernel writes line by line. One read may return a
	// part of it. The other files are one record, which one read returns whole if the buffer has room.
	// Without a second read, which would find the end, a Read at the depth Memory takes a tenth less.
	list bool
}

// close closes the file. The next read opens it again.
func (f *openFile) close() {
	if f.open {
		closeFD(f.fd)
		f.open = false
	}
}

// read returns the content of a file. It is valid until the next read. The file's name may be
// relative to the directory at.
func (f *fileReader) read(h *openFile, at int) ([]byte, error) {
	kept := h.open
	data, err := f.readOnce(h, at)
	if kept && errors.Is(err, unix.ENODEV) { // its cgroup was removed, and may have been created again
		data, err = f.readOnce(h, at)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.name, err)
	}
	return data, nil
}

func (f *fileReader) readOnce(h *openFile, at int) (data []byte, err error) {
	if !h.open {
		if h.fd, err = cgroupfs.RetryInterrupted(func() (int, error) { return unix.Openat(at, h.name, unix.O_RDONLY|unix.O_CLOEXEC, 0) }); err != nil {
			return nil, err
		}
		h.open = true
	}
	for length := 0; ; {
		n, err := cgroupfs.RetryInterrupted(func() (int, error) { return unix.Pread(h.fd, f.buffer[length:], int64(length)) })
		switch {
		case err != nil:
			h.close()
			return nil, err
		case n == 0:
			return f.buffer[:length], nil
		}
		if length += n; length == len(f.buffer) {
			f.buffer = append(f.buffer, make([]byte, len(f.buffer))...)
		} else if !h.list {
			return f.buffer[:length], nil
		}
	}
}

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

// eachDirectory calls do for each directory in the open directory fd. name is valid until do
// returns.
func (f *fileReader) eachDirectory(fd int, do func(name []byte, inode uint64)) error {
	if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err != nil {
		return fmt.Errorf("list directory: %w", err)
	}
	for {
		n, err := cgroupfs.RetryInterrupted(func() (int, error) { return unix.Getdents(fd, f.buffer) })
		if err != nil {
			return fmt.Errorf("list directory: %w", err)
		}
		if n == 0 {
			return nil
		}
		parseEntries(f.buffer[:n], do)
	}
}

// parseEntries calls do for the directories among the entries from getdents64(2). An entry has
// the inode and an offset (8 bytes each), its length (2), its type (1), and the name with a
// zero byte at its end.
func parseEntries(entries []byte, do func(name []byte, inode uint64)) {
	const length, kind, text = 16, 18, 19
	for len(entries) > text {
		n := int(binary.NativeEndian.Uint16(entries[length:]))
		if n <= text || n > len(entries) {
			return
		}
		entry := entries[:n]
		entries = entries[n:]
		// Some file systems do not know types. For these the attempt to open a file as a directory fails.
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

// openDir opens a directory relative to the directory at. For an absolute path, at is
// unix.AT_FDCWD.
func openDir(at int, name string) (int, error) {
	return cgroupfs.RetryInterrupted(func() (int, error) { return unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
}

// closeFD closes a descriptor. The error does not matter, because the file was only read.
func closeFD(fd int) { _ = unix.Close(fd) }
