// Package vectors reads conformance vectors for tests: decisions of Kubernetes'
// own code, one JSON object on each line.
package vectors

import (
	"bufio"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Folder is the environment variable for a folder of vectors to be used instead
// of testdata. Each set has its own folder below it.
const Folder = "WEIR_CONFORMANCE_DIR"

// Each calls f for every line of a set's files, *.jsonl and *.jsonl.gz, in the
// order of their names. The test fails if a set has no files or f returns an
// error. The line is valid only until f returns.
func Each(t testing.TB, set string, f func(line []byte) error) {
	t.Helper()
	root := "testdata"
	if other := os.Getenv(Folder); other != "" {
		root = other
	}
	dir := filepath.Join(root, set)
	var files []string
	for _, pattern := range []string{"*.jsonl", "*.jsonl.gz"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Fatalf("no *.jsonl or *.jsonl.gz in %s: point %s at the folder above %s, or unset it", dir, Folder, set)
	}
	for _, name := range files {
		if err := lines(name, f); err != nil {
			t.Fatalf("read %s: %v", name, err)
		}
	}
}

// longest is larger than every line of every set.
const longest = 16 << 20

func lines(name string, f func([]byte) error) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	var r io.Reader = file
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(file); err != nil {
			return err
		}
	}
	s := bufio.NewScanner(r)
	s.Buffer(nil, longest)
	for s.Scan() {
		if err := f(s.Bytes()); err != nil {
			return err
		}
	}
	return s.Err()
}
