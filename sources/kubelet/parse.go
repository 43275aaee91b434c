package kubelet

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/internal/options"
)

// Table has the options of --source=kubelet:[CONFIG][?OPTIONS], by name.
var Table = options.Table[Options]{
	{Name: "address-types", Help: "types of node addresses to use, in order of preference (default InternalIP,ExternalIP,Hostname,...)", Set: func(o *Options, v string) error { o.AddressTypes = split(v, ","); return nil }},
	options.Field("ca", "FILE of CA certificates that verify kubelets", func(o *Options) *string { return &o.CAFile }, options.Text),
	options.Field("client-cert", "FILE, read again when it changes", func(o *Options) *string { return &o.CertFile }, options.Text),
	options.Field("client-key", "FILE, read again when it changes", func(o *Options) *string { return &o.KeyFile }, options.Text),
	options.Field("endpoint", "resource (default), summary or cadvisor", func(o *Options) *Endpoint { return &o.Endpoint }, options.Text),
	options.Field("gzip", "ask for compressed answers: a fifth of the bytes, for more CPU on both sides", func(o *Options) *bool { return &o.Gzip }, options.Bool),
	options.Field("insecure-tls", "accept any certificate; for tests", func(o *Options) *bool { return &o.Insecure }, options.Bool),
	{Name: "max-bytes", Help: "how many bytes one unpacked answer may have (default: by the node's pods, at most 64 MiB)", Set: func(o *Options, v string) (err error) { o.MaxBytes, err = strconv.ParseInt(v, 10, 64); return }},
	options.Field("max-samples", "how many samples one read may have; more are dropped (default: by the node's pods, at most 50000)", func(o *Options) *int { return &o.MaxSamples }, strconv.Atoi),
	{Name: "node-selector", Help: "labels a node must have, as in kubectl -l", Set: func(o *Options, v string) (err error) { o.Selector, err = labels.Parse(v); return }},
	options.Field("port", "port of every kubelet (default: the one in the node's status, or 10250)", func(o *Options) *int { return &o.Port }, strconv.Atoi),
	options.Field("resolution", "time between two reads (default: --metric-resolution)", func(o *Options) *time.Duration { return &o.Resolution }, options.AtLeast(time.Second)),
	options.Field("scheme", "https (default) or http", func(o *Options) *string { return &o.Scheme }, options.Text),
	options.Field("status-port", "prefer the port in the node's status to port", func(o *Options) *bool { return &o.StatusPort }, options.Bool),
	{Name: "targets", Help: "HOST:PORT, NAME=HOST:PORT, FIRST-LAST:PORT or @FILE, separated by commas, in place of a cluster's nodes", SetAll: func(o *Options, values []string) error {
		for _, v := range values {
			o.Targets = append(o.Targets, split(v, ",;")...)
		}
		return nil
	}},
	options.Field("timeout", "time one read may take (default 10s)", func(o *Options) *time.Duration { return &o.Timeout }, time.ParseDuration),
	options.Field("token-file", "FILE with a bearer token, read again when it changes", func(o *Options) *string { return &o.TokenFile }, options.Text),
}

// CAdvisorTable returns the options of --source=cadvisor:[CONFIG][?OPTIONS]: those of a kubelet
// that are not about kubelets alone.
func CAdvisorTable() options.Table[Options] {
	other := map[string]string{
		"ca": "FILE of CA certificates that verify them", "port": "port of every cAdvisor (default 8080)", "scheme": "http (default) or https",
	}
	all := slices.DeleteFunc(slices.Clone(Table), func(o options.Option[Options]) bool { return o.Name == "endpoint" || o.Name == "status-port" })
	for i := range all {
		if help, ok := other[all[i].Name]; ok {
			all[i].Help = help
		}
	}
	return all
}

// ParseOptions parses the text after "--source=kubelet:". config is empty, "SCHEME://" for a
// scheme, "SCHEME://:PORT" for a port on every node, or "SCHEME://HOST[:PORT]" for a single
// kubelet. query has the options after the question mark. The result has its defaults and is
// checked, but no file is opened.
func ParseOptions(config string, query url.Values) (Options, error) {
	return parseOptions("kubelet", Table, Options{}, config, query)
}

// ParseCAdvisor parses the text after "--source=cadvisor:", which has the form of ParseOptions.
func ParseCAdvisor(config string, query url.Values) (Options, error) {
	return parseOptions("cadvisor", CAdvisorTable(), Options{Endpoint: Standalone}, config, query)
}

// parseOptions parses the text after the name of a source that has the given options.
func parseOptions(source string, table options.Table[Options], o Options, config string, query url.Values) (Options, error) {
	if err := o.config(source, config); err != nil {
		return Options{}, err
	}
	if err := table.Parse(&o, query); err != nil {
		return Options{}, err
	}
	if source == "kubelet" && o.Endpoint == Standalone {
		return Options{}, errors.New("endpoint \"standalone\" is not a kubelet's; read it with --source=cadvisor: instead")
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
func (o *Options) port() int { return cmp.Or(o.Port, DefaultPort) }

// split splits s at any of the separators and omits empty parts.
func split(s, separators string) []string {
	parts := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(separators, r) })
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return slices.DeleteFunc(parts, func(p string) bool { return p == "" })
}
