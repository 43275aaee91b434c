package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// ociLabels begins the names of the labels that OCI defines.
const ociLabels = "org.opencontainers.image."

// spec is what the image shall be.
type spec struct {
	names      []imageName
	binaries   []binary
	entrypoint string
	cmd        []string
	user       string
	labels     map[string]string
	arch       string // GOARCH; empty: that of the binaries
	created    time.Time
}

// build makes the image of s: one layer, one configuration.
func build(s spec) (v1.Image, error) {
	contents := make([]content, 0, len(s.binaries))
	for _, b := range s.binaries {
		c, err := b.read()
		if err != nil {
			return nil, err
		}
		contents = append(contents, c)
	}
	arch, err := sameArch(contents, s.binaries, s.arch)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(contents, func(c content) bool { return c.path == s.entrypoint }) {
		return nil, fmt.Errorf("entrypoint %s is no binary of the image: put it there with --binary FILE:%s", s.entrypoint, s.entrypoint)
	}
	layer, err := layerOf(contents, s.created)
	if err != nil {
		return nil, err
	}
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	img = mutate.ConfigMediaType(img, types.OCIConfigJSON)
	img, err = mutate.Append(img, mutate.Addendum{
		Layer:     layer,
		MediaType: types.OCILayer,
		History:   v1.History{Created: v1.Time{Time: s.created}, CreatedBy: "weir deploy/image"},
	})
	if err != nil {
		return nil, fmt.Errorf("add layer: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("make configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Created = v1.Time{Time: s.created}
	config.Config = v1.Config{
		User:       s.user,
		Entrypoint: []string{s.entrypoint},
		Cmd:        s.cmd,
		WorkingDir: "/",
		Labels:     s.labelsOf(contents),
	}
	img, err = mutate.ConfigFile(img, config)
	if err != nil {
		return nil, fmt.Errorf("make configuration: %w", err)
	}
	return img, nil
}

// labelsOf adds to the labels given what the binaries say of themselves.
func (s spec) labelsOf(contents []content) map[string]string {
	labels := map[string]string{}
	for _, c := range contents {
		if c.path == s.entrypoint && c.revision != "" {
			labels[ociLabels+"revision"] = c.revision
		}
	}
	for key, value := range s.labels {
		labels[key] = value
	}
	return labels
}

// layerOf packs the binaries and a /tmp into a layer: parents before
// children, everything root's and nobody's to write, except /tmp.
func layerOf(contents []content, created time.Time) (v1.Layer, error) {
	entries := map[string]*tar.Header{
		"tmp/": {Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777},
	}
	data := map[string][]byte{}
	for _, c := range contents {
		for dir := path.Dir(c.path); dir != "/"; dir = path.Dir(dir) {
			if name := dir[1:] + "/"; entries[name] == nil {
				entries[name] = &tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}
			}
		}
		name := c.path[1:]
		if entries[name] != nil || entries[name+"/"] != nil {
			return nil, fmt.Errorf("two things want to be %s in the image: give one another path, --binary FILE:/PATH", c.path)
		}
		entries[name] = &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o555, Size: int64(len(c.data))}
		data[name] = c.data
	}
	for name := range data {
		if entries[name+"/"] != nil {
			return nil, fmt.Errorf("/%s is a binary and a directory in the image: give one another path", name)
		}
	}
	ordered := make([]*tar.Header, 0, len(entries))
	for _, h := range entries {
		h.ModTime = created
		ordered = append(ordered, h)
	}
	slices.SortFunc(ordered, func(a, b *tar.Header) int { return cmp.Compare(a.Name, b.Name) })

	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, h := range ordered {
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("pack %s: %w", h.Name, err)
		}
		if _, err := w.Write(data[h.Name]); err != nil {
			return nil, fmt.Errorf("pack %s: %w", h.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack layer: %w", err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithCompressedCaching, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("compress layer: %w", err)
	}
	return layer, nil
}
