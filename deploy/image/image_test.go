package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// program builds a static program for arch once for each test run, and returns its path.
func program(t *testing.T, arch string) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(\"hello\") }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "hello")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build a static program: %v\n%s", err, msg)
	}
	return out
}

// write runs the program with args and an --out, and returns the path of that file.
func write(t *testing.T, getenv func(string) string, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image.tar")
	var stderr bytes.Buffer
	if err := run(t.Context(), append(args, "--out", out), getenv, io.Discard, &stderr); err != nil {
		t.Fatalf("run %q: %v\n%s", args, err, &stderr)
	}
	return out
}

func noenv(string) string { return "" }

func TestDockerAndOCIReadTheSameImage(t *testing.T) {
	hello := program(t, "amd64")
	var stdout bytes.Buffer
	out := filepath.Join(t.TempDir(), "image.tar")
	err := run(t.Context(), []string{
		"--name", "pause:3",
		"--binary", hello + ":/usr/bin/weir", "--cmd", "server", "--cmd", "--help",
		"--label", "title=weir", "--label", "example.com/a=b", "--out", out,
	}, noenv, &stdout, io.Discard)
	if err != nil {
		t.Fatal(err)
	}

	docker, err := tarball.ImageFromPath(out, tagOf(t, "pause:3"))
	if err != nil {
		t.Fatalf("read it as docker does: %v", err)
	}
	if err := validate.Image(docker); err != nil {
		t.Errorf("the image docker reads: %v", err)
	}
	config, err := docker.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(config.Config)
	want := `{"Cmd":["server","--help"],"Entrypoint":["/usr/bin/weir"],` +
		`"Labels":{"example.com/a":"b","org.opencontainers.image.title":"weir"},"User":"65532:65532","WorkingDir":"/"}`
	if string(got) != want {
		t.Errorf("configuration:\n got %s\nwant %s", got, want)
	}
	if config.OS != "linux" || config.Architecture != "amd64" || config.Created.Unix() != 0 {
		t.Errorf("platform %s/%s created %v, want linux/amd64 at 1970", config.OS, config.Architecture, config.Created)
	}

	dir := untar(t, out)
	path, err := layout.FromPath(dir)
	if err != nil {
		t.Fatalf("read it as an OCI layout: %v", err)
	}
	index, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Errorf("the OCI layout: %v", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range manifest.Manifests {
		names = append(names, m.Annotations["io.containerd.image.name"]+" "+m.Annotations["org.opencontainers.image.ref.name"])
	}
	if got, want := strings.Join(names, ", "), strings.TrimPrefix(name.DefaultRegistry, "index.")+"/library/pause:3 3"; got != want {
		t.Errorf("names in the layout:\n got %s\nwant %s", got, want)
	}
	oci, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := id(t, docker), id(t, oci); a != b {
		t.Errorf("docker reads the image %s, OCI %s", a, b)
	}
	digest := manifest.Manifests[0].Digest.String()
	if got, want := stdout.String(), "pause:3@"+digest+"\n"; got != want {
		t.Errorf("printed:\n got %s\nwant %s", got, want)
	}
}

func TestLayerHoldsTheProgramAndAWritableTmp(t *testing.T) {
	hello := program(t, "amd64")
	out := write(t, noenv, "--name", "a:1", "--binary", hello+":/opt/a/run")
	img, err := tarball.ImageFromPath(out, nil)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers (%v), want 1", len(layers), err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []string
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got = append(got, h.FileInfo().Mode().String()+" "+h.Name)
		if h.ModTime.Unix() != 0 || h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s is of %d:%d at %v, want root's at 1970", h.Name, h.Uid, h.Gid, h.ModTime)
		}
	}
	want := "drwxr-xr-x opt/|drwxr-xr-x opt/a/|-r-xr-xr-x opt/a/run|dtrwxrwxrwx tmp/"
	if got := strings.Join(got, "|"); got != want {
		t.Errorf("layer:\n got %s\nwant %s", got, want)
	}
}

