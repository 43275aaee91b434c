package main

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// memory is anonymous memory. Every page is written to, so that it is resident.
// It is mapped and not allocated on the heap, so that it does not wake the
// garbage collector and is not doubled by it.
type memory struct {
	changing sync.Mutex // locked while the size changes
	mu       sync.Mutex
	data     [][]byte
}

// hold makes the memory n bytes large. If n is larger than the present size,
// the existing memory remains, so that usage rises without a dip. perSecond is
// how many bytes are added in a second at most; 0 means any number.
func (m *memory) hold(n, perSecond size) error {
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
	began := time.Now()
	for i := 0; i < len(data); i += os.Getpagesize() {
		data[i] = byte(i>>12) | 1 // a page that is not written to may not be resident
		if perSecond > 0 && i%(256<<10) == 0 {
			time.Sleep(time.Until(began.Add(time.Duration(float64(i) / float64(perSecond) * float64(time.Second)))))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data = append(m.data, data)
	return nil
}

// size returns the size of the memory.
func (m *memory) size() (n size) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.data {
		n += size(len(d))
	}
	return n
}

// release frees the memory.
func (m *memory) release() {
	m.changing.Lock()
	defer m.changing.Unlock()
	m.drop()
}

func (m *memory) drop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.data {
		_ = syscall.Munmap(d) // it fails only for memory that was never mapped
	}
	m.data = nil
}
