package host

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Options configure a Host. The zero Options are good for a machine without a
// cluster.
type Options struct {
	// Node is the name samples carry. Default: the host name.
	Node metric.NodeName
	// RootFS is where the host's root directory is mounted, for /proc below it.
	// Default: "/". Cgroups are always read below /sys/fs/cgroup, which
	// libcontainer does not let anyone move.
	RootFS string
	// Prefixes limits samples to cgroups whose path starts with one of them,
	// such as "/kubepods". The node itself is always reported. Default: all.
	Prefixes []string
	// Containerd is the path of containerd's socket. It is used once it is
	// there and answers; the empty path never is.
	// Default of ParseOptions: DefaultContainerd.
	Containerd string
	// ContainerdNamespace is the namespace of the kubelet's containers.
	// Default: "k8s.io".
	ContainerdNamespace string
	// MaxCgroups bounds how many cgroups are reported. More are dropped, and
	// Read says so. Default: 20000.
	MaxCgroups int
	// Resolution is how often the manager should read; a Host itself reads only
	// when asked. 0 leaves it to the manager.
	Resolution time.Duration
}

// DefaultContainerd is where containerd listens unless told otherwise.
const DefaultContainerd = "/run/containerd/containerd.sock"

const (
	defaultNamespace  = "k8s.io"
	defaultMaxCgroups = 20000
)

func (o Options) withDefaults(hostname func() (string, error)) (Options, error) {
	if o.Node == "" {
		name, err := hostname()
		if err != nil {
			return o, fmt.Errorf("name the node: %w (set node=NAME)", err)
		}
		o.Node = metric.NodeName(name)
	}
	o.RootFS = cmp.Or(o.RootFS, "/")
	o.ContainerdNamespace = cmp.Or(o.ContainerdNamespace, defaultNamespace)
	o.MaxCgroups = cmp.Or(o.MaxCgroups, defaultMaxCgroups)
	return o, nil
}

// includes reports whether a cgroup is to be reported.
func (o *Options) includes(p metric.CgroupPath) bool {
	if p == "/" || len(o.Prefixes) == 0 {
		return true
	}
	return slices.ContainsFunc(o.Prefixes, func(prefix string) bool {
		return strings.HasPrefix(string(p), prefix)
	})
}

// mayContain reports whether cgroups below p may be included though p is not.
func (o *Options) mayContain(p metric.CgroupPath) bool {
	return o.includes(p) || slices.ContainsFunc(o.Prefixes, func(prefix string) bool {
		return strings.HasPrefix(prefix, strings.TrimSuffix(string(p), "/")+"/")
	})
}

// optionParsers sets one option each from its text, in the order of help.
var optionParsers = []struct {
	name, help string
	set        func(o *Options, value string) error
}{
	{"node", "NAME of this node (default: the host name)", func(o *Options, v string) error {
		o.Node = metric.NodeName(v)
		return nil
	}},
	{"resolution", "time between two reads, such as 10s", func(o *Options, v string) error {
		d, err := time.ParseDuration(v)
		if err == nil && d < time.Second {
			err = errors.New("must be at least 1s")
		}
		o.Resolution = d
		return err
	}},
	{"prefix", "report only cgroups with this prefix of their path, such as /kubepods; repeatable", func(o *Options, v string) error {
		if !strings.HasPrefix(v, "/") {
			return errors.New("must start with /")
		}
		o.Prefixes = append(o.Prefixes, v)
		return nil
	}},
	{"rootfs", "directory where the host's / is mounted (default: /)", func(o *Options, v string) error {
		if !path.IsAbs(v) {
			return errors.New("must be an absolute path")
		}
		o.RootFS = path.Clean(v)
		return nil
	}},
	{"containerd", "path of containerd's socket, or none (default: " + DefaultContainerd + ")", func(o *Options, v string) error {
		if v == "none" {
			o.Containerd = ""
			return nil
		}
		if v = strings.TrimPrefix(v, "unix://"); !path.IsAbs(v) {
			return errors.New("must be an absolute path or none")
		}
		o.Containerd = v
		return nil
	}},
	{"containerd-namespace", "containerd namespace of the kubelet's containers (default: k8s.io)", func(o *Options, v string) error {
		o.ContainerdNamespace = v
		return nil
	}},
	{"max-cgroups", "most cgroups to report (default: 20000)", func(o *Options, v string) error {
		n, err := strconv.Atoi(v)
		if err == nil && n <= 0 {
			err = errors.New("must be positive")
		}
		o.MaxCgroups = n
		return err
	}},
}

// ParseOptions reads what follows "--source=host:" on the command line. config is
// what stands before the "?", and must be empty. The error names every option
// that is wrong, and those there are.
func ParseOptions(config string, query url.Values) (Options, error) {
	o := Options{Containerd: DefaultContainerd}
	var errs []error
	if config != "" {
		errs = append(errs, fmt.Errorf("the source host has no address, but %q was given; options follow a question mark: host:?node=NAME", config))
	}
	known := map[string]bool{}
	for _, p := range optionParsers {
		known[p.name] = true
		values := query[p.name]
		if len(values) > 1 && p.name != "prefix" {
			errs = append(errs, fmt.Errorf("option %s is given %d times", p.name, len(values)))
			continue
		}
		for _, v := range values {
			if v == "" {
				errs = append(errs, fmt.Errorf("option %s has no value", p.name))
			} else if err := p.set(&o, v); err != nil {
				errs = append(errs, fmt.Errorf("option %s=%s: %w", p.name, v, err))
			}
		}
	}
	var unknown []string
	for name := range query {
		if !known[name] {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		errs = append(errs, fmt.Errorf("unknown option %s; there are:\n%s", strings.Join(unknown, ", "), OptionsHelp()))
	}
	if err := errors.Join(errs...); err != nil {
		return Options{}, fmt.Errorf("source host: %w", err)
	}
	return o, nil
}

// OptionsHelp lists the options ParseOptions knows, one a line.
func OptionsHelp() string {
	var b strings.Builder
	for i, p := range optionParsers {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "  %-21s %s", p.name, p.help)
	}
	return b.String()
}