func TestSameInputSameBytes(t *testing.T) {
	hello := program(t, "amd64")
	args := []string{"--name", "a:1", "--binary", hello + ":/a", "--label", "x=1", "--label", "y=2", "--label", "z=3"}
	first := readFile(t, write(t, noenv, args...))
	if err := os.Chtimes(hello, at(t, "1700000000"), at(t, "1700000000")); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, readFile(t, write(t, noenv, args...))) {
		t.Error("two runs wrote different bytes")
	}
	dated := func(string) string { return "1700000000" }
	other := write(t, dated, args...)
	if bytes.Equal(first, readFile(t, other)) {
		t.Error("SOURCE_DATE_EPOCH changed nothing")
	}
	img, err := tarball.ImageFromPath(other, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Created.Unix(); got != 1700000000 {
		t.Errorf("created at %d, want SOURCE_DATE_EPOCH", got)
	}
}

func TestArchitectureIsTheBinarys(t *testing.T) {
	img, err := tarball.ImageFromPath(write(t, noenv, "--name", "a:1", "--binary", program(t, "arm64")), nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" {
		t.Errorf("architecture %s, want arm64", config.Architecture)
	}
}

func TestMistakes(t *testing.T) {
	hello := program(t, "amd64")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.tar")
	f := func(want string, args ...string) {
		t.Helper()
		err := run(t.Context(), args, noenv, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got error %v\nwant one with %q", args, err, want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%q: wrote a file all the same", args)
		}
		if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
			t.Errorf("%q: left %q behind", args, left)
		}
	}
	f("give --name NAME:TAG", "--binary", hello, "--out", out)
	f("give --binary FILE", "--name", "a:1", "--out", out)
	f("give --out FILE.tar", "--name", "a:1", "--binary", hello)
	f(`unexpected argument "x"`, "--name", "a:1", "--binary", hello, "--out", out, "x")
	f("repository can only contain", "--name", "A B", "--binary", hello, "--out", out)
	f("want one from the root", "--name", "a:1", "--binary", hello+":bin/a", "--out", out)
	f("want one from the root", "--name", "a:1", "--binary", hello+":/../a", "--out", out)
	f("no such file", "--name", "a:1", "--binary", hello+"x", "--out", out)
	f("build it with GOOS=linux", "--name", "a:1", "--binary", text, "--out", out)
	f("want KEY=VALUE", "--name", "a:1", "--binary", hello, "--label", "x", "--out", out)
	f("not in /tmp", "--name", "a:1", "--binary", hello+":/tmp", "--out", out)
	if err := run(t.Context(), []string{"--help"}, noenv, io.Discard, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: %v, want flag.ErrHelp", err)
	}
}

// TestDynamicBinaryIsRefused uses a system program, because programs of a distribution are dynamic.
func TestDynamicBinaryIsRefused(t *testing.T) {
	data, err := os.ReadFile("/bin/ls")
	if err != nil {
		t.Skipf("no program to try: %v", err)
	}
	_, err = inspect(data)
	if err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		if err == nil && !bytes.Contains(data, []byte("ld-linux")) {
			t.Skip("this system's ls is static")
		}
		t.Errorf("got %v, want an error that names CGO_ENABLED=0", err)
	}
}

func TestSourceDateEpochMistake(t *testing.T) {
	for _, v := range []string{"yesterday", "-1", "1.5"} {
		if _, err := epoch(v); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
			t.Errorf("epoch(%q): %v, want an error that names the variable", v, err)
		}
	}
}

// FuzzInspect checks that unknown bytes get either an error or an architecture, never both.
func FuzzInspect(f *testing.F) {
	f.Add([]byte("\x7fELF"))
	if data, err := os.ReadFile("/bin/true"); err == nil {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		arch, err := inspect(data)
		if (arch == "") != (err != nil) {
			t.Errorf("inspect: architecture %q with error %v", arch, err)
		}
	})
}
