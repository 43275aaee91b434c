package app

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/client/cli"
)

// secureTopic is the page of help with the flags that weir server's own help
// leaves out.
const secureTopic = "secure-serving"

// everyday are the flags of the secured server that one may well need, in
// weir's words. All others are as Kubernetes' own servers have them, and so many
// that nobody would find these among them.
var everyday = map[string]string{
	"secure-port":                    "port to serve HTTPS on; 0 for none. Outside of pods only if given",
	"bind-address":                   "`ADDRESS` to serve it on; 0.0.0.0 and :: are all there are",
	"tls-cert-file":                  "`FILE` of the certificate to serve with, and of those that signed it; taken up again when it changes. Without one weir signs its own",
	"tls-private-key-file":           "`FILE` of its key",
	"cert-dir":                       "`DIR` to keep the certificate in that weir signs itself; in memory if empty",
	"tls-min-version":                "oldest `VERSION` to speak: VersionTLS12 or VersionTLS13",
	"request-timeout":                "how long a request may take",
	"max-requests-inflight":          "how many reading requests are answered at the same time; further ones get 429",
	"max-mutating-requests-inflight": "like --max-requests-inflight, for requests that do not read",
	"shutdown-delay-duration":        "how long to go on serving, with /readyz failing, when told to end",
}

// secureFlags parts the flags of the secured server: those of every day, and
// the others.
func secureFlags(o *server.Options) (common, others func(*pflag.FlagSet)) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(all)
	part := func(wanted bool) func(*pflag.FlagSet) {
		return func(to *pflag.FlagSet) {
			all.VisitAll(func(f *pflag.Flag) {
				words, is := everyday[f.Name]
				if is != wanted {
					return
				}
				if is {
					f.Usage = words
				}
				to.AddFlag(f)
			})
		}
	}
	return part(true), part(false)
}

// secureWith has p serve what o says, if it is to be served: in a pod of the cluster,
// and elsewhere where the port is given.
func (p *plan) secureWith(o *server.Options, given func(flag string) bool, inPod bool) error {
	if !o.Enabled() || !given("secure-port") && (!inPod || p.Cluster == nil) {
		return nil
	}
	if err := o.Validate(); err != nil {
		return cli.Usage(err)
	}
	if p.Cluster == nil {
		return cli.Hintf(cli.Usage(errors.New("--secure-port needs a cluster, whose word decides who may read")),
			"Name it with --kubeconfig=FILE or --in-cluster, or leave --secure-port out: --listen serves without asking.")
	}
	if p.Cluster.Master != "" && (o.Authentication.RemoteKubeConfigFile == "" || o.Authorization.RemoteKubeConfigFile == "") {
		return cli.Hintf(cli.Usage(errors.New("--master is not for asking the API server who may read")),
			"Name the API server in --kubeconfig=FILE, or give --authentication-kubeconfig=FILE and --authorization-kubeconfig=FILE too.")
	}
	p.Secure = o
	return nil
}

// newSecureTopic returns the page with the others.
func newSecureTopic() *cobra.Command {
	_, others := secureFlags(server.NewOptions())
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	others(set)
	return &cobra.Command{
		Use:   secureTopic,
		Short: "Flags of weir server that are Kubernetes' own",
		Long: "Flags of weir server that it has in common with Kubernetes' own servers and with\n" +
			"metrics-server, in Kubernetes' words. None is needed in a pod of the cluster.\n\n" +
			set.FlagUsagesWrapped(helpWidth),
	}
}
