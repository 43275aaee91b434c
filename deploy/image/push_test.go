package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestPush pushes an image to a real registry and writes its archive. Both have the same digest, and
// the registry serves a valid image.
func TestPush(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // no credentials
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	tag := strings.TrimPrefix(server.URL, "http://") + "/tools/weir:v1"
	var stdout bytes.Buffer
	args := []string{"--name", tag, "--binary", program(t, "amd64"), "--push", "--out", filepath.Join(t.TempDir(), "image.tar")}
	if err := run(t.Context(), args, noenv, &stdout, io.Discard); err != nil {
		t.Fatal(err)
	}
	pinned := strings.TrimSpace(stdout.String())
	if !strings.HasPrefix(pinned, tag+"@sha256:") {
		t.Fatalf("printed %q, want %s@sha256:…", pinned, tag)
	}
	_, digest, _ := strings.Cut(pinned, "@")
	for _, reference := range []string{tag, strings.TrimSuffix(tag, ":v1") + "@" + digest} {
		ref, err := name.ParseReference(reference)
		if err != nil {
			t.Fatal(err)
		}
		got, err := remote.Image(ref)
		if err != nil {
			t.Fatalf("pull %s: %v", reference, err)
		}
		if err := validate.Image(got); err != nil {
			t.Errorf("pull %s: %v", reference, err)
		}
		if h, err := got.Digest(); err != nil || h.String() != digest {
			t.Errorf("pull %s: got digest %v, %v; want %s", reference, h, err, digest)
		}
	}
}

func TestPushFails(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"errors":[{"code":"DENIED","message":"read only"}]}`, http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	hello := program(t, "amd64")
	for tag, want := range map[string]string{
		strings.TrimPrefix(server.URL, "http://") + "/weir:v1": "read only",
		"weir.invalid/weir:dev":                                "weir.invalid cannot be a registry: name the image with yours, as make push IMAGE=REGISTRY/weir:TAG",
	} {
		err := run(t.Context(), []string{"--name", tag, "--binary", hello, "--push"}, noenv, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", tag, err, want)
		}
	}
}
