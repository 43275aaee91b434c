// Command krew makes what krew, the package manager of kubectl's plugins, installs: an archive of each
// kubectl-weir in the folder of a release, and the manifest weir.yaml with their checksums. The same
// files always give the same bytes.
//
//	krew VERSION URL LICENSE FOLDER
//
// URL is where the archives will be: URL/kubectl-weir-linux-amd64.tar.gz. LICENSE is the file of the
// license, which krew's index wants in each archive. The times in the archives are $SOURCE_DATE_EPOCH.
//
// The format: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: krew VERSION URL LICENSE FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "write krew's manifest:", err)
		os.Exit(1)
	}
}

type plugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       spec              `json:"spec"`
}

type spec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Platforms        []platform `json:"platforms"`
}

type platform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
}

const description = `Says why an HPA shows <unknown>, why a number of kubectl top is missing, what an
autoscaler would do, and which pod would be evicted next. It asks the weir of the
cluster, which measures what nodes, pods and containers use in the place of
metrics-server. It needs the rights of the caller only.
`

var released = regexp.MustCompile(`^kubectl-weir-([a-z]+)-([a-z0-9]+)(\.exe)?$`)

// write writes the archives and the manifest into folder.
func write(version, url, license, folder string) error {
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("read SOURCE_DATE_EPOCH: %w", err)
	}
	terms, err := os.ReadFile(license)
	if err != nil {
		return err
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	p := plugin{"krew.googlecontainertools.github.com/v1alpha2", "Plugin", map[string]string{"name": "weir"}, spec{
		Version: semantic(version), Homepage: "https://github.com/weir-metrics/weir",
		ShortDescription: "Explain missing metrics, autoscalers and evictions", Description: description,
	}}
	for _, f := range files {
		match := released.FindStringSubmatch(f.Name())
		if match == nil {
			continue
		}
		program, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			return err
		}
		one := platform{Bin: "kubectl-weir" + match[3]}
		one.Selector.MatchLabels = map[string]string{"os": match[1], "arch": match[2]}
		packed, err := archive(time.Unix(epoch, 0), packedFile{one.Bin, 0o755, program}, packedFile{"LICENSE", 0o644, terms})
		if err != nil {
			return fmt.Errorf("pack %s: %w", f.Name(), err)
		}
		name := strings.TrimSuffix(f.Name(), match[3]) + ".tar.gz"
		if err := os.WriteFile(filepath.Join(folder, name), packed, 0o644); err != nil {
			return err
		}
		sum := sha256.Sum256(packed)
		one.URI, one.SHA256 = url+"/"+name, hex.EncodeToString(sum[:])
		p.Spec.Platforms = append(p.Spec.Platforms, one)
	}
	if len(p.Spec.Platforms) == 0 {
		return errors.New(folder + " has no kubectl-weir: name the folder of a release")
	}
	manifest, err := yaml.Marshal(p)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "weir.yaml"), manifest, 0o644)
}

// semantic returns the version that krew requires: that of a tag vX.Y.Z, or a version before the first.
func semantic(version string) string {
	if strings.HasPrefix(version, "v") {
		return version
	}
	return "v0.0.0-" + version
}

type packedFile struct {
	name    string
	mode    int64
	content []byte
}

// archive returns a gzipped tar of files.
func archive(at time.Time, files ...packedFile) ([]byte, error) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: at}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := errors.Join(w.Close(), z.Close())
	return packed.Bytes(), err
}
