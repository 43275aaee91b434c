// Command image writes an OCI image archive from a static program, without a registry, a daemon or
// a base image, or pushes the image to a registry. `docker load`, `podman load` and `ctr -n k8s.io images import` can read the
// archive.
//
// The image contains only the program and an empty /tmp: no shell, no passwd, no CA certificates. A
// program that reads the cluster's own CA from its service account needs no CA certificates. One
// that must trust public CAs needs a mount and SSL_CERT_FILE.
//
// The same program and flags always give the same bytes, and so the same digest: every time in the
// archive is SOURCE_DATE_EPOCH (seconds since 1970), or 0 if that is not set.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

const usage = `Usage: image --name NAME:TAG --binary FILE[:/PATH] --out FILE.tar [flags]
       image --name NAME:TAG --binary FILE[:/PATH] --push [flags]

Writes an image archive of a static program, or pushes the image to the registry of
its name, with the credentials of docker login or podman login. Example, from the
project's root:

  go run -C deploy/image . --name weir.invalid/weir:dev \
      --binary "$PWD/bin/weir" --out "$PWD/bin/weir-image.tar"

(go run -C changes the directory, so give whole paths.)

`

// run is main with its environment as arguments.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	spec, to, err := parse(args, getenv, stderr)
	if err != nil {
		return err
	}
	image, err := build(spec)
	if err != nil {
		return err
	}
	if to.registry {
		fmt.Fprintf(stderr, "pushing %s, %d MB\n", spec.shortName(), (image.layer.Size+999_999)/1_000_000)
		if err := image.push(ctx); err != nil {
			return fmt.Errorf("push %s: %w", spec.shortName(), err)
		}
	}
	if to.file != "" {
		archive, err := image.archive()
		if err != nil {
			return err
		}
		if err := writeFile(to.file, archive); err != nil {
			return fmt.Errorf("write image: %w", err)
		}
	}
	fmt.Fprintf(stdout, "%s@%s\n", spec.shortName(), image.manifest.Digest)
	return nil
}

// target is where an image goes.
type target struct {
	file     string // empty: no archive is written
	registry bool   // that of the name
}

// writeFile writes to another file first, so that out is either complete or unchanged.
func writeFile(out string, data []byte) error {
	part := out + ".part"
	err := os.WriteFile(part, data, 0o644)
	if err == nil {
		err = os.Rename(part, out)
	}
	if err != nil {
		_ = os.Remove(part) // it may not exist
	}
	return err
}

// spec describes the image.
type spec struct {
	name    name.Tag
	binary  string // on this machine
	path    string // its path in the image; the image starts it
	cmd     []string
	labels  map[string]string
	created time.Time
}

// parse reads from the flags what to build and where to put it.
func parse(args []string, getenv func(string) string, stderr io.Writer) (s spec, to target, err error) {
	s.labels = map[string]string{}
	f := flag.NewFlagSet("image", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprint(stderr, usage)
		f.PrintDefaults()
	}
	f.Func("name", "`NAME:TAG` of the image", func(v string) (err error) {
		s.name, err = name.NewTag(v)
		return err
	})
	f.Func("binary", "static program to put in and to start, `FILE[:/PATH]`, by default at /NAME", func(v string) (err error) {
		s.binary, s.path, err = parseBinary(v)
		return err
	})
	f.Func("cmd", "`WORD` of the default arguments; repeatable", func(v string) error {
		s.cmd = append(s.cmd, v)
		return nil
	})
	f.Func("label", "`KEY=VALUE`; a key without a dot is one of OCI's, as title for org.opencontainers.image.title; repeatable", func(v string) error {
		key, value, ok := strings.Cut(v, "=")
		if !ok || key == "" {
			return errors.New("want KEY=VALUE")
		}
		if !strings.Contains(key, ".") {
			key = ociLabels + key
		}
		s.labels[key] = value
		return nil
	})
	f.StringVar(&to.file, "out", "", "`FILE` to write")
	f.BoolVar(&to.registry, "push", false, "push the image to the registry of its name")
	if err := f.Parse(args); err != nil {
		return s, to, err
	}
	switch {
	case f.NArg() > 0:
		return s, to, fmt.Errorf("unexpected argument %q: everything is a flag, see --help", f.Arg(0))
	case s.name == (name.Tag{}):
		return s, to, errors.New("no name: give --name NAME:TAG")
	case s.binary == "":
		return s, to, errors.New("nothing to put in: give --binary FILE")
	case to == target{}:
		return s, to, errors.New("nowhere to put it: give --out FILE.tar, or --push")
	case to.registry && strings.HasSuffix(s.name.RegistryStr(), ".invalid"):
		return s, to, fmt.Errorf("%s cannot be a registry: name the image with yours, as make push IMAGE=REGISTRY/weir:TAG", s.name.RegistryStr())
	}
	s.created, err = epoch(getenv("SOURCE_DATE_EPOCH"))
	return s, to, err
}

// parseBinary reads FILE[:/PATH].
func parseBinary(v string) (file, inside string, err error) {
	file, inside, ok := strings.Cut(v, ":")
	if !ok {
		inside = "/" + filepath.Base(file)
	}
	if file == "" {
		return "", "", errors.New("want FILE or FILE:/PATH")
	}
	if !path.IsAbs(inside) || path.Clean(inside) != inside || inside == "/" || strings.HasPrefix(inside+"/", "/tmp/") {
		return "", "", fmt.Errorf("path in the image is %q: want one from the root and not in /tmp, as /weir", inside)
	}
	return file, inside, nil
}

// epoch parses SOURCE_DATE_EPOCH. An empty value is 1970.
func epoch(v string) (time.Time, error) {
	if v == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(v, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q: want seconds since 1970, as `git log -1 --format=%%ct` prints", v)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
