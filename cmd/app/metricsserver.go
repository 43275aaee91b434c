package app

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/flags/stageflag"
	"github.com/weir-metrics/weir/sources/kubelet"
)

// metricsServerFlag describes what weir does with a flag of metrics-server. The flags of the HTTPS
// server are not here: api/server has them under the same names.
type metricsServerFlag struct {
	flag string
	fate fate
	// option is the option of --source=kubelet with the same meaning, or empty if there is none.
	option string
	// means is part of a sentence: the effect of the flag in weir, what to use instead, or why weir
	// does not need it.
	means string
	// harmless are values that ask for what weir does anyway. A refused flag is accepted with one
	// of them.
	harmless []string
}

// fate describes what weir does with a flag.
type fate string

const (
	kept    fate = "kept"    // the flag does in weir what it does in metrics-server
	idle    fate = "idle"    // the flag is accepted and has no effect
	refused fate = "refused" // weir ends with an error that names what to use instead
)

// metricsServerFlags lists metrics-server's flags in the order of its --help. Tests compare
// it with metrics-server's own list and with docs/from-metrics-server.md.
var metricsServerFlags = []metricsServerFlag{
	{flag: "kubeconfig", fate: kept, means: "how to reach the API server, and the credentials for it and for kubelets. If the kubeconfig does not verify the API server's certificate, weir still verifies kubelets' certificates: to turn that off too, use `--kubelet-insecure-tls`"},
	{flag: "metric-resolution", fate: kept, means: "time between two reads of a node, at least 1s. The default is 15s, not 60s"},
	{flag: "version", fate: kept, means: "prints weir's version"},

	{flag: "kubelet-certificate-authority", fate: kept, option: "ca", means: "file with the CA certificates that sign the kubelets' certificates"},
	{flag: "kubelet-client-certificate", fate: kept, option: "client-cert", means: "weir's client certificate for kubelets, read again when it changes"},
	{flag: "kubelet-client-key", fate: kept, option: "client-key", means: "the key of that certificate"},
	{flag: "kubelet-insecure-tls", fate: kept, option: "insecure-tls", means: "weir accepts any certificate of a kubelet; for tests"},
	{flag: "kubelet-port", fate: kept, option: "port", means: "port of kubelets. The default is the port in the node's status, or 10250 if the status has none; metrics-server's default is always 10250"},
	{flag: "kubelet-preferred-address-types", fate: kept, option: "address-types", means: "types in order of preference. The default is InternalIP,ExternalIP,Hostname,InternalDNS,ExternalDNS; metrics-server's begins with Hostname"},
	{flag: "kubelet-request-timeout", fate: kept, option: "timeout", means: "time limit of one read; it may be longer than the resolution"},
	{flag: "kubelet-use-node-status-port", fate: kept, option: "status-port", means: "the port in the node's status has priority over `--kubelet-port`; with `=false` weir ignores the status"},
	{flag: "node-selector", fate: kept, option: "node-selector", means: "labels that a node must have (`-l`); other nodes have the reason NodeExcluded"},
	{flag: "deprecated-kubelet-completely-insecure", fate: refused, harmless: []string{"false"}, means: "use `--kubelet-insecure-tls`, which encrypts and authenticates weir but does not verify the kubelet. If kubelets still have a read-only port, use `--source=kubelet:http://:10255` in place of all `--kubelet-` flags"},

	{flag: "v", fate: kept, means: "verbosity: 1 is debug; higher numbers also show more of the libraries' messages"},
	{flag: "logging-format", fate: kept, means: "text or json; weir's own flag for it is `--log-format=console` or `--log-format=json`"},
	{flag: "log-flush-frequency", fate: idle, means: "weir writes each line at once"},
	{flag: "log-json-info-buffer-size", fate: refused, harmless: []string{"0"}, means: "leave it out: weir writes each line at once"},
	{flag: "log-json-split-stream", fate: refused, harmless: []string{"false"}, means: "leave it out: all lines go to standard error, and each has its level"},
	{flag: "log-text-info-buffer-size", fate: refused, harmless: []string{"0"}, means: "leave it out: weir writes each line at once"},
	{flag: "log-text-split-stream", fate: refused, harmless: []string{"false"}, means: "leave it out: all lines go to standard error, and each has its level"},
	{flag: "vmodule", fate: refused, harmless: []string{""}, means: "use `-v`, which applies to all files"},

	{flag: "advertise-address", fate: refused, harmless: []string{""}, means: "leave it out: the APIService and its Service define how weir is reached; `--bind-address` sets where it listens"},
	{flag: "cors-allowed-origins", fate: refused, harmless: []string{""}, means: "leave it out: browsers reach these APIs only through the API server, which has this flag too"},
	{flag: "emulated-version", fate: refused, harmless: []string{""}, means: "leave it out: weir serves the same APIs whatever the version of Kubernetes"},
	{flag: "emulation-forward-compatible", fate: refused, harmless: []string{"false"}, means: "leave it out: weir emulates nothing"},
	{flag: "external-hostname", fate: refused, harmless: []string{""}, means: "leave it out: weir's answers do not contain a host name"},
	{flag: "feature-gates", fate: refused, harmless: []string{""}, means: "leave it out: weir has no feature gates"},
	{flag: "goaway-chance", fate: refused, harmless: []string{"0"}, means: "leave it out: the API server spreads the connections"},
	{flag: "livez-grace-period", fate: idle, means: "/livez succeeds from the start"},
	{flag: "min-compatibility-version", fate: refused, harmless: []string{""}, means: "leave it out: weir emulates nothing"},
	{flag: "min-request-timeout", fate: idle, means: "it is for watches, and weir has none"},
	{flag: "runtime-config-emulation-forward-compatible", fate: refused, harmless: []string{"false"}, means: "leave it out: use `--apis` to choose which APIs weir serves"},
	{flag: "shutdown-send-retry-after", fate: refused, harmless: []string{"false"}, means: "use `--shutdown-delay-duration`: in that time weir still serves, but its /readyz fails"},
	{flag: "shutdown-watch-termination-grace-period", fate: idle, means: "it is for watches, and weir has none"},
	{flag: "storage-initialization-timeout", fate: idle, means: "weir has no storage to wait for"},
	{flag: "strict-transport-security-directives", fate: refused, harmless: []string{""}, means: "leave it out: it is for browsers"},
}

