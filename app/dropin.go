package app

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/app/stageflag"
	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/sources/kubelet"
)

// dropIn is what metrics-server's flags say, so that a Deployment of it needs
// another command and no other arguments. Where no --source is given they make
// one: the kubelets of the cluster.
type dropIn struct {
	given func(flag string) bool // on the command line

	ca, cert, key string
	insecure      bool
	port          int
	statusPort    bool
	addressTypes  []string
	timeout       time.Duration
	selector      string

	logFormat string
}

// addKubeletFlags adds the flags that say how kubelets are read.
func (d *dropIn) addKubeletFlags(f *pflag.FlagSet) {
	f.StringVar(&d.ca, "kubelet-certificate-authority", "", "`FILE` of certificates that the kubelets' must lead to (default: the cluster's)")
	f.StringVar(&d.cert, "kubelet-client-certificate", "", "`FILE` with our certificate for kubelets (default: a pod's token, or the kubeconfig's)")
	f.StringVar(&d.key, "kubelet-client-key", "", "`FILE` with its key")
	f.BoolVar(&d.insecure, "kubelet-insecure-tls", false, "accept any certificate of a kubelet; for tests")
	f.IntVar(&d.port, "kubelet-port", kubelet.DefaultPort, "of every kubelet, unless its node's status names one")
	f.StringSliceVar(&d.addressTypes, "kubelet-preferred-address-types", kubelet.DefaultAddressTypes(), "of nodes, in order of preference")
	f.DurationVar(&d.timeout, "kubelet-request-timeout", kubelet.DefaultTimeout, "of one read")
	f.BoolVar(&d.statusPort, "kubelet-use-node-status-port", false, "prefer the port in the node's status to --kubelet-port; the default unless that is given")
	f.StringVarP(&d.selector, "node-selector", "l", "", "labels a node must have to be read, such as kubernetes.io/os=linux")
}

// addLogFlags adds metrics-server's flags for logging that differ from weir's.
func (d *dropIn) addLogFlags(f *pflag.FlagSet) {
	f.StringVar(&d.logFormat, "logging-format", "", "text or json: --log-format by the name it has in Kubernetes' components")
}

// complete fills in what c leaves open: what to read, and how to log.
func (d *dropIn) complete(c *config, inPod bool) error {
	if err := d.completeLog(c); err != nil {
		return err
	}
	given := d.mentioned()
	if len(c.sources.Stages) > 0 {
		return besideSource(given)
	}
	if len(given) == 0 && !c.namesCluster() && !inPod {
		return noSource()
	}
	options, err := d.options()
	if err != nil {
		return cli.Usage(err)
	}
	c.sources.Stages = []stageflag.Stage{{Name: "kubelet", Options: options}}
	return nil
}

// noSource says what to write where nothing tells what to read.
func noSource() error {
	return cli.Hintf(errors.New("no source: nothing says where samples come from"),
		"For the nodes of a cluster:   weir server --kubeconfig=FILE (in a pod of it: weir server)\n"+
			"For kubelets without one:     weir server --source='kubelet:?targets=HOST:PORT,...'\n"+
			"For this machine alone:       weir run")
}

// mentioned returns the counterparts of the source's options that were given.
func (d *dropIn) mentioned() []*counterpart {
	var given []*counterpart
	for i := range counterparts {
		if c := &counterparts[i]; c.option != "" && d.given(c.flag) {
			given = append(given, c)
		}
	}
	return given
}

// besideSource refuses flags for the source that they make beside one that is named.
func besideSource(given []*counterpart) error {
	if len(given) == 0 {
		return nil
	}
	var flags, options []string
	for _, c := range given {
		flags = append(flags, "--"+c.flag)
		options = append(options, c.option+"=...")
	}
	return cli.Hintf(fmt.Errorf("%s and --source exclude each other: the one says how to read the cluster's kubelets, the other what to read instead", strings.Join(flags, ", ")),
		"Drop --source, or write options of the kubelet source instead: --source='kubelet:?%s'", strings.Join(options, "&"))
}

// options returns the flags as options of --source=kubelet.
func (d *dropIn) options() (url.Values, error) {
	switch {
	case (d.cert == "") != (d.key == ""):
		return nil, errors.New("--kubelet-client-certificate and --kubelet-client-key go together: give both or neither")
	case d.insecure && d.ca != "":
		return nil, errors.New("--kubelet-insecure-tls accepts any certificate, so --kubelet-certificate-authority has no use: drop one of the two")
	case d.timeout <= 0:
		return nil, fmt.Errorf("--kubelet-request-timeout cannot be %v: it must be positive", d.timeout)
	case d.port < 1 || d.port > 65535:
		return nil, fmt.Errorf("--kubelet-port cannot be %d: ports go from 1 to 65535", d.port)
	}
	if _, err := labels.Parse(d.selector); err != nil {
		return nil, fmt.Errorf("read --node-selector %q: %w", d.selector, err)
	}
	options := url.Values{}
	set := func(option, value string) {
		if value != "" {
			options.Set(option, value)
		}
	}
	set("ca", d.ca)
	set("client-cert", d.cert)
	set("client-key", d.key)
	set("node-selector", d.selector)
	if d.insecure {
		set("insecure-tls", "true")
	}
	if d.given("kubelet-request-timeout") {
		set("timeout", d.timeout.String())
	}
	if d.given("kubelet-preferred-address-types") {
		set("address-types", strings.Join(d.addressTypes, ","))
	}
	// Without a port the source goes by the node's status, which is right for
	// all clusters; metrics-server's default is not.
	if d.given("kubelet-port") || d.given("kubelet-use-node-status-port") && !d.statusPort {
		set("port", strconv.Itoa(d.port))
		if d.statusPort {
			set("status-port", "true")
		}
	}
	return options, nil
}

// completeLog takes over --logging-format.
func (d *dropIn) completeLog(c *config) error {
	if d.logFormat == "" {
		return nil
	}
	if err := cli.OneOf("--logging-format", d.logFormat, "text", "json"); err != nil {
		return err
	}
	if d.given("log-format") {
		return cli.Usage(errors.New("--logging-format and --log-format say the same: give one of the two"))
	}
	c.log.Format = map[string]string{"text": "console", "json": "json"}[d.logFormat]
	return nil
}

// serviceAccountToken is where a pod finds the token of its service account.
const serviceAccountToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// inPod reports whether this process runs in a pod that may ask its cluster's
// API server.
func inPod(getenv func(string) string, exists func(path string) bool) bool {
	return getenv("KUBERNETES_SERVICE_HOST") != "" && exists(serviceAccountToken)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
