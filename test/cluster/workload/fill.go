package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// filler fills folders: a volume, or a folder in the container's own layer. It
// allocates bytes instead of writing them. The disk counts them in the same
// way, and they cost no time and no page cache.
type filler struct{ mu sync.Mutex }

// fill makes the folder contain one file of this many bytes and this many empty
// files.
func (f *filler) fill(dir string, bytes size, files int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if dir == "" {
		return errors.New("which folder?")
	}
	many := filepath.Join(dir, "files")
	if err := os.MkdirAll(many, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := allocate(filepath.Join(dir, "bytes"), bytes); err != nil {
		return err
	}
	entries, err := os.ReadDir(many)
	if err != nil {
		return fmt.Errorf("count files: %w", err)
	}
	for i := len(entries); i < files; i++ {
		file, err := os.Create(filepath.Join(many, strconv.Itoa(i)))
		if err != nil {
			return fmt.Errorf("make file %d: %w", i, err)
		}
		file.Close() // nothing was written
	}
	for i := files; i < len(entries); i++ {
		if err := os.Remove(filepath.Join(many, strconv.Itoa(i))); err != nil {
			return fmt.Errorf("remove file %d: %w", i, err)
		}
	}
	return nil
}

func allocate(path string, bytes size) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("make file: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := file.Truncate(int64(bytes)); err != nil {
		return fmt.Errorf("cut %s: %w", path, err)
	}
	if bytes == 0 {
		return nil // fallocate rejects a length of 0
	}
	if err := syscall.Fallocate(int(file.Fd()), 0, 0, int64(bytes)); err != nil {
		return fmt.Errorf("allocate %d bytes in %s: %w", bytes, path, err)
	}
	return nil
}

func (c command) fill() func(context.Context) error {
	var bytes size
	dir := c.flags.String("dir", "", "folder to fill; it is made if need be")
	files := c.flags.Int("files", 0, "how many files to make")
	c.flags.Var(&bytes, "bytes", "how much to allocate")
	return func(ctx context.Context) error {
		if err := new(filler).fill(*dir, bytes, *files); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
}