// addUnusedFlags adds the flags that weir refuses or ignores. They are not in the help. A refused
// flag accepts only values that ask for what weir does anyway.
func addUnusedFlags(f *pflag.FlagSet) {
	for i := range metricsServerFlags {
		c := &metricsServerFlags[i]
		if c.fate == kept {
			continue
		}
		f.Func(c.flag, c.means, func(value string) error {
			if c.fate == idle || slices.Contains(c.harmless, value) {
				return nil
			}
			return errors.New("weir does not have this flag of metrics-server; " + c.means)
		})
		flag := f.Lookup(c.flag)
		flag.Hidden = true
		if slices.Contains(c.harmless, "false") {
			flag.NoOptDefVal = "true" // the flag needs no value
		}
	}
}

// compatFlags holds the flags of metrics-server, so that a Deployment of it needs another command
// and no other arguments. Without --source they define one: the kubelets of the cluster.
type compatFlags struct {
	given func(flag string) bool // whether the flag is on the command line

	ca, cert, key string
	insecure      bool
	port          int
	statusPort    bool
	addressTypes  []string
	timeout       time.Duration
	selector      string

	logFormat string
}

// addKubeletFlags adds the flags that describe how kubelets are read.
func (flags *compatFlags) addKubeletFlags(f *pflag.FlagSet) {
	f.StringVar(&flags.ca, "kubelet-certificate-authority", "", "`FILE` of CA certificates that verify kubelets (default: the cluster's)")
	f.StringVar(&flags.cert, "kubelet-client-certificate", "", "`FILE` with weir's client certificate for kubelets (default: a pod's token, or the kubeconfig's)")
	f.StringVar(&flags.key, "kubelet-client-key", "", "`FILE` with its key")
	f.BoolVar(&flags.insecure, "kubelet-insecure-tls", false, "accept any certificate of a kubelet; for tests")
	f.IntVar(&flags.port, "kubelet-port", kubelet.DefaultPort, "port of every kubelet, unless its node's status names one")
	f.StringSliceVar(&flags.addressTypes, "kubelet-preferred-address-types", kubelet.DefaultAddressTypes(), "types of node addresses to use, in order of preference")
	f.DurationVar(&flags.timeout, "kubelet-request-timeout", kubelet.DefaultTimeout, "time one read may take")
	f.BoolVar(&flags.statusPort, "kubelet-use-node-status-port", false, "prefer the port in the node's status to --kubelet-port; the default unless that is given")
	f.StringVarP(&flags.selector, "node-selector", "l", "", "labels a node must have to be read, such as kubernetes.io/os=linux")
}

// addLogFlags adds metrics-server's flags for logging that differ from weir's.
func (flags *compatFlags) addLogFlags(f *pflag.FlagSet) {
	f.StringVar(&flags.logFormat, "logging-format", "", "text or json: --log-format, by its name in Kubernetes' components")
}

