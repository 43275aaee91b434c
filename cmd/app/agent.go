package app

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/api/nodeapi/agents"
	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/cmd/app/configfile"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/flags/clusterflag"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/metric"
)

func newAgent(getenv func(string) string) *cobra.Command {
	a := newAgentFlags()
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Measure this node of a cluster, and watch over it",
		Long: `Measure every cgroup of this node, and serve what was measured. With a cluster
named, it serves the pods' requests and limits too.

The agent looks at the node as soon as something runs short, and
every ten seconds, and decides which pod would be evicted, as the kubelet does.
Unless --eviction is set, it changes nothing: weir explain eviction shows
what it sees. docs/agent.md has what it needs, and how to set thresholds beside
the kubelet's.`,
		Example: `  weir agent --in-cluster --node-name=$NODE_NAME
  weir agent --in-cluster --eviction=kill --eviction-hard='memory.available<200Mi'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.compile(inPod(getenv, fileExists), getenv)
			if err != nil {
				return err
			}
			return start(cmd, func() *cobra.Command { return newAgent(getenv) }, a.config, p)
		},
	}
	a.addTo(cmd)
	configfile.Add(cmd)
	return cmd
}

// agentFlags holds the flags of weir agent.
type agentFlags struct {
	*config
	secure                     *server.Options
	given                      func(flag string) bool
	node                       string
	kubeletRoot, containerRoot string
}

func newAgentFlags() *agentFlags {
	return &agentFlags{config: newConfig(serverResolution, "host"), secure: newAgentSecure()}
}

// addTo adds the flags to cmd, and groups them in its help.
func (a *agentFlags) addTo(cmd *cobra.Command) {
	a.given = cmd.Flags().Changed
	g := newFlagGroups(cmd)
	g.add("The cluster, and this node of it", a.cluster.Add, a.addNodeFlags)
	g.add("Measuring", a.addPipelineFlags, a.addPathFlags)
	g.add("Eviction, in the kubelet's words where it has them", a.plan.features.guard.Flags)
	g.add("Kills by the kernel, for memory", a.plan.features.kills.Flags)
	common, others := secureFlags(a.secure)
	g.add("HTTPS server, for callers that the cluster allows to read", common)
	g.add("HTTP server without authentication, on this machine", a.addListenFlags)
	g.add("Logging", a.log.AddFlags)
	g.refer("Kubernetes' own flags for a secured server (audit, authentication, authorization, TLS)", "weir help "+secureTopic, others)
}

func (a *agentFlags) addNodeFlags(f *pflag.FlagSet) {
	f.StringVar(&a.node, "node-name", "", "name of this node's Node object (default: $NODE_NAME, or else the host name)")
}

func (a *agentFlags) addPathFlags(f *pflag.FlagSet) {
	f.StringVar(&a.kubeletRoot, "kubelet-root", defaultKubeletRoot, "`DIR` of the kubelet, on the file system nodefs")
	f.StringVar(&a.containerRoot, "container-root", defaultContainerRoot, "`DIR` of the container runtime, on the file system imagefs")
}

// compile makes a plan from the flags and the environment of the process.
func (a *agentFlags) compile(inPod bool, getenv func(string) string) (*plan, error) {
	p, err := a.config.compile("host")
	if err != nil {
		return nil, err
	}
	p.Mode = "agent"
	name, err := clusterflag.NodeName(cmp.Or(a.node, getenv("NODE_NAME")))
	if err != nil {
		return nil, err
	}
	p.Host.setName(metric.NodeName(name))
	for flag, dir := range map[string]string{"kubelet-root": a.kubeletRoot, "container-root": a.containerRoot} {
		if _, err := os.Stat(dir); err != nil && a.given(flag) { // a machine without a kubelet may lack the default directory
			return nil, cli.Usage(fmt.Errorf("--%s: %w", flag, err))
		}
	}
	p.Host.KubeletRoot, p.Host.ContainerRoot = a.kubeletRoot, a.containerRoot
	if p.Cluster != nil {
		p.Cluster.Node = p.Host.Node
		p.Cluster.KubeletPods = filepath.Join(a.kubeletRoot, "pods-api", "pods-api.sock")
	}
	setting := &feature.Setting{
		Getenv: getenv, Given: a.given, InPod: inPod, HasCluster: p.Cluster != nil, NodeIsNamed: a.node != "" || getenv("NODE_NAME") != "",
	}
	for _, check := range []func(*feature.Setting) error{p.features.guard.Check, p.features.kills.Check} {
		if err := check(setting); err != nil {
			return nil, err
		}
	}
	if err := p.secureWith(a.secure, a.given, inPod); err != nil {
		return nil, err
	}
	if inPod {
		p.AgentPod = agents.PodOf(getenv)
	}
	if inPod && p.Secure != nil && !a.given("listen") {
		p.Listen = "" // in the host's network every process of the node could read it without authentication
	}
	return p, nil
}
