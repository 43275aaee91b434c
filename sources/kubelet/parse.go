package kubelet

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/internal/humanize"
)

// option is one option of --source=kubelet:[CONFIG][?OPTIONS].
type option struct {
	name, help string
	set        func(o *Options, value string) error
}

// options lists the options by name.
var options = []option{
	{"address-types", "types of node addresses to use, in order of preference (default InternalIP,ExternalIP,Hostname,...)", func(o *Options, v string) error { o.AddressTypes = split(v, ","); return nil }},
	{"ca", "FILE of CA certificates that verify kubelets", func(o *Options, v string) error { o.CAFile = v; return nil }},
	{"client-cert", "FILE, read again when it changes", func(o *Options, v string) error { o.CertFile = v; return nil }},
	{"client-key", "FILE, read again when it changes", func(o *Options, v string) error { o.KeyFile = v; return nil }},
	{"endpoint", "resource (default), summary or cadvisor", func(o *Options, v string) error { o.Endpoint = Endpoint(v); return nil }},
	{"gzip", "ask for compressed answers: a fifth of the bytes, for more CPU on both sides", func(o *Options, v string) (err error) { o.Gzip, err = boolean(v); return }},
	{"insecure-tls", "accept any certificate; for tests", func(o *Options, v string) (err error) { o.Insecure, err = boolean(v); return }},
	{"max-bytes", "how many bytes one unpacked answer may have (default: by the node's pods, at most 64 MiB)", func(o *Options, v string) (err error) { o.MaxBytes, err = strconv.ParseInt(v, 10, 64); return }},
	{"max-samples", "how many samples one read may have; more are dropped (default: by the node's pods, at most 50000)", func(o *Options, v string) (err error) { o.MaxSamples, err = strconv.Atoi(v); return }},
	{"node-selector", "labels a node must have, as in kubectl -l", func(o *Options, v string) (err error) { o.Selector, err = labels.Parse(v); return }},
	{"port", "port of every kubelet (default: the one in the node's status, or 10250)", func(o *Options, v string) (err error) { o.Port, err = strconv.Atoi(v); return }},
	{"scheme", "https (default) or http", func(o *Options, v string) error { o.Scheme = v; return nil }},
	{"status-port", "prefer the port in the node's status to port", func(o *Options, v string) (err error) { o.StatusPort, err = boolean(v); return }},
	{"targets", "HOST:PORT, NAME=HOST:PORT, FIRST-LAST:PORT or @FILE, separated by commas, in place of a cluster's nodes", func(o *Options, v string) error { o.Targets = append(o.Targets, split(v, ",;")...); return nil }},
	{"timeout", "time one read may take (default 10s)", func(o *Options, v string) (err error) { o.Timeout, err = time.ParseDuration(v); return }},
	{"token-file", "FILE with a bearer token, read again when it changes", func(o *Options, v string) error { o.TokenFile = v; return nil }},
}

// OptionsHelp describes the options of ParseOptions, one on each line.
func OptionsHelp() string { return optionsHelp(options) }

// CAdvisorHelp describes the options of ParseCAdvisor, one on each line.
func CAdvisorHelp() string { return optionsHelp(cadvisorOptions()) }

func optionsHelp(all []option) string {
	var lines []string
	for _, o := range all {
		lines = append(lines, fmt.Sprintf("  %-21s %s", o.name, o.help))
	}
	return strings.Join(lines, "\n")
}

// cadvisorOptions returns the options of --source=cadvisor:[CONFIG][?OPTIONS]: those of a kubelet
// that are not about kubelets alone.
func cadvisorOptions() []option {
	other := map[string]string{
		"ca": "FILE of CA certificates that verify them", "port": "port of every cAdvisor (default 8080)", "scheme": "http (default) or https",
	}
	all := slices.DeleteFunc(slices.Clone(options), func(o option) bool { return o.name == "endpoint" || o.name == "status-port" })
	for i := range all {
		if help, ok := other[all[i].name]; ok {
			all[i].help = help
		}
	}
	return all
}

// ParseOptions parses the text after "--source=kubelet:". config is empty, "SCHEME://" for a
// scheme, "SCHEME://:PORT" for a port on every node, or "SCHEME://HOST[:PORT]" for a single
// kubelet. query has the options after the question mark. The result has its defaults and is
// checked, but no file is opened.
func ParseOptions(config string, query url.Values) (Options, error) {
	return parseOptions("kubelet", options, Options{}, config, query)
}

// ParseCAdvisor parses the text after "--source=cadvisor:", which has the form of ParseOptions.
func ParseCAdvisor(config string, query url.Values) (Options, error) {
	return parseOptions("cadvisor", cadvisorOptions(), Options{Endpoint: Standalone}, config, query)
}

// parseOptions parses the text after the name of a source that has the given options.
func parseOptions(source string, options []option, o Options, config string, query url.Values) (Options, error) {
	if err := o.config(source, config); err != nil {
		return Options{}, err
	}
	for name, values := range query {
		i := slices.IndexFunc(options, func(o option) bool { return o.name == name })
		if i < 0 {
			var names []string
			for _, o := range options {
				names = append(names, o.name)
			}
			return Options{}, fmt.Errorf("%s has no option %q; the options are %s", source, name, strings.Join(names, ", "))
		}
		if len(values) > 1 && name != "targets" {
			return Options{}, fmt.Errorf("option %s is given %d times; give it once", name, len(values))
		}
		for _, v := range values {
			if err := options[i].set(&o, v); err != nil {
				return Options{}, fmt.Errorf("option %s=%s: %w", name, v, err)
			}
		}
	}
	if source == "kubelet" && o.Endpoint == Standalone {
		return Options{}, errors.New("endpoint \"standalone\" is no kubelet's; read it with --source=cadvisor: instead")
	}
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return Options{}, err
	}
	for _, entry := range o.Targets {
		if strings.HasPrefix(entry, "@") {
			continue
		}
		if _, err := parseTarget(entry, o.port()); err != nil {
			return Options{}, err
		}
	}
	return o, nil
}

// config parses the part between the source's name and the question mark.
func (o *Options) config(source, config string) error {
	if config == "" {
		return nil
	}
	u, err := url.Parse(config)
	if err != nil || u.Scheme == "" || u.Opaque != "" || strings.Trim(u.Path, "/") != "" || u.User != nil || u.RawQuery != "" {
		example := "https://:10250"
		if source == "cadvisor" {
			example = "http://10.0.0.1:8080"
		}
		return fmt.Errorf("%s:%s is not understood; write %[1]s:SCHEME://[HOST][:PORT], for example %[1]s:%[3]s, or nothing", source, humanize.URL(config), example)
	}
	o.Scheme = u.Scheme
	if p := u.Port(); p != "" {
		if o.Port, err = strconv.Atoi(p); err != nil {
			return fmt.Errorf("%s:%s: parse port: %w", source, humanize.URL(config), err)
		}
	}
	if u.Hostname() != "" {
		o.Targets = append(o.Targets, u.Host)
	}
	return nil
}

// port returns the port for targets that have none of their own.
func (o *Options) port() int {
	if o.Port != 0 {
		return o.Port
	}
	return DefaultPort
}

// split splits s at any of the separators and omits empty parts.
func split(s, separators string) []string {
	parts := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(separators, r) })
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return slices.DeleteFunc(parts, func(p string) bool { return p == "" })
}

// boolean parses a switch; "?insecure-tls" without a value switches it on.
func boolean(v string) (bool, error) {
	if v == "" {
		return true, nil
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, errors.New("is neither true nor false")
	}
	return b, nil
}
