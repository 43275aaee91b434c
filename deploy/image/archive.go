package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// writeFile writes the archive beside out first, so that out is whole or as
// it was.
func writeFile(out string, img v1.Image, s spec) (err error) {
	f, err := os.CreateTemp(filepath.Dir(out), filepath.Base(out)+".*")
	if err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = writeArchive(f, img, s)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), out)
	}
	if err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	return nil
}

// writeArchive writes one tar that is two formats at once, as `docker save`
// does: an OCI image layout (oci-layout, index.json, blobs/), which containerd
// reads, and Docker's older manifest.json, which names the same blobs.
func writeArchive(out io.Writer, img v1.Image, s spec) error {
	manifest, err := img.RawManifest()
	if err != nil {
		return fmt.Errorf("make manifest: %w", err)
	}
	digest, err := img.Digest()
	if err != nil {
		return fmt.Errorf("digest manifest: %w", err)
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return fmt.Errorf("make configuration: %w", err)
	}
	configDigest, err := img.ConfigName()
	if err != nil {
		return fmt.Errorf("digest configuration: %w", err)
	}
	layers, err := img.Layers()
	if err != nil {
		return fmt.Errorf("list layers: %w", err)
	}

	a := archive{tar.NewWriter(out), s.created}
	docker := tarball.Descriptor{Config: blobPath(configDigest)}
	for _, n := range s.names {
		docker.RepoTags = append(docker.RepoTags, n.short())
	}
	a.directory("blobs/")
	a.directory("blobs/sha256/")
	a.file(blobPath(digest), manifest)
	a.file(blobPath(configDigest), config)
	for _, l := range layers {
		d, data, err := blob(l)
		if err != nil {
			return err
		}
		a.file(blobPath(d), data)
		docker.Layers = append(docker.Layers, blobPath(d))
	}
	a.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	a.json("index.json", index(s, digest, int64(len(manifest))))
	a.json("manifest.json", tarball.Manifest{docker})
	return a.Close()
}

// index names the manifest once for each name, in the annotations containerd
// and others read them from.
func index(s spec, digest v1.Hash, size int64) v1.IndexManifest {
	i := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for _, n := range s.names {
		i.Manifests = append(i.Manifests, v1.Descriptor{
			MediaType: types.OCIManifestSchema1,
			Digest:    digest,
			Size:      size,
			Annotations: map[string]string{
				"io.containerd.image.name": n.full(),
				ociLabels + "ref.name":     n.tag.TagStr(),
			},
		})
	}
	return i
}

// blob reads a layer as it is stored.
func blob(l v1.Layer) (v1.Hash, []byte, error) {
	digest, err := l.Digest()
	if err != nil {
		return digest, nil, fmt.Errorf("digest layer: %w", err)
	}
	r, err := l.Compressed()
	if err != nil {
		return digest, nil, fmt.Errorf("compress layer: %w", err)
	}
	defer r.Close()
	var data bytes.Buffer
	if _, err := data.ReadFrom(r); err != nil {
		return digest, nil, fmt.Errorf("compress layer: %w", err)
	}
	return digest, data.Bytes(), nil
}

func blobPath(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

// archive is a tar whose entries all have one time. tar.Writer keeps its
// first error for Close.
type archive struct {
	*tar.Writer
	time time.Time
}

func (a archive) directory(name string) {
	_ = a.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755, ModTime: a.time})
}

func (a archive) file(name string, data []byte) {
	_ = a.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data)), ModTime: a.time})
	_, _ = a.Write(data)
}

func (a archive) json(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain structs of strings and numbers
	}
	a.file(name, data)
}
