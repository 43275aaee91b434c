package host

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/options"
	"github.com/weir-metrics/weir/metric"
)

// Options configures a Host. The zero Options is for a machine without a cluster.
type Options struct {
	// Node is the node's name in samples. Default: the host name.
	Node metric.NodeName
	// RootFS is where the host's root directory is mounted; /proc is read below it. Default: "/".
	// Cgroups are always read below /sys/fs/cgroup, because libcontainer has no option for it.
	RootFS string
	// Prefixes limits samples to cgroups with a path that starts with one of them, such as
	// "/kubepods". The node itself is always reported. Default: all cgroups.
	Prefixes []string
	// Containerd is the path of containerd's socket. It is used as soon as it exists and answers. If
	// the path is empty, containerd is not used. Default of ParseOptions: DefaultContainerd.
	Containerd string
	// ContainerdNamespace is the namespace of the kubelet's containers.
	// Default: "k8s.io".
	ContainerdNamespace string
	// Facts returns the cluster facts, which name the pods and containers that containerd does not
	// name. It is nil without a cluster.
	Facts func() *cluster.Facts
	// MaxCgroups is the maximum number of cgroups to report. If there are more, Read drops the others
	// and returns an error. Default: 20000.
	MaxCgroups int
	// Resolution is the interval at which the manager should read this source. 0 means the manager's
	// own interval.
	Resolution time.Duration
}

// DefaultContainerd is the default path of containerd's socket.
const DefaultContainerd = "/run/containerd/containerd.sock"

func (o Options) withDefaults(hostname func() (string, error)) (Options, error) {
	if o.Node == "" {
		name, err := hostname()
		if err != nil {
			return o, fmt.Errorf("name the node: %w (set node=NAME)", err)
		}
		o.Node = metric.NodeName(name)
	}
	o.RootFS = cmp.Or(o.RootFS, "/")
	o.ContainerdNamespace = cmp.Or(o.ContainerdNamespace, "k8s.io")
	o.MaxCgroups = cmp.Or(o.MaxCgroups, 20000)
	return o, nil
}

// includes reports whether the samples include a cgroup.
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

// Table has the options of --source=host.
var Table = options.Table[Options]{
	options.Field("node", "NAME of this node (default: the host name)", func(o *Options) *metric.NodeName { return &o.Node }, options.NotEmpty),
	options.Field("resolution", "time between two reads, such as 10s", func(o *Options) *time.Duration { return &o.Resolution }, options.AtLeast(time.Second)),
	{Name: "prefix", Help: "report only cgroups with this prefix of their path, such as /kubepods; repeatable", SetAll: func(o *Options, values []string) error {
		for _, v := range values {
			if !strings.HasPrefix(v, "/") {
				return fmt.Errorf("%q must start with /", v)
			}
		}
		o.Prefixes = values
		return nil
	}},
	{Name: "rootfs", Help: "directory where the host's / is mounted (default: /)", Set: func(o *Options, v string) error {
		if o.RootFS = path.Clean(v); !path.IsAbs(v) {
			return fmt.Errorf("%q must be an absolute path", v)
		}
		return nil
	}},
	{Name: "containerd", Help: "path of containerd's socket, or none (default: " + DefaultContainerd + ")", Set: func(o *Options, v string) error {
		o.Containerd = strings.TrimPrefix(v, "unix://")
		if v == "none" {
			o.Containerd = ""
		} else if !path.IsAbs(o.Containerd) {
			return fmt.Errorf("%q must be an absolute path or none", v)
		}
		return nil
	}},
	options.Field("containerd-namespace", "containerd namespace of the kubelet's containers (default: k8s.io)", func(o *Options) *string { return &o.ContainerdNamespace }, options.NotEmpty),
	options.Field("max-cgroups", "most cgroups to report (default: 20000)", func(o *Options) *int { return &o.MaxCgroups }, options.Positive),
}

// ParseOptions parses --source=host:[?OPTIONS]. config must be empty.
func ParseOptions(config string, query url.Values) (Options, error) {
	o := Options{Containerd: DefaultContainerd}
	if config != "" {
		return Options{}, fmt.Errorf("the source host has no address, but %q was given; options follow a question mark: host:?node=NAME", config)
	}
	if err := Table.Parse(&o, query); err != nil {
		return Options{}, err
	}
	return o, nil
}
