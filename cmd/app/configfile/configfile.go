// Package configfile reads the flags of a long-running command from a YAML file:
//
//	apiVersion: weir.dev/v1alpha1
//	kind: ServerConfiguration # or AgentConfiguration, RunConfiguration
//	metric-resolution: 30s
//	source:
//	  - kubelet:?endpoint=summary
//
// Each further field is a flag by its name. A flag that may be repeated takes a list. A flag on the
// command line has priority over the file.
package configfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cmd/client/cli"
)

const flagName = "config"

// fromFile is an annotation of the flags that the file has set: the text in the file, if it is one value.
const fromFile = "weir.dev/config"

// maxSize is the largest file that is read, in bytes.
const maxSize = 1 << 20

// Add adds the flag --config to cmd. Before cmd runs, the file's settings become its flags.
func Add(cmd *cobra.Command) {
	var file string
	cmd.Flags().StringVar(&file, flagName, "", "`FILE` with flags in YAML, for those that are not given here: weir check config finds its mistakes")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if file == "" {
			return nil
		}
		return Apply(cmd, file)
	}
}

// Kind returns the kind of the files of a command: ServerConfiguration for weir server.
func Kind(cmd *cobra.Command) string {
	return strings.ToUpper(cmd.Name()[:1]) + cmd.Name()[1:] + "Configuration"
}

// Apply sets the flags of cmd that file has and the command line does not. Its error has a line for
// each mistake, FILE:LINE: what is wrong.
func Apply(cmd *cobra.Command, file string) error {
	return applyOthers(cmd, file, givenFlags(cmd.Flags()))
}

// givenFlags returns the names of the flags on the command line.
func givenFlags(flags *pflag.FlagSet) map[string]bool {
	names := map[string]bool{}
	flags.Visit(func(f *pflag.Flag) {
		if _, file := f.Annotations[fromFile]; !file {
			names[f.Name] = true
		}
	})
	return names
}

// applyOthers sets the flags of cmd that file has, except those that are given.
func applyOthers(cmd *cobra.Command, file string, given map[string]bool) error {
	root, err := read(file)
	if err != nil {
		return err
	}
	p := parser{file: file, flags: cmd.Flags(), given: given}
	p.apply(root, Kind(cmd))
	return errors.Join(p.mistakes...)
}

// ReadKind returns the kind of a file, or "" if it has none.
func ReadKind(file string) (string, error) {
	root, err := read(file)
	if err != nil {
		return "", err
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "kind" {
			return root.Content[i+1].Value, nil
		}
	}
	return "", nil
}

// read returns the mapping that a file has.
func read(file string) (*yaml.Node, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read --%s: %w", flagName, err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read --%s: %w", flagName, err)
	}
	if len(content) > maxSize {
		return nil, fmt.Errorf("%s is larger than %d bytes: it is not a configuration file", file, maxSize)
	}
	return parse(file, content)
}

func parse(file string, content []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(strings.NewReader(string(content)))
	var document, more yaml.Node
	switch err := d.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s is empty: it needs apiVersion and kind", file)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: there is text after the first document: a file holds one", file)
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: this is not a mapping: write NAME: VALUE", file, root.Line)
	}
	return root, nil
}

type parser struct {
	file     string
	flags    *pflag.FlagSet
	given    map[string]bool // flags that the file does not set
	mistakes []error
}

func (p *parser) add(n *yaml.Node, format string, args ...any) {
	p.mistakes = append(p.mistakes, fmt.Errorf("%s:%d: %s", p.file, n.Line, fmt.Sprintf(format, args...)))
}

