// Command provenance describes how the files of a release were made: it writes an in-toto statement
// with a SLSA provenance, version 1, to standard output. The statement is not signed. The same
// files always give the same bytes.
//
//	provenance FILE...
//
// The files that are Go programs must be of one clean commit and one Go release.
//
// Formats: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md and
// https://slsa.dev/spec/v1.1/provenance.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
)

const repository = "https://github.com/weir-metrics/weir"

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

// A resource is a file or a source. Digest maps an algorithm to a digest in hexadecimal.
type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

type provenance struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []resource        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

func run(files []string, out io.Writer) error {
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	var commit, goRelease string
	for _, file := range files {
		f, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(f)
		s.Subject = append(s.Subject, resource{Name: filepath.Base(file), Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])}})
		build, err := buildinfo.ReadFile(file)
		if err != nil {
			continue // not a Go program
		}
		c, err := commitOf(build)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", file, err)
		case commit != "" && (c != commit || build.GoVersion != goRelease):
			return fmt.Errorf("%s is of commit %s and %s, another file of %s and %s: build all with one make release", file, c, build.GoVersion, commit, goRelease)
		}
		commit, goRelease = c, build.GoVersion
	}
	if commit == "" {
		return errors.New("no file is a Go program: name the files of bin/release")
	}
	definition := &s.Predicate.BuildDefinition
	definition.BuildType = repository + "/blob/main/Makefile"
	definition.ExternalParameters = map[string]string{"source": "git+" + repository, "target": "release"}
	definition.InternalParameters = map[string]string{"go": goRelease}
	definition.ResolvedDependencies = []resource{{URI: "git+" + repository, Digest: map[string]string{"gitCommit": commit}}}
	s.Predicate.RunDetails.Builder.ID = repository + "/blob/main/docs/install.md#releases"
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(s)
}

// commitOf returns the commit from which a program was built. A program built with uncommitted
// changes is an error.
func commitOf(b *debug.BuildInfo) (string, error) {
	settings := map[string]string{}
	for _, s := range b.Settings {
		settings[s.Key] = s.Value
	}
	switch {
	case settings["vcs.revision"] == "":
		return "", errors.New("it names no commit: build it in a clone of the repository")
	case settings["vcs.modified"] != "false":
		return "", errors.New("it was built with changes that are not committed: commit them, then build again")
	}
	return settings["vcs.revision"], nil
}