// complete fills in what c does not set: what to read, and how to log.
func (flags *compatFlags) complete(c *config, inPod bool) error {
	if err := flags.completeLog(c); err != nil {
		return err
	}
	given := flags.mentioned()
	if len(c.sources.Stages) > 0 {
		return besideSource(given)
	}
	if len(given) == 0 && !c.cluster.Given() && !inPod {
		return noSource()
	}
	options, err := flags.options()
	if err != nil {
		return cli.Usage(err)
	}
	c.sources.Stages = []stageflag.Stage{{Name: "kubelet", Options: options}}
	return nil
}

// noSource is the error if no flag describes what to read.
func noSource() error {
	return cli.Hintf(errors.New("no source: nothing defines where samples come from"),
		"For the nodes of a cluster:   weir server --kubeconfig=FILE (in a pod of it: weir server)\n"+
			"For kubelets without one:     weir server --source='kubelet:?targets=HOST:PORT,...'\n"+
			"For this machine alone:       weir run")
}

// mentioned returns the given flags that are options of the source.
func (flags *compatFlags) mentioned() []*metricsServerFlag {
	var given []*metricsServerFlag
	for i := range metricsServerFlags {
		if c := &metricsServerFlags[i]; c.option != "" && flags.given(c.flag) {
			given = append(given, c)
		}
	}
	return given
}

// besideSource returns an error for options of the cluster's source if --source names another one.
func besideSource(given []*metricsServerFlag) error {
	if len(given) == 0 {
		return nil
	}
	var names, options []string
	for _, c := range given {
		names = append(names, "--"+c.flag)
		options = append(options, c.option+"=...")
	}
	return cli.Hintf(fmt.Errorf("%s and --source exclude each other: the one defines how to read the cluster's kubelets, the other what to read instead", strings.Join(names, ", ")),
		"Drop --source, or write options of the kubelet source instead: --source='kubelet:?%s'", strings.Join(options, "&"))
}

// options returns the flags as options of --source=kubelet.
func (flags *compatFlags) options() (url.Values, error) {
	switch {
	case (flags.cert == "") != (flags.key == ""):
		return nil, errors.New("--kubelet-client-certificate and --kubelet-client-key go together: give both or neither")
	case flags.insecure && flags.ca != "":
		return nil, errors.New("--kubelet-insecure-tls accepts any certificate, so --kubelet-certificate-authority has no use: drop one of the two")
	case flags.timeout <= 0:
		return nil, fmt.Errorf("--kubelet-request-timeout cannot be %v: it must be positive", flags.timeout)
	case flags.port < 1 || flags.port > 65535:
		return nil, fmt.Errorf("--kubelet-port cannot be %d: ports go from 1 to 65535", flags.port)
	}
	if _, err := labels.Parse(flags.selector); err != nil {
		return nil, fmt.Errorf("read --node-selector %q: %w", flags.selector, err)
	}
	options := url.Values{}
	set := func(option, value string) {
		if value != "" {
			options.Set(option, value)
		}
	}
	set("ca", flags.ca)
	set("client-cert", flags.cert)
	set("client-key", flags.key)
	set("node-selector", flags.selector)
	if flags.insecure {
		set("insecure-tls", "true")
	}
	if flags.given("kubelet-request-timeout") {
		set("timeout", flags.timeout.String())
	}
	if flags.given("kubelet-preferred-address-types") {
		set("address-types", strings.Join(flags.addressTypes, ","))
	}
	// Without a port the source uses the port in the node's status, which is right for all
	// clusters. metrics-server's default is not.
	if flags.given("kubelet-port") || flags.given("kubelet-use-node-status-port") && !flags.statusPort {
		set("port", strconv.Itoa(flags.port))
		if flags.statusPort {
			set("status-port", "true")
		}
	}
	return options, nil
}

// completeLog copies --logging-format to --log-format.
func (flags *compatFlags) completeLog(c *config) error {
	if flags.logFormat == "" {
		return nil
	}
	if err := cli.OneOf("--logging-format", flags.logFormat, "text", "json"); err != nil {
		return err
	}
	if flags.given("log-format") {
		return cli.Usage(errors.New("--logging-format and --log-format mean the same: set one of the two"))
	}
	c.log.Format = map[string]string{"text": "console", "json": "json"}[flags.logFormat]
	return nil
}

// serviceAccountToken is the path of the service account's token in a pod.
const serviceAccountToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// inPod reports whether this process runs in a pod that has credentials for its cluster's API
// server.
func inPod(getenv func(string) string, exists func(path string) bool) bool {
	return getenv("KUBERNETES_SERVICE_HOST") != "" && exists(serviceAccountToken)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
