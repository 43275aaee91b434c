package main

import (
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// defaultRegistry is the host that a name without one means, as containerd
// and the kubelet spell it. Nothing is fetched from it: an image is looked up
// under its whole name, so that is the name it must be stored under.
const defaultRegistry = "docker.io"

// imageName is a name with a tag.
type imageName struct{ tag name.Tag }

func parseName(v string) (imageName, error) {
	tag, err := name.NewTag(v)
	if err != nil {
		return imageName{}, fmt.Errorf("read name: %w", err)
	}
	return imageName{tag}, nil
}

// full returns the name as containerd stores it: docker.io/library/pause:1.
func (n imageName) full() string {
	registry := n.tag.RegistryStr()
	if registry == name.DefaultRegistry {
		registry = defaultRegistry
	}
	return registry + "/" + n.tag.RepositoryStr() + ":" + n.tag.TagStr()
}

// short returns the name as people write it: pause:1.
func (n imageName) short() string {
	s := strings.TrimPrefix(n.full(), defaultRegistry+"/")
	return strings.TrimPrefix(s, "library/")
}
