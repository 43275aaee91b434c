package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// groups are a command's flags as its help shows them: under titles, for there
// are more than anyone reads in one go.
type groups struct {
	cmd    *cobra.Command
	titles []string
	sets   []*pflag.FlagSet
}

// helpWidth is where lines of help are wrapped.
const helpWidth = 120

// newGroups makes cmd's help show its flags in groups.
func newGroups(cmd *cobra.Command) *groups {
	g := &groups{cmd: cmd}
	cmd.Flags().SortFlags = false
	cmd.SetUsageFunc(g.usage)
	return g
}

// add adds the flags that fill defines to the command, under a title.
func (g *groups) add(title string, fill ...func(*pflag.FlagSet)) {
	set := pflag.NewFlagSet(title, pflag.ContinueOnError)
	for _, f := range fill {
		f(set)
	}
	g.titles, g.sets = append(g.titles, title), append(g.sets, set)
	g.cmd.Flags().AddFlagSet(set)
}

// usage writes how the command is called and its flags by group; those of no
// group come last.
func (g *groups) usage(cmd *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n\nExamples:\n%s\n", cmd.UseLine(), cmd.Example)
	grouped := map[string]bool{}
	for i, set := range g.sets {
		set.VisitAll(func(f *pflag.Flag) { grouped[f.Name] = true })
		if set.HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s:\n%s", g.titles[i], set.FlagUsagesWrapped(helpWidth))
		}
	}
	rest := pflag.NewFlagSet("other", pflag.ContinueOnError)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !grouped[f.Name] {
			rest.AddFlag(f)
		}
	})
	fmt.Fprintf(&b, "\nOther flags:\n%s", rest.FlagUsagesWrapped(helpWidth))
	_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
	return err
}
