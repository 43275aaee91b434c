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
	changing sync.Mutex // held by whoever changes it
	mu       sync.Mutex
	data     [][]byte
}

// hold makes the memory n bytes large. What is held already stays if n is more,
// so that use rises and never dips on its way.
func (m *memory) hold(n size) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	have := m.size()
	if n < have {
		m.drop()
		have = 0
	}
	if n == have {
		return nil
	}
	data, err := syscall.Mmap(-1, 0, int(n-have), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("hold %d bytes of memory: %w", n, err)
	}
	for i := 0; i < len(data); i += os.Getpagesize() {
		data[i] = byte(i>>12) | 1 // what is not written need not be there
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data = append(m.data, data)
	return nil
}

// size returns how much is held.
func (m *memory) size() (n size) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.data {
		n += size(len(d))
	}
	return n
}

// release gives it back.
func (m *memory) release() {
	m.changing.Lock()
	defer m.changing.Unlock()
	m.drop()
}

func (m *memory) drop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.data {
		_ = syscall.Munmap(d) // fails only for memory that was never mapped
	}
	m.data = nil
}
