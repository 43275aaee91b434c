// Package capture reads files that were captured from a real kubelet, for
// tests. A scenario is one archive, testdata/SCENARIO.tar.zst. A name
// in this package is SCENARIO/FILE, such as "01-steady/00/resource.prom".
package capture

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
)

const extension = ".tar.zst"

// Load returns the content of the file with that name. The error is
// fs.ErrNotExist if there is none.
func Load(name string) ([]byte, error) {
	scenario, file, _ := strings.Cut(path.Clean(name), "/")
	files, err := open(scenario)
	if err != nil {
		return nil, fmt.Errorf("unpack capture %s: %w", scenario, err)
	}
	return fs.ReadFile(files, file)
}

// Read is like Load, but the test fails if there is no such file.
func Read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Find is like Read, for a file that may not exist.
func Find(t testing.TB, name string) (b []byte, found bool) {
	t.Helper()
	b, err := Load(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return b, true
}

// Glob returns the sorted names of the files and folders that match a pattern
// of path.Match, such as "*/*/pods.json".
func Glob(t testing.TB, pattern string) (names []string) {
	t.Helper()
	folder, err := root()
	if err != nil {
		t.Fatal(err)
	}
	scenario, file, _ := strings.Cut(pattern, "/")
	archives, err := filepath.Glob(filepath.Join(folder, scenario+extension))
	if err != nil {
		t.Fatal(err)
	}
	for _, archive := range archives {
		name := strings.TrimSuffix(filepath.Base(archive), extension)
		files, err := open(name)
		if err != nil {
			t.Fatalf("unpack capture %s: %v", name, err)
		}
		matches, err := fs.Glob(files, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range matches {
			names = append(names, path.Join(name, match))
		}
	}
	return names
}

// opened has the scenarios that were unpacked, by name.
var opened sync.Map

func open(scenario string) (fs.FS, error) {
	once, _ := opened.LoadOrStore(scenario, sync.OnceValues(func() (fstest.MapFS, error) {
		folder, err := root()
		if err != nil {
			return nil, err
		}
		return unpack(filepath.Join(folder, scenario+extension))
	}))
	return once.(func() (fstest.MapFS, error))()
}

func unpack(archive string) (fstest.MapFS, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	files := fstest.MapFS{}
	for r := tar.NewReader(z); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		body, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		files[path.Clean(header.Name)] = &fstest.MapFile{Data: body, Mode: 0o444}
	}
}

// root returns the folder of the archives. It works in the folder of any
// package.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		captures := filepath.Join(dir, "test", "capture", "testdata")
		if _, err := os.Stat(captures); err == nil {
			return captures, nil
		}
	}
	return "", errors.New("no folder test/capture/testdata above this one: run it in weir's tree")
}
