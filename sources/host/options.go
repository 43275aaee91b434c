package host

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Options configure a Host. The zero Options suit a machine without a cluster.
type Options struct {
	// Node is the node's name in samples. Default: the host name.
	Node metric.NodeName
	// RootFS is where the host's root directory is mounted; /proc is read below it.
	// Default: "/". Cgroups are always read below /sys/fs/cgroup, since libcontainer
	// has no option for that.
	RootFS string
	// Prefixes limits samples to cgroups whose path starts with one of them,
	// such as "/kubepods". The node itself is always reported. Default: all.
	Prefixes []string
	// Containerd is the path of containerd's socket. It is used as soon as it exists and
	// answers. With an empty path, containerd is not used.
	// Default of ParseOptions: DefaultContainerd.
	Containerd string
	// ContainerdNamespace is the namespace of the kubelet's containers.
	// Default: "k8s.io".
	ContainerdNamespace string
	// MaxCgroups is the maximum number of cgroups to report. If there are more, Read
	// drops the rest and returns an error. Default: 20000.
	MaxCgroups int
	// Resolution is the interval at which the manager should read this source. 0 means
	// the manager's own.
	Resolution time.Duration
}

// DefaultContainerd is the default path of containerd's socket.
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

// mayContain reports whether p, or any cgroup below p, may be included.
func (o *Options) mayContain(p metric.CgroupPath) bool {
	return o.includes(p) || slices.ContainsFunc(o.Prefixes, func(prefix string) bool {
		return strings.HasPrefix(prefix, strings.TrimSuffix(string(p), "/")+"/")
	})
}

type optionParser struct {
	name, help string
	set        func(o *Options, value string) error
}

// optionParsers has the parser of each option, in the order of the help text.
var optionParsers = []optionParser{
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

// ParseOptions parses what follows "--source=host:" on the command line. config is the part
// before the "?" and must be empty. The error lists every wrong option, and the options that
// exist.
func ParseOptions(config string, query url.Values) (Options, error) {
	o := Options{Containerd: DefaultContainerd}
	var errs []error
	if config != "" {
		errs = append(errs, fmt.Errorf("the source host has no address, but %q was given; options follow a question mark: host:?node=NAME", config))
	}
	for _, p := range optionParsers {
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
	unknown := slices.DeleteFunc(slices.Sorted(maps.Keys(query)), func(name string) bool {
		return slices.ContainsFunc(optionParsers, func(p optionParser) bool { return p.name == name })
	})
	if len(unknown) > 0 {
		errs = append(errs, fmt.Errorf("unknown option %s; there are:\n%s", strings.Join(unknown, ", "), OptionsHelp()))
	}
	if err := errors.Join(errs...); err != nil {
		return Options{}, fmt.Errorf("source host: %w", err)
	}
	return o, nil
}

// OptionsHelp lists the options of ParseOptions, one in each line.
func OptionsHelp() string {
	var lines []string
	for _, p := range optionParsers {
		lines = append(lines, fmt.Sprintf("  %-21s %s", p.name, p.help))
	}
	return strings.Join(lines, "\n")
}
