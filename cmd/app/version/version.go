// Package version identifies this build of weir.
package version

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"github.com/weir-metrics/weir/cmd/client/cli"
)

// release is the version that the linker sets: -X github.com/weir-metrics/weir/cmd/app/version.release=v1.2.3.
var release string

// Info identifies a build.
type Info struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Time    string `json:"time,omitempty"` // of the commit
	Dirty   bool   `json:"dirty,omitempty"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

// Get reads what the linker and the go command wrote into the binary.
func Get() Info {
	i := Info{Version: release, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return i
	}
	i.Version = cmp.Or(i.Version, build.Main.Version)
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			i.Commit = s.Value
		case "vcs.time":
			i.Time = s.Value
		case "vcs.modified":
			i.Dirty = s.Value == "true"
		}
	}
	if i.Version == "" || i.Version == "(devel)" {
		i.Version = "devel"
	}
	return i
}

// numbers finds the numbers of a version.
var numbers = regexp.MustCompile(`^v([0-9]+)\.([0-9]+)\.[0-9]+`)

// Kubernetes returns i as clients of Kubernetes read /version: with a semantic version and its first
// two numbers. A build without a version is v0.0.0-devel.
func (i Info) Kubernetes() kubeversion.Info {
	version := i.Version
	found := numbers.FindStringSubmatch(version)
	if found == nil {
		version, found = "v0.0.0-"+version, []string{"", "0", "0"}
	}
	tree := "clean"
	if i.Dirty {
		tree = "dirty"
	}
	return kubeversion.Info{
		Major: found[1], Minor: found[2], GitVersion: version, GitCommit: i.Commit, GitTreeState: tree,
		BuildDate: i.Time, GoVersion: i.Go, Compiler: runtime.Compiler, Platform: i.System,
	}
}

// String returns one line: "weir v1.2.3 (3f2a1b0c4d5e, go1.26.0, linux/amd64)".
func (i Info) String() string {
	commit := ""
	if i.Commit != "" {
		commit = i.Commit[:min(12, len(i.Commit))]
		if i.Dirty {
			commit += "+changes"
		}
		commit += ", "
	}
	return fmt.Sprintf("weir %s (%s%s, %s)", i.Version, commit, i.Go, i.System)
}

// NewCommand returns "version".
func NewCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which weir this is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.OneOf("--output", output, "", "json"); err != nil {
				return err
			}
			if output == "json" {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(Get())
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), Get())
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json; a line if empty")
	return cmd
}