// apply sets the flags that root names.
func (p *parser) apply(root *yaml.Node, kind string) {
	known := []string{"apiVersion", "kind"}
	p.flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != flagName && f.Name != "help" && f.Name != "version" {
			known = append(known, f.Name)
		}
	})
	lines := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if first, twice := lines[key.Value]; twice {
			p.add(key, "%s is there twice, first in line %d", key.Value, first)
			continue
		}
		lines[key.Value] = key.Line
		switch {
		case key.Value == "apiVersion" && value.Value != weirdev.APIVersion:
			p.add(value, "apiVersion is %q: this weir reads %s", value.Value, weirdev.APIVersion)
		case key.Value == "kind" && value.Value != kind:
			p.add(value, "kind is %q: this command reads %s", value.Value, kind)
		case key.Value == "apiVersion" || key.Value == "kind":
		case !slices.Contains(known, key.Value):
			hint := "weir help " + strings.ToLower(strings.TrimSuffix(kind, "Configuration")) + " lists the flags"
			if near, ok := cli.Closest(key.Value, known); ok {
				hint = "did you mean " + near + "?"
			}
			p.add(key, "unknown field %s: %s", key.Value, hint)
		case !p.given[key.Value]:
			p.set(p.flags.Lookup(key.Value), value)
			_ = p.flags.SetAnnotation(key.Value, fromFile, []string{value.Value}) // the flag exists
		}
	}
	for _, name := range known[:2] {
		if lines[name] == 0 {
			p.add(root, "%s is missing: write apiVersion: %s and kind: %s", name, weirdev.APIVersion, kind)
		}
	}
}

// set sets a flag to a value, or to each value of a list.
func (p *parser) set(f *pflag.Flag, value *yaml.Node) {
	values := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		values = value.Content
		list, ok := f.Value.(pflag.SliceValue)
		if !ok {
			p.add(value, "%s takes one value, and here is a list", f.Name)
			return
		}
		if len(values) == 0 { // nothing is set below, and a default would stay
			if err := list.Replace(nil); err != nil {
				p.add(value, "%s: %v", f.Name, err)
			}
			f.Changed = true
		}
	}
	for _, v := range values {
		if v.Kind != yaml.ScalarNode {
			p.add(v, "%s takes a value, and here is a mapping or a list", f.Name)
			return
		}
		if err := p.flags.Set(f.Name, v.Value); err != nil {
			text := err.Error()
			var number *strconv.NumError // of a bool, too
			if errors.As(err, &number) {
				text = fmt.Sprintf("%q is not of type %s", v.Value, f.Value.Type())
			} else if cause := errors.Unwrap(err); cause != nil {
				text = cause.Error()
			}
			p.add(v, "%s: %s", f.Name, text)
		}
	}
}

// NewCheck returns "config", a subcommand of check. commands are those that have --config.
func NewCheck(commands ...func() *cobra.Command) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "config FILE",
		Short: "Check a file for --config of weir run, server or agent",
		Long: `Check a file for --config of weir run, server or agent, by its kind. Every
mistake is a line FILE:LINE: what is wrong and what to do; the exit status is then 1.`,
		Example: "  weir check config server.yaml\n  weir check config server.yaml --all > complete.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, err := ReadKind(args[0])
			if err != nil {
				return err
			}
			var kinds []string
			for _, c := range commands {
				target := c()
				kinds = append(kinds, Kind(target))
				if Kind(target) != kind {
					continue
				}
				if err := Apply(target, args[0]); err != nil {
					return err
				}
				return write(cmd.OutOrStdout(), target, all)
			}
			return cli.OneOf("kind in "+args[0], kind, kinds...)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "print every setting with its value, also those that have their default")
	return cmd
}

// write writes the settings of a command as a file for --config: those that are set, or all.
func write(w io.Writer, cmd *cobra.Command, all bool) error {
	root := &yaml.Node{Kind: yaml.MappingNode}
	scalar := func(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }
	add := func(name string, value *yaml.Node) { root.Content = append(root.Content, scalar(name), value) }
	add("apiVersion", scalar(weirdev.APIVersion))
	add("kind", scalar(Kind(cmd)))
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Changed && !all || f.Hidden || f.Name == flagName || f.Name == "help" || f.Name == "version" {
			return
		}
		list, ok := f.Value.(pflag.SliceValue)
		if !ok {
			add(f.Name, scalar(f.Value.String()))
			return
		}
		values := &yaml.Node{Kind: yaml.SequenceNode}
		for _, v := range list.GetSlice() {
			values.Content = append(values.Content, scalar(v))
		}
		add(f.Name, values)
	})
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	return e.Close()
}
