package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// ociLabels is the prefix of the labels that OCI defines.
const ociLabels = "org.opencontainers.image."

// user is the user and group of the program, as numbers: the image has no passwd file, and
// Kubernetes does not know whether a name is root.
const user = "65532:65532"

// image is an image of one layer.
type image struct {
	manifest, config, layer blob
	spec                    spec
}

// build packs the program.
func build(s spec) (*image, error) {
	program, err := readProgram(s.binary)
	if err != nil {
		return nil, err
	}
	content, err := packLayer(program.data, s.path, s.created)
	if err != nil {
		return nil, err
	}
	layer := newBlob(types.OCILayer, compress(content))
	config := newJSONBlob(types.OCIConfigJSON, v1.ConfigFile{
		OS: "linux", Architecture: program.arch, Created: v1.Time{Time: s.created},
		Config:  v1.Config{User: user, Entrypoint: []string{s.path}, Cmd: s.cmd, WorkingDir: "/", Labels: s.labelsWith(program.revision)},
		RootFS:  v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{newBlob("", content).Digest}},
		History: []v1.History{{Created: v1.Time{Time: s.created}, CreatedBy: "weir deploy/image"}},
	})
	manifest := newJSONBlob(types.OCIManifestSchema1, v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: config.Descriptor, Layers: []v1.Descriptor{layer.Descriptor},
	})
	return &image{manifest, config, layer, s}, nil
}

// archive returns the archive of the image.
//
// It is one tar in two formats at once, as `docker save` writes it: an OCI image layout
// (oci-layout, index.json, blobs/), which containerd reads, and Docker's older manifest.json, which
// names the same blobs.
func (i *image) archive() ([]byte, error) {
	s := i.spec
	named := i.manifest.Descriptor
	named.Annotations = map[string]string{"io.containerd.image.name": s.fullName(), ociLabels + "ref.name": s.name.TagStr()}

	return packTar(s.created,
		entry{"blobs/", 0o755, nil},
		entry{"blobs/sha256/", 0o755, nil},
		entry{i.manifest.path(), 0o644, i.manifest.data},
		entry{i.config.path(), 0o644, i.config.data},
		entry{i.layer.path(), 0o644, i.layer.data},
		entry{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		entry{"index.json", 0o644, encode(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{named}})},
		entry{"manifest.json", 0o644, encode(tarball.Manifest{{Config: i.config.path(), RepoTags: []string{s.shortName()}, Layers: []string{i.layer.path()}}})},
	)
}

// labelsWith returns the given labels with the commit of the program's source, if it is known.
func (s spec) labelsWith(revision string) map[string]string {
	if _, given := s.labels[ociLabels+"revision"]; !given && revision != "" {
		s.labels[ociLabels+"revision"] = revision
	}
	return s.labels
}

// packLayer returns a tar with the program at a path, its directories, and a /tmp that everyone may
// write.
func packLayer(program []byte, at string, created time.Time) ([]byte, error) {
	entries := []entry{{at[1:], 0o555, program}}
	for dir := path.Dir(at); dir != "/"; dir = path.Dir(dir) {
		entries = append(entries, entry{dir[1:] + "/", 0o755, nil})
	}
	slices.Reverse(entries) // parents come before children
	return packTar(created, append(entries, entry{"tmp/", 0o1777, nil})...)
}

// entry is a file in a tar, or a directory if its name ends in a slash.
type entry struct {
	name string
	mode int64
	data []byte
}

// packTar returns a tar of entries. All of them belong to root and have the same time.
func packTar(created time.Time, entries ...entry) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		if err := w.WriteHeader(&tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: created}); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.name, err)
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return out.Bytes(), nil
}

// compress returns data as gzip. A write to memory does not fail.
func compress(data []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed) // it fails only for unknown levels
	_, _ = w.Write(data)
	_ = w.Close()
	return out.Bytes()
}

// blob is content that the image names by its digest.
type blob struct {
	v1.Descriptor
	data []byte
}

func newBlob(mediaType types.MediaType, data []byte) blob {
	digest, size, _ := v1.SHA256(bytes.NewReader(data)) // it fails only if the read fails
	return blob{v1.Descriptor{MediaType: mediaType, Digest: digest, Size: size}, data}
}

func newJSONBlob(mediaType types.MediaType, v any) blob { return newBlob(mediaType, encode(v)) }

func (b blob) path() string { return "blobs/" + b.Digest.Algorithm + "/" + b.Digest.Hex }

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain structs of strings and numbers
	}
	return data
}

// fullName is the name by which containerd and the kubelet look for the image. They write the
// default registry without the "index." of the library.
func (s spec) fullName() string { return strings.TrimPrefix(s.name.Name(), "index.") }

// shortName is the user's name of the image, with its tag.
func (s spec) shortName() string {
	return strings.TrimSuffix(s.name.String(), ":"+s.name.TagStr()) + ":" + s.name.TagStr()
}
