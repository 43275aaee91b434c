package app

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/client/cli"
)

// apis says which of the APIs for a cluster's clients are served.
type apis struct {
	Resource bool // metrics.k8s.io
	Custom   bool // custom.metrics.k8s.io
	External bool // external.metrics.k8s.io
	Model    bool // Heapster's
}

// apiNames are what --apis calls them.
var apiNames = []string{"resource", "custom", "external", "model"}

// apiFlags choose what is served.
type apiFlags struct {
	named apiList
	rules string
}

func (a *apiFlags) addFlags(f *pflag.FlagSet) {
	f.Var(&a.named, "apis", "what to serve of resource (metrics.k8s.io), custom (custom.metrics.k8s.io), external (external.metrics.k8s.io) and model (Heapster's), separated by commas; empty for none (default resource,custom,model, and external with --external-rules)")
	f.StringVar(&a.rules, "external-rules", "", "`FILE` that says which external metrics there are and how to ask Prometheus for them")
}

// compile returns what to serve.
func (a *apiFlags) compile() (apis, error) {
	if !a.named.given {
		return apis{Resource: true, Custom: true, Model: true, External: a.rules != ""}, nil
	}
	has := func(name string) bool { return slices.Contains(a.named.names, name) }
	chosen := apis{Resource: has("resource"), Custom: has("custom"), External: has("external"), Model: has("model")}
	switch {
	case chosen.External && a.rules == "":
		return apis{}, cli.Usage(errors.New("--apis names external, and nothing says which metrics there are: give --external-rules=FILE too"))
	case !chosen.External && a.rules != "":
		return apis{}, cli.Usage(errors.New("--external-rules is for the API external, which --apis leaves out: add it or drop the rules"))
	}
	return chosen, nil
}

// apiList is the value of --apis.
type apiList struct {
	given bool
	names []string
}

// Set adds the APIs named in text.
func (l *apiList) Set(text string) error {
	l.given = true
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if err := cli.OneOf("an API", name, apiNames...); err != nil {
			return err
		}
		l.names = append(l.names, name)
	}
	return nil
}

// String writes the names.
func (l *apiList) String() string { return strings.Join(l.names, ",") }

// Type is the placeholder in the help text.
func (l *apiList) Type() string { return "NAMES" }
