// Command image writes an OCI image archive from static binaries: no
// registry, no daemon and no base image are asked. `docker load`,
// `podman load` and `ctr -n k8s.io images import` all take what it writes.
//
// The image holds the binaries and an empty /tmp, and nothing else: no shell,
// no passwd, no CA certificates. A program that reads the cluster's own CA
// from its service account needs none; one that must trust public CAs is
// given them by a mount and SSL_CERT_FILE.
//
// The same binaries and flags give the same bytes, and so the same digest,
// whoever runs it and when: every time in the archive is SOURCE_DATE_EPOCH
// (seconds since 1970), or 0 where that is not set.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Getenv, os.Stdout, os.Stderr); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

const usage = `Usage: image --name NAME:TAG --binary FILE[:/PATH] --out FILE.tar [flags]

Writes an image archive of static binaries. Example, from the project's root:

  go run -C deploy/image . --name weir-metrics/weir:dev \
      --binary "$PWD/bin/weir" --out "$PWD/bin/weir-image.tar"

(go run -C changes the directory, so give whole paths.)

`

// run is main with its surroundings passed in.
func run(args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	spec, out, err := parse(args, getenv, stderr)
	if err != nil {
		return err
	}
	img, err := build(spec)
	if err != nil {
		return err
	}
	if err := writeFile(out, img, spec); err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return fmt.Errorf("digest image: %w", err)
	}
	for _, n := range spec.names {
		fmt.Fprintf(stdout, "%s@%s\n", n.short(), digest)
	}
	return nil
}

// parse reads the flags into what to build and the file to write.
func parse(args []string, getenv func(string) string, stderr io.Writer) (spec, string, error) {
	s := spec{labels: map[string]string{}}
	var out string
	f := flag.NewFlagSet("image", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprint(stderr, usage)
		f.PrintDefaults()
	}
	f.Func("name", "`NAME:TAG` of the image; repeatable", func(v string) error {
		n, err := parseName(v)
		s.names = append(s.names, n)
		return err
	})
	f.Func("binary", "static binary to put in, `FILE[:/PATH]`, by default at /NAME; repeatable", func(v string) error {
		b, err := parseBinary(v)
		s.binaries = append(s.binaries, b)
		return err
	})
	f.StringVar(&s.entrypoint, "entrypoint", "", "`PATH` in the image of the program to start (default the first binary)")
	f.Func("cmd", "`WORD` of the default arguments; repeatable", func(v string) error {
		s.cmd = append(s.cmd, v)
		return nil
	})
	f.StringVar(&s.user, "user", "65532:65532", "`UID:GID` the program runs as; numbers, because the image has no passwd file")
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
	f.StringVar(&s.arch, "arch", "", "`ARCH` the binaries must be for, as amd64 (default what they are for)")
	f.StringVar(&out, "out", "", "`FILE` to write")
	if err := f.Parse(args); err != nil {
		return s, "", err
	}
	switch {
	case f.NArg() > 0:
		return s, "", fmt.Errorf("unexpected argument %q: everything is a flag, see --help", f.Arg(0))
	case len(s.names) == 0:
		return s, "", errors.New("no name: give --name NAME:TAG")
	case len(s.binaries) == 0:
		return s, "", errors.New("nothing to put in: give --binary FILE")
	case out == "":
		return s, "", errors.New("nowhere to write: give --out FILE.tar")
	}
	if err := checkUser(s.user); err != nil {
		return s, "", err
	}
	if s.entrypoint == "" {
		s.entrypoint = s.binaries[0].path
	}
	created, err := epoch(getenv("SOURCE_DATE_EPOCH"))
	s.created = created
	return s, out, err
}

// parseBinary reads FILE[:/PATH].
func parseBinary(v string) (binary, error) {
	b := binary{file: v, path: "/" + filepath.Base(v)}
	if file, inside, ok := strings.Cut(v, ":"); ok {
		b = binary{file: file, path: inside}
	}
	if b.file == "" {
		return b, errors.New("want FILE or FILE:/PATH")
	}
	if !path.IsAbs(b.path) || path.Clean(b.path) != b.path || b.path == "/" {
		return b, fmt.Errorf("path in the image is %q: want one from the root, as /weir", b.path)
	}
	return b, nil
}

// checkUser refuses names: nothing in the image could translate them, and
// Kubernetes cannot tell whether a name is root.
func checkUser(user string) error {
	uid, gid, both := strings.Cut(user, ":")
	_, uidErr := strconv.ParseUint(uid, 10, 31)
	_, gidErr := strconv.ParseUint(gid, 10, 31)
	if uidErr != nil || both && gidErr != nil {
		return fmt.Errorf("user %q is not a number: give --user UID:GID, as 65532:65532", user)
	}
	return nil
}

// epoch reads SOURCE_DATE_EPOCH; nothing is 1970.
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
