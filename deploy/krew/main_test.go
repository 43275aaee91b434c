package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/weir-metrics/weir/test/cmptest"
)

// TestWrite packs two programs, and reads the archives as the manifest describes them.
func TestWrite(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	dir := t.TempDir()
	for _, name := range []string{"kubectl-weir-linux-arm64", "kubectl-weir-windows-amd64.exe", "kubectl-weir-linux-arm64.cdx.json", "weir-linux-amd64"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("program "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const url, license = "https://releases.example/v1.2.3", "../../LICENSE"
	if err := write("v1.2.3", url, license, dir); err != nil {
		t.Fatal(err)
	}
	first := read(t, filepath.Join(dir, "weir.yaml"))
	var p plugin
	if err := yaml.UnmarshalStrict(first, &p); err != nil {
		t.Fatal(err)
	}
	if p.Kind != "Plugin" || p.Metadata["name"] != "weir" || p.Spec.Version != "v1.2.3" || len(p.Spec.Platforms) != 2 {
		t.Fatalf("the manifest is\n%s", first)
	}
	for _, one := range p.Spec.Platforms {
		file, ok := strings.CutPrefix(one.URI, url+"/")
		if !ok {
			t.Fatalf("the archive is at %s, want it below %s", one.URI, url)
		}
		packed := read(t, filepath.Join(dir, file))
		if sum := sha256.Sum256(packed); hex.EncodeToString(sum[:]) != one.SHA256 {
			t.Errorf("%s has another checksum than %s", file, one.SHA256)
		}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		program := "program kubectl-weir-" + one.Selector.MatchLabels["os"] + "-" + one.Selector.MatchLabels["arch"] + path.Ext(one.Bin)
		want := []packedFile{{one.Bin, 0o755, []byte(program)}, {"LICENSE", 0o644, read(t, license)}}
		r := tar.NewReader(z)
		var got []packedFile
		for h, err := r.Next(); err != io.EOF; h, err = r.Next() {
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if h.ModTime.Unix() != 1700000000 {
				t.Errorf("%s in %s is of %v", h.Name, file, h.ModTime)
			}
			got = append(got, packedFile{h.Name, h.Mode, content})
		}
		cmptest.Equal(t, file, want, got, cmp.AllowUnexported(packedFile{}))
	}
	if err := write("v1.2.3", url, license, dir); err != nil {
		t.Fatal(err)
	}
	if again := read(t, filepath.Join(dir, "weir.yaml")); !bytes.Equal(first, again) {
		t.Errorf("the second manifest differs:\n%s", again)
	}
	if err := write("v1.2.3", url, license, t.TempDir()); err == nil || !strings.Contains(err.Error(), "no kubectl-weir") {
		t.Errorf("in an empty folder: got %v, want an error that says so", err)
	}
}

func TestSemantic(t *testing.T) {
	for version, want := range map[string]string{"v1.2.3": "v1.2.3", "3c740f4-dirty": "v0.0.0-3c740f4-dirty"} {
		if got := semantic(version); got != want {
			t.Errorf("semantic(%q): got %q, want %q", version, got, want)
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
