package app

import (
	"errors"
	"slices"

	"github.com/spf13/pflag"
)

// counterpart is what has become of a flag of metrics-server's that has nothing
// to do with serving: those are api/server's, under their own names.
type counterpart struct {
	flag string
	fate fate
	// option is the option of --source=kubelet that says the same; empty if none
	// does.
	option string
	// means is what the flag does in weir, what to say in its place, or why
	// there is nothing to say: part of a sentence.
	means string
	// harmless are values that ask for what weir does anyway, so that a refused
	// flag is borne with.
	harmless []string
}

// fate is what weir does with a flag.
type fate string

const (
	kept    fate = "kept"    // the flag does in weir what it did
	idle    fate = "idle"    // it is taken, and there is nothing to do
	refused fate = "refused" // the error says what to use instead
)

// counterparts are metrics-server's flags, in the order of its --help. A test
// holds the list to metrics-server's, and docs/from-metrics-server.md to the
// list.
var counterparts = []counterpart{
	{flag: "kubeconfig", fate: kept, means: "API server, and credentials for it and for kubelets. A kubeconfig that does not verify the API server's certificate still has kubelets' verified: say `--kubelet-insecure-tls` too"},
	{flag: "metric-resolution", fate: kept, means: "time between two reads of a node, at least 1s. Left out it is 15s, and not 60s"},
	{flag: "version", fate: kept, means: "says which weir this is"},

	{flag: "kubelet-certificate-authority", fate: kept, option: "ca", means: "file of certificates that the kubelets' must lead to"},
	{flag: "kubelet-client-certificate", fate: kept, option: "client-cert", means: "our certificate for kubelets, read again when it changes"},
	{flag: "kubelet-client-key", fate: kept, option: "client-key", means: "its key"},
	{flag: "kubelet-insecure-tls", fate: kept, option: "insecure-tls", means: "any certificate will do; for tests"},
	{flag: "kubelet-port", fate: kept, option: "port", means: "port of kubelets. Left out it is the one in the node's status, else 10250, and not always 10250"},
	{flag: "kubelet-preferred-address-types", fate: kept, option: "address-types", means: "in order of preference. Left out it is InternalIP,ExternalIP,Hostname,InternalDNS,ExternalDNS, and not Hostname first"},
	{flag: "kubelet-request-timeout", fate: kept, option: "timeout", means: "of one read; it may be longer than the resolution"},
	{flag: "kubelet-use-node-status-port", fate: kept, option: "status-port", means: "the port in the node's status goes before `--kubelet-port`; `=false` has the status ignored"},
	{flag: "node-selector", fate: kept, option: "node-selector", means: "labels a node must have (`-l`); others have the reason NodeExcluded"},
	{flag: "deprecated-kubelet-completely-insecure", fate: refused, harmless: []string{"false"}, means: "use `--kubelet-insecure-tls`, which encrypts and authenticates us without verifying the kubelet; or, for kubelets that still have a read-only port, `--source=kubelet:http://:10255` in place of all `--kubelet-` flags"},

	{flag: "v", fate: kept, means: "verbosity: 1 is debug, more has the libraries tell more"},
	{flag: "logging-format", fate: kept, means: "text or json; `--log-format=console` or `json` in weir's words"},
	{flag: "log-flush-frequency", fate: idle, means: "each line is written at once"},
	{flag: "log-json-info-buffer-size", fate: refused, harmless: []string{"0"}, means: "leave it out: each line is written at once"},
	{flag: "log-json-split-stream", fate: refused, harmless: []string{"false"}, means: "leave it out: all lines go to standard error; tell them apart by their level"},
	{flag: "log-text-info-buffer-size", fate: refused, harmless: []string{"0"}, means: "leave it out: each line is written at once"},
	{flag: "log-text-split-stream", fate: refused, harmless: []string{"false"}, means: "leave it out: all lines go to standard error; tell them apart by their level"},
	{flag: "vmodule", fate: refused, harmless: []string{""}, means: "use `-v`, which is for all files"},

	{flag: "advertise-address", fate: refused, harmless: []string{""}, means: "leave it out: the APIService and its Service say where weir is reached; `--bind-address` says where it listens"},
	{flag: "cors-allowed-origins", fate: refused, harmless: []string{""}, means: "leave it out: no browser reads these APIs but through the API server, whose flag it is too"},
	{flag: "emulated-version", fate: refused, harmless: []string{""}, means: "leave it out: weir serves the same APIs whatever the version of Kubernetes"},
	{flag: "emulation-forward-compatible", fate: refused, harmless: []string{"false"}, means: "leave it out: nothing is emulated"},
	{flag: "external-hostname", fate: refused, harmless: []string{""}, means: "leave it out: no answer names the host"},
	{flag: "feature-gates", fate: refused, harmless: []string{""}, means: "leave it out: weir has no feature gates"},
	{flag: "goaway-chance", fate: refused, harmless: []string{"0"}, means: "leave it out: the API server in front spreads connections"},
	{flag: "livez-grace-period", fate: idle, means: "/livez holds from the beginning"},
	{flag: "min-compatibility-version", fate: refused, harmless: []string{""}, means: "leave it out: nothing is emulated"},
	{flag: "min-request-timeout", fate: idle, means: "it is for watches, and there are none"},
	{flag: "runtime-config-emulation-forward-compatible", fate: refused, harmless: []string{"false"}, means: "leave it out: use `--apis` to choose what is served"},
	{flag: "shutdown-send-retry-after", fate: refused, harmless: []string{"false"}, means: "use `--shutdown-delay-duration`, in which weir serves on while its /readyz fails"},
	{flag: "shutdown-watch-termination-grace-period", fate: idle, means: "it is for watches, and there are none"},
	{flag: "storage-initialization-timeout", fate: idle, means: "there is no storage to wait for"},
	{flag: "strict-transport-security-directives", fate: refused, harmless: []string{""}, means: "leave it out: it is for browsers"},
}

// switches are the flags of counterparts that need no value.
var switches = []string{
	"deprecated-kubelet-completely-insecure", "emulation-forward-compatible", "log-json-split-stream",
	"log-text-split-stream", "runtime-config-emulation-forward-compatible", "shutdown-send-retry-after",
}

// addOthers adds the flags that weir takes only to refuse them, or to do nothing.
// They are not in the help.
func addOthers(f *pflag.FlagSet) {
	for i := range counterparts {
		c := &counterparts[i]
		if c.fate == kept {
			continue
		}
		flag := f.VarPF(other{c}, c.flag, "", c.means)
		flag.Hidden = true
		if slices.Contains(switches, c.flag) {
			flag.NoOptDefVal = "true"
		}
	}
}

// other is the value of such a flag.
type other struct{ *counterpart }

// Set refuses a value, unless it asks for nothing.
func (o other) Set(value string) error {
	if o.fate == idle || slices.Contains(o.harmless, value) {
		return nil
	}
	return errors.New("of metrics-server's flags weir does not have this one; " + o.means)
}

// String returns the default, which is nothing.
func (o other) String() string { return "" }

// Type is the placeholder in a help text that does not show it.
func (o other) Type() string { return string(o.fate) }
