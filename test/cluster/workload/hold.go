package main

import (
	"fmt"
	"os"
	"sync"
	"syscall"
)

// memory is anonymous memory that was written to, page by page, and so is
// resident. It is mapped rather than allocated: it must neither wake the
// garbage collector nor be doubled by it.
type memory struct {
	mu   sync.Mutex
	data []byte
}

// hold makes the memory n bytes large.
func (m *memory) hold(n size) error {
	m.release()
	if n == 0 {
		return nil
	}
	data, err := syscall.Mmap(-1, 0, int(n), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("map %d bytes of memory: %w", n, err)
	}
	for i := 0; i < len(data); i += os.Getpagesize() {
		data[i] = byte(i>>12) | 1 // what is not written need not be there
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data = data
	return nil
}

// size returns how much is held.
func (m *memory) size() size {
	m.mu.Lock()
	defer m.mu.Unlock()
	return size(len(m.data))
}

// release gives it back.
func (m *memory) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.data != nil {
		_ = syscall.Munmap(m.data) // fails only for memory that was never mapped
		m.data = nil
	}
}
