package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flags returns the names of cmd's flags.
func flags(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// CompleteFlag sets the shell completion for the values of cmd's flag. It panics if there is no
// such flag or if it already has a completion: both are bugs.
func CompleteFlag(cmd *cobra.Command, name string, complete func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective)) {
	if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
		panic(err)
	}
}

// Fixed returns a completion for a fixed list of values.
func Fixed(values ...string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

// WorkloadKinds are the kinds of workloads that own pods, by each name that kubectl takes for them.
var WorkloadKinds = map[string]string{
	"deployment": "deployment", "deployments": "deployment", "deploy": "deployment",
	"statefulset": "statefulset", "statefulsets": "statefulset", "sts": "statefulset",
	"daemonset": "daemonset", "daemonsets": "daemonset", "ds": "daemonset",
	"replicaset": "replicaset", "replicasets": "replicaset", "rs": "replicaset",
	"job": "job", "jobs": "job",
}

// ParseDays parses whole days such as "7d", which time.ParseDuration does not accept. More than 65,535 are none.
func ParseDays(text string) (time.Duration, bool) {
	days, ok := strings.CutSuffix(text, "d")
	n, err := strconv.ParseUint(days, 10, 16)
	return time.Duration(n) * 24 * time.Hour, ok && err == nil
}

// ParseRef parses NAMESPACE/NAME, or NAME with the namespace of the flag -n. Without the flag,
// fallback returns the namespace; it may be nil.
func ParseRef(text, flag string, fallback func() (string, error)) (namespace, name string, err error) {
	namespace, name, both := strings.Cut(text, "/")
	switch {
	case strings.Contains(name, "/"):
		return "", "", Usage(fmt.Errorf("%q is not NAMESPACE/NAME", text))
	case both && flag != "" && flag != namespace:
		return "", "", Usage(fmt.Errorf("-n is namespace %s, and %s has another one", flag, text))
	case !both:
		namespace, name = flag, text
		if namespace == "" && fallback != nil {
			if namespace, err = fallback(); err != nil {
				return "", "", err
			}
		}
	}
	switch {
	case name == "" || both && namespace == "":
		return "", "", Usage(errors.New("a name cannot be empty"))
	case namespace == "":
		return "", "", Usage(fmt.Errorf("in which namespace is %s? Write NAMESPACE/%[1]s, or add -n NAMESPACE", name))
	}
	return namespace, name, nil
}
