package main

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// push writes the image to the registry of its name, with the credentials that docker login or
// podman login keeps. The registry has the very manifest of the archive, so its digest is the same.
func (i *image) push(ctx context.Context) error {
	whole, err := partial.CompressedToImage(stored{i})
	if err != nil {
		return err
	}
	return remote.Write(i.spec.name, whole, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

// stored is an image as the library reads it.
type stored struct{ *image }

// RawManifest is part of partial.CompressedImageCore.
func (s stored) RawManifest() ([]byte, error) { return s.manifest.data, nil }

// RawConfigFile is part of partial.CompressedImageCore.
func (s stored) RawConfigFile() ([]byte, error) { return s.config.data, nil }

// MediaType is part of partial.CompressedImageCore.
func (s stored) MediaType() (types.MediaType, error) { return s.manifest.MediaType, nil }

// LayerByDigest is part of partial.CompressedImageCore.
func (s stored) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	if digest != s.layer.Digest {
		return nil, fmt.Errorf("there is no layer %s", digest)
	}
	return static.NewLayer(s.layer.data, s.layer.MediaType), nil
}
