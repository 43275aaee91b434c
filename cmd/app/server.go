package app

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/api/adapters"
	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/replicas/peer"
	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/cmd/app/configfile"
	"github.com/weir-metrics/weir/cmd/app/version"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/sources/kubelet"
)

// serverResolution is the time between two reads of a node: the value in metrics-server's
// manifests, and about the interval at which a kubelet itself measures.
const serverResolution = 15 * time.Second

func newServer(getenv func(string) string) *cobra.Command {
	s := newServerFlags()
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Measure a cluster, or a list of kubelets",
		Long: `Measure the nodes of a cluster through their kubelets, and serve what was measured.

In a pod, or with --kubeconfig, the cluster's own nodes are read unless --source
names others. Sources are named as Heapster's were: NAME[:CONFIG][?OPTIONS].

weir server takes metrics-server's flags, so that its Deployment needs another
image and command and no other arguments. Nodes are read every 15s unless
--metric-resolution is set (metrics-server: 60s): that is about as often
as a kubelet measures.`,
		Example: `  weir server                                # in a pod of the cluster
  weir server --kubeconfig=$HOME/.kube/config --node-selector=kubernetes.io/os=linux
  weir server --kubeconfig=$HOME/.kube/config --source=kubelet:?endpoint=summary
  weir server --source='kubelet:?targets=127.0.0.2:10250,127.0.0.3:10250&insecure-tls=true'
  weir server --source='cadvisor:?targets=web=10.0.0.1:8080,db=10.0.0.2:8080'`,
		Args:    cobra.NoArgs,
		Version: version.Get().String(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := s.compile(inPod(getenv, fileExists), getenv)
			if err != nil {
				return err
			}
			return start(cmd, func() *cobra.Command { return newServer(getenv) }, s.config, p)
		},
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	s.addTo(cmd)
	configfile.Add(cmd)
	return cmd
}

// serverFlags holds the flags of weir server.
type serverFlags struct {
	*config
	compatFlags
	apis   apiFlags
	secure *server.Options
}

func newServerFlags() *serverFlags {
	c := newConfig(serverResolution, "kubelet", "cadvisor", "host", "recording")
	return &serverFlags{config: c, secure: server.NewOptions()}
}

// addTo adds the flags to cmd, and groups them in its help.
func (s *serverFlags) addTo(cmd *cobra.Command) {
	s.given = cmd.Flags().Changed
	g, f := newFlagGroups(cmd), s.plan.features
	g.add("The cluster", s.cluster.Add, s.addAccountFlag)
	g.add("Its kubelets, in metrics-server's words (instead of --source)", s.addKubeletFlags)
	g.add("Its weir agents", f.agents.Flags)
	g.add("Sources and sinks", s.addPipelineFlags)
	g.add("APIs", s.apis.addFlags)
	g.add("Events in the cluster", f.events.Flags, f.hpaEvents.Flags)
	g.add("Autoscaling", f.autoscaler.Flags)
	common, others := secureFlags(s.secure)
	g.add("HTTPS server, for callers that the cluster allows to read", common, f.replicas.Flags)
	g.add("HTTP server without authentication", s.addListenFlags)
	g.add("Logging", s.log.AddFlags, s.addLogFlags)
	g.add("metrics-server's that weir has no use for", addUnusedFlags)
	g.refer("Kubernetes' own flags for a secured server (audit, authentication, authorization, TLS)", "weir help "+secureTopic, others)
}

// addAccountFlag adds the flag about the account that reads kubelets.
func (s *serverFlags) addAccountFlag(f *pflag.FlagSet) {
	f.StringVar(&s.plan.KubeletAccount, "kubelet-account", "", "`NAMESPACE/NAME` of the service account that reads kubelets: weir creates its tokens and shows kubelets no other (default: weir's own account, or the kubeconfig's credentials)")
}

