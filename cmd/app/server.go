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
	"k8s.io/client-go/kubernetes"

	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/replicas/peer"
	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/cmd/app/configfile"
	"github.com/weir-metrics/weir/cmd/app/version"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/flags/stageflag"
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
says otherwise. Sources are named as Heapster's were: NAME[:CONFIG][?OPTIONS].

weir server takes metrics-server's flags, so that its Deployment needs another
image and command and no other arguments. Nodes are read every 15s unless
--metric-resolution says otherwise (metrics-server: 60s): that is about as often
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
	apis        apiFlags
	secure      *server.Options
	lease       string
	autoscalers *autoscalerFlags
	agents      agentsPlan
}

func newServerFlags() *serverFlags {
	c := newConfig(serverResolution, "kubelet", "cadvisor", "host", "recording")
	return &serverFlags{config: c, secure: server.NewOptions(), autoscalers: newAutoscalerFlags()}
}

// addTo adds the flags to cmd, and groups them in its help.
func (s *serverFlags) addTo(cmd *cobra.Command) {
	s.given = cmd.Flags().Changed
	g := newFlagGroups(cmd)
	g.add("The cluster", s.cluster.Add, s.addAccountFlag)
	g.add("Its kubelets, in metrics-server's words (instead of --source)", s.addKubeletFlags)
	g.add("Its weir agents", s.agents.addFlags)
	g.add("Sources and sinks", s.addPipelineFlags)
	g.add("APIs", s.apis.addFlags)
	g.add("Events in the cluster", s.addEventFlags)
	g.add("Autoscaling", s.autoscalers.addFlags)
	common, others := secureFlags(s.secure)
	g.add("HTTPS server, for callers that the cluster allows to read", common, s.addReplicaFlags)
	g.add("HTTP server without authentication", s.addListenFlags)
	g.add("Logging", s.log.AddFlags, s.addLogFlags)
	g.add("metrics-server's that weir has no use for", addUnusedFlags)
	g.refer("Kubernetes' own flags for a secured server (audit, authentication, authorization, TLS)", "weir help "+secureTopic, others)
}

// addAccountFlag adds the flag about the account that reads kubelets.
func (s *serverFlags) addAccountFlag(f *pflag.FlagSet) {
	f.StringVar(&s.plan.KubeletAccount, "kubelet-account", "", "`NAMESPACE/NAME` of the service account that reads kubelets: weir creates its tokens and shows kubelets no other (default: weir's own account, or the kubeconfig's credentials)")
}

// addReplicaFlags adds the flags about several replicas.
func (s *serverFlags) addReplicaFlags(f *pflag.FlagSet) {
	f.StringVar(&s.lease, "lease", "weir", "`NAME` of the Lease by which replicas choose a leader, whose numbers all of them serve; empty if there is only one replica. Needs POD_NAME, POD_NAMESPACE and POD_IP in the environment")
	f.StringVar(&s.plan.ReplicaTokenFile, "replica-token-file", "", "`FILE` of the token that other replicas are shown, of weir's account and for the audience "+peer.Audience+" (default, outside of pods: the kubeconfig's credentials)")
	f.BoolVar(&s.plan.SharedReads, "share-reads", false, "each node is read by one replica, which sends what it read to the others; replicas find each other by Leases. Needs what --lease needs")
}

// addEventFlags adds the flags about Events.
func (s *serverFlags) addEventFlags(f *pflag.FlagSet) {
	f.BoolVar(&s.plan.Events, "events", false, "keep the cluster's last Events in memory, at most 10,000 of the last hour; weir explain and the page show those on a pod, node or autoscaler to callers that may list Events")
	f.BoolVar(&s.plan.HPAEvents, "hpa-events", false, "write Events on HorizontalPodAutoscalers whose pods have no metrics, with the reasons, and name those autoscalers in explanations")
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
		return nil, needsCluster("--external-rules", "whose autoscalers use the metrics")
	}
	if p.Events && p.Cluster == nil {
		flag := "--events"
		if !s.given("events") {
			flag = "the option events of --sink=otlp"
		}
		return nil, needsCluster(flag, "whose Events it keeps")
	}
	if p.HPAEvents && p.Cluster == nil {
		return nil, needsCluster("--hpa-events", "whose autoscalers it watches")
	}
	if p.Autoscalers, err = s.autoscalers.compile(p.Cluster != nil); err != nil {
		return nil, err
	}
	if p.Agents, err = s.agents.compile(p.Cluster != nil, agentAddressTypes(p.Kubelets)); err != nil {
		return nil, err
	}
	if err := p.checkKubeletAccount(); err != nil {
		return nil, err
	}
	if err := p.secureWith(s.secure, s.given, inPod); err != nil || p.Secure == nil {
		p.SharedReads = false // there is no other replica
		if err == nil && inPod {
			err = cmp.Or(s.checkActing(p), p.checkTokens())
		}
		return p, err
	}
	p.Lease = podLease(s.lease, s.secure.SecureServing.BindPort, getenv)
	switch {
	case p.Lease == nil && s.lease != "" && s.given("lease"):
		return nil, cli.Hintf(cli.Usage(errors.New("--lease needs to know which pod this is")), setPod)
	case p.Lease == nil && p.SharedReads:
		return nil, cli.Hintf(cli.Usage(errors.New("--share-reads needs --lease, and to know which pod this is")), setPod)
	}
	if inPod {
		if err := cmp.Or(s.checkActing(p), p.checkTokens()); err != nil {
			return nil, err
		}
	}
	if !s.given("listen") {
		p.Listen = "" // it would not authenticate callers that reach the pod's loopback
	}
	return p, nil
}

