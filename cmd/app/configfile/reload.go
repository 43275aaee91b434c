package configfile

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Reloader reads the file of --config again while its command runs.
type Reloader struct {
	File     string
	fresh    func() *cobra.Command
	given    map[string]bool   // flags on the command line, which have priority
	settings map[string]string // of the last valid file
}

// NewReloader returns the Reloader of a command that was started, or nil if it has no --config.
// fresh returns the same command with the defaults of all flags. The error is about a file that has
// changed since the start.
func NewReloader(cmd *cobra.Command, fresh func() *cobra.Command) (*Reloader, error) {
	flag := cmd.Flags().Lookup(flagName)
	if flag == nil || flag.Value.String() == "" {
		return nil, nil
	}
	r := &Reloader{File: flag.Value.String(), fresh: fresh, given: givenFlags(cmd.Flags())}
	return r, r.Reload(nil)
}

// Reload reads the file and calls use with its flags and the names of those that have changed,
// unless none has. Flags on the command line do not count, nor what the file reports of them. After an
// error, which may be that of the file or of use, the file counts as not read.
func (r *Reloader) Reload(use func(flags *pflag.FlagSet, changed []string) error) error {
	cmd := r.fresh()
	if err := applyOthers(cmd, r.File, r.given); err != nil {
		return err
	}
	settings := map[string]string{}
	var changed []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		settings[f.Name] = f.Value.String()
		if f.Value.Type() == "func" { // such a flag has no value of its own
			settings[f.Name] = strings.Join(f.Annotations[fromFile], "")
		}
		if before, ok := r.settings[f.Name]; ok && before != settings[f.Name] {
			changed = append(changed, f.Name)
		}
	})
	if len(changed) > 0 {
		slices.Sort(changed)
		if err := use(cmd.Flags(), changed); err != nil {
			return err
		}
	}
	r.settings = settings
	return nil
}
