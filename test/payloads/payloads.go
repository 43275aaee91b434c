// Package payloads reads what was captured from a real kubelet, for tests.
package payloads

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"testing"
)

// Read returns what a file holds, or, unpacked, the one of that name with .gz behind it.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	b, there := Find(t, path)
	if !there {
		t.Fatalf("neither %s nor %s.gz is there", path, path)
	}
	return b
}

// Find is Read for a file that need not be there.
func Find(t testing.TB, path string) (b []byte, there bool) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		return b, true
	}
	packed, err := os.ReadFile(path + ".gz")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatalf("unpack %s.gz: %v", path, err)
	}
	if b, err = io.ReadAll(z); err != nil {
		t.Fatalf("unpack %s.gz: %v", path, err)
	}
	return b, true
}