const setPod = "Set POD_NAME, POD_NAMESPACE and POD_IP in the environment, from the pod's own fields."

// checkActing returns an error for flags with which only one replica may act, if this pod cannot
// take part in the election of that replica. With an empty --lease there is only one.
func (s *serverFlags) checkActing(p *plan) error {
	if p.Lease != nil || s.lease == "" {
		return nil
	}
	for _, acts := range []struct {
		flag  string
		given bool
	}{
		{"--autoscalers", p.Autoscalers.Act},
		{"--hpa-events", p.HPAEvents},
		{"--sink=remotewrite", s.sendsTo("remotewrite")},
		{"--sink=otlp", s.sendsTo("otlp")},
	} {
		if acts.given {
			return cli.Hintf(cli.Usage(fmt.Errorf("%s needs --lease and --secure-port, and to know which pod this is: else every replica would act", acts.flag)),
				setPod+" If there is never more than one replica, give --lease= instead.")
		}
	}
	return nil
}

// sendsTo reports whether a sink is named.
func (s *serverFlags) sendsTo(sink string) bool {
	return slices.ContainsFunc(s.sinks.Stages, func(s stageflag.Stage) bool { return s.Name == sink })
}

// checkKubeletAccount returns an error for a --kubelet-account that cannot be used.
func (p *plan) checkKubeletAccount() error {
	if p.KubeletAccount == "" {
		return nil
	}
	if p.Cluster == nil {
		return needsCluster("--kubelet-account", "whose API server creates the tokens")
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
	if p.Lease != nil && p.ReplicaTokenFile == "" {
		return cli.Hintf(cli.Usage(errors.New("--lease needs --replica-token-file: else the token of weir's account would be sent to the address in the Lease")),
			projected+" If there is never more than one replica, give --lease= instead.", peer.Audience, "--replica-token-file")
	}
	if p.Agents.Port != 0 && p.Agents.TokenFile == "" {
		return cli.Hintf(cli.Usage(errors.New("--agent-port needs --agent-token-file: else the token of weir's account would be sent to every node")),
			projected, nodeapi.Audience, "--agent-token-file")
	}
	shown := slices.ContainsFunc(p.Kubelets, func(k kubeletPlan) bool { return k.showsOwnToken() })
	if p.Autoscalers.Act && shown && p.KubeletAccount == "" {
		return cli.Hintf(cli.Usage(errors.New("--autoscalers needs --kubelet-account: else every node would see a token that may change scales")),
			"Give --kubelet-account=NAMESPACE/NAME with an account that may only get nodes/metrics and nodes/stats, as in deploy/kustomize.")
	}
	return nil
}

// needsCluster returns the error for a flag without a cluster. reason is a relative clause.
func needsCluster(flag, reason string) error {
	return cli.Hintf(cli.Usage(fmt.Errorf("%s needs a cluster, %s", flag, reason)),
		"Name it with --kubeconfig=FILE or --in-cluster, or leave %s out.", flag)
}

// newClient returns a client for the API server of the plan's cluster.
func newClient(p *plan) (*kubernetes.Clientset, error) {
	config, err := informer.RESTConfig(*p.Cluster)
	if err != nil {
		return nil, noCluster(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create API client: %w", err)
	}
	return client, nil
}

// noCluster explains why the API server cannot be used.
func noCluster(err error) error {
	return cli.Hintf(err, "Name a cluster with --kubeconfig=FILE, use --in-cluster in a pod of it, or give the source a list of targets.")
}
