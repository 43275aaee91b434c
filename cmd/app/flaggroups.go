package app

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroups show the flags of a command in its help under titles, because there are many flags.
type flagGroups struct {
	cmd *cobra.Command
	all []flagGroup
}

type flagGroup struct {
	title string
	set   *pflag.FlagSet
	page  string // the command that shows them, if the help only refers to it
}

// helpWidth is the width at which lines of help are wrapped.
const helpWidth = 120

// newFlagGroups makes cmd's help show its flags in groups.
func newFlagGroups(cmd *cobra.Command) *flagGroups {
	g := &flagGroups{cmd: cmd}
	cmd.Flags().SortFlags = false
	cmd.SetUsageFunc(g.usage)
	return g
}

// add adds the flags that fill defines, under a title.
func (g *flagGroups) add(title string, fill ...func(*pflag.FlagSet)) { g.refer(title, "", fill...) }

// refer adds flags that the help does not show. page is the command that shows them.
func (g *flagGroups) refer(title, page string, fill ...func(*pflag.FlagSet)) {
	set := pflag.NewFlagSet(title, pflag.ContinueOnError)
	for _, f := range fill {
		f(set)
	}
	g.all = append(g.all, flagGroup{title, set, page})
	g.cmd.Flags().AddFlagSet(set)
}

// usage writes how to call the command, and its flags by group. Flags without a group come last.
func (g *flagGroups) usage(cmd *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n\nExamples:\n%s\n", cmd.UseLine(), cmd.Example)
	grouped := map[string]bool{}
	for _, group := range g.all {
		group.set.VisitAll(func(f *pflag.Flag) { grouped[f.Name] = true })
		if group.page == "" && group.set.HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s:\n%s", group.title, group.set.FlagUsagesWrapped(helpWidth))
		}
	}
	rest := pflag.NewFlagSet("other", pflag.ContinueOnError)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !grouped[f.Name] {
			rest.AddFlag(f)
		}
	})
	fmt.Fprintf(&b, "\nOther flags:\n%s", rest.FlagUsagesWrapped(helpWidth))
	for _, group := range g.all {
		if group.page != "" {
			fmt.Fprintf(&b, "\n%s:\n  %s\n", group.title, group.page)
		}
	}
	_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
	return err
}