// compile makes a plan from the flags and the environment of the process.
func (s *serverFlags) compile(inPod bool, getenv func(string) string) (*plan, error) {
	if err := s.complete(s.config, inPod); err != nil {
		return nil, err
	}
	p, err := s.config.compile("")
	if err != nil {
		return nil, err
	}
	p.Mode = "server"
	if p.APIs, err = s.apis.compile(); err != nil {
		return nil, err
	}
	p.ExternalRules, p.ExternalFiles = s.apis.rules, s.apis.files
	if p.ExternalRules != "" && p.Cluster == nil {
		return nil, feature.NeedsCluster("--external-rules", "whose autoscalers use the metrics")
	}
	if s.apis.adapters != "" {
		if p.Cluster == nil {
			return nil, feature.NeedsCluster("--adapters", "whose autoscalers use the metrics")
		}
		if p.Adapters, err = adapters.ReadFile(s.apis.adapters, s.apis.adapterFiles); err != nil {
			return nil, err
		}
	}
	f := p.features
	if err := f.check(&feature.Setting{Getenv: getenv, Given: s.given, InPod: inPod, HasCluster: p.Cluster != nil}); err != nil {
		return nil, err
	}
	f.agents.AddressTypes = agentAddressTypes(p.Kubelets)
	if err := p.checkKubeletAccount(); err != nil {
		return nil, err
	}
	if err := p.secureWith(s.secure, s.given, inPod); err != nil {
		return nil, err
	}
	if p.Secure != nil {
		f.replicas.Join(s.secure.SecureServing.BindPort, getenv)
		switch joined := f.replicas.HasJoined(); {
		case !joined && f.replicas.LeaseName != "" && s.given("lease"):
			return nil, cli.Hintf(cli.Usage(errors.New("--lease needs to know which pod this is")), setPod)
		case !joined && f.replicas.SharesReads:
			return nil, cli.Hintf(cli.Usage(errors.New("--share-reads needs --lease, and to know which pod this is")), setPod)
		}
		if !s.given("listen") {
			p.Listen = "" // it would not authenticate callers that reach the pod's loopback
		}
	} else {
		f.replicas.SharesReads = false // there is no other replica
	}
	if inPod {
		return p, cmp.Or(p.checkActing(), p.checkTokens())
	}
	return p, nil
}

const setPod = "Set POD_NAME, POD_NAMESPACE and POD_IP in the environment, from the pod's own fields."

// checkActing returns an error for flags with which only one replica may act, if this pod cannot
// take part in the election of that replica. With an empty --lease there is only one.
func (p *plan) checkActing() error {
	if f := p.features; f.replicas.HasJoined() || f.replicas.LeaseName == "" {
		return nil
	}
	for _, flag := range append(p.features.actsWith(), p.sendsWith...) {
		return cli.Hintf(cli.Usage(fmt.Errorf("%s needs --lease and --secure-port, and to know which pod this is: else every replica would act", flag)),
			setPod+" If there is never more than one replica, give --lease= instead.")
	}
	return nil
}

// checkKubeletAccount returns an error for a --kubelet-account that cannot be used.
func (p *plan) checkKubeletAccount() error {
	if p.KubeletAccount == "" {
		return nil
	}
	if p.Cluster == nil {
		return feature.NeedsCluster("--kubelet-account", "whose API server creates the tokens")
	}
	namespace, name, ok := strings.Cut(p.KubeletAccount, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return cli.Usage(fmt.Errorf("--kubelet-account=%s: write NAMESPACE/NAME, such as weir-system/weir-kubelet-reader", p.KubeletAccount))
	}
	return nil
}

// checkTokens returns an error if weir would show the token of its pod's account, with which the
// API server obeys, to agents or replicas, or to kubelets if it may change scales.
func (p *plan) checkTokens() error {
	if p.Cluster == nil || p.Cluster.Kubeconfig != "" || p.Cluster.Master != "" {
		return nil
	}
	const projected = "Mount a token for the audience %s (a volume of type projected, as in deploy/kustomize), and give %s=FILE."
	if p.features.replicas.HasJoined() && p.features.replicas.TokenFile == "" {
		return cli.Hintf(cli.Usage(errors.New("--lease needs --replica-token-file: else the token of weir's account would be sent to the address in the Lease")),
			projected+" If there is never more than one replica, give --lease= instead.", peer.Audience, "--replica-token-file")
	}
	if a := p.features.agents; a.Port != 0 && a.TokenFile == "" {
		return cli.Hintf(cli.Usage(errors.New("--agent-port needs --agent-token-file: else the token of weir's account would be sent to every node")),
			projected, nodeapi.Audience, "--agent-token-file")
	}
	shown := slices.ContainsFunc(p.Kubelets, func(k kubeletPlan) bool { return k.showsOwnToken() })
	if p.features.autoscaler.Act && shown && p.KubeletAccount == "" {
		return cli.Hintf(cli.Usage(errors.New("--autoscalers needs --kubelet-account: else every node would see a token that may change scales")),
			"Give --kubelet-account=NAMESPACE/NAME with an account that may only get nodes/metrics and nodes/stats, as in deploy/kustomize.")
	}
	return nil
}

// agentAddressTypes returns the address types by which the cluster's kubelets are reached.
func agentAddressTypes(kubelets []kubeletPlan) []string {
	for i := range kubelets {
		if types := kubelets[i].AddressTypes; len(types) > 0 {
			return types
		}
	}
	return kubelet.DefaultAddressTypes()
}
