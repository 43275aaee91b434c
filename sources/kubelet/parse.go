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
)

// options lists the options of --source=kubelet:[CONFIG][?OPTIONS]. What each
// does is said in Options and in the README.
var options = map[string]func(o *Options, value string) error{
	"endpoint":       func(o *Options, v string) error { o.Endpoint = Endpoint(v); return nil },
	"scheme":         func(o *Options, v string) error { o.Scheme = v; return nil },
	"port":           func(o *Options, v string) (err error) { o.Port, err = strconv.Atoi(v); return },
	"address-types":  func(o *Options, v string) error { o.AddressTypes = split(v, ","); return nil },
	"node-selector":  func(o *Options, v string) (err error) { o.Selector, err = labels.Parse(v); return },
	"targets":        func(o *Options, v string) error { o.Targets = append(o.Targets, split(v, ",;")...); return nil },
	"ca":             func(o *Options, v string) error { o.CAFile = v; return nil },
	"insecure-tls":   func(o *Options, v string) (err error) { o.Insecure, err = boolean(v); return },
	"client-cert":    func(o *Options, v string) error { o.CertFile = v; return nil },
	"client-key":     func(o *Options, v string) error { o.KeyFile = v; return nil },
	"token-file":     func(o *Options, v string) error { o.TokenFile = v; return nil },
	"timeout":        func(o *Options, v string) (err error) { o.Timeout, err = time.ParseDuration(v); return },
	"max-bytes":      func(o *Options, v string) (err error) { o.MaxBytes, err = strconv.ParseInt(v, 10, 64); return },
	"max-samples":    func(o *Options, v string) (err error) { o.MaxSamples, err = strconv.Atoi(v); return },
	"max-concurrent": func(o *Options, v string) (err error) { o.MaxConcurrent, err = strconv.Atoi(v); return },
	"gzip": func(o *Options, v string) error {
		gzip, err := boolean(v)
		o.NoGzip = !gzip
		return err
	},
}

// OptionNames returns the names of the options that ParseOptions knows, sorted.
func OptionNames() []string {
	names := make([]string, 0, len(options))
	for name := range options {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ParseOptions parses what follows "--source=kubelet:". config is empty,
// "SCHEME://" for a scheme, "SCHEME://:PORT" for a port on every node, or
// "SCHEME://HOST[:PORT]" for a single kubelet. query holds the rest. Both come with
// their defaults and are checked, but no file is opened.
func ParseOptions(config string, query url.Values) (Options, error) {
	var o Options
	if err := o.config(config); err != nil {
		return Options{}, err
	}
	for name, values := range query {
		set, ok := options[name]
		if !ok {
			return Options{}, fmt.Errorf("kubelet has no option %q; the options are %s", name, strings.Join(OptionNames(), ", "))
		}
		if len(values) > 1 && name != "targets" {
			return Options{}, fmt.Errorf("option %s is given %d times; give it once", name, len(values))
		}
		for _, v := range values {
			if err := set(&o, v); err != nil {
				return Options{}, fmt.Errorf("option %s=%s: %w", name, v, err)
			}
		}
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

// config takes the part between the source's name and the question mark.
func (o *Options) config(config string) error {
	if config == "" {
		return nil
	}
	u, err := url.Parse(config)
	if err != nil || u.Scheme == "" || u.Opaque != "" || strings.Trim(u.Path, "/") != "" || u.User != nil || u.RawQuery != "" {
		return fmt.Errorf("kubelet:%s is not understood; write kubelet:SCHEME://[HOST][:PORT], for example kubelet:https://:10250, or nothing", config)
	}
	o.Scheme = u.Scheme
	if p := u.Port(); p != "" {
		if o.Port, err = strconv.Atoi(p); err != nil {
			return fmt.Errorf("kubelet:%s: parse port: %w", config, err)
		}
	}
	if u.Hostname() != "" {
		o.Targets = append(o.Targets, u.Host)
	}
	return nil
}

// port returns the port for targets that name none.
func (o *Options) port() int {
	if o.Port != 0 {
		return o.Port
	}
	return DefaultPort
}

// split cuts s at any of the separators and leaves out what is empty.
func split(s, separators string) []string {
	parts := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(separators, r) })
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return slices.DeleteFunc(parts, func(p string) bool { return p == "" })
}

// boolean parses a switch; "?insecure-tls" alone turns it on.
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
