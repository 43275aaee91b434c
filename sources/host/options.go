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

	"github.com/weir-metrics/weir/cluster"
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

// set sets the option name. It returns errUnknownOption if there is no such option.
func (o *Options) set(name, value string) (err error) {
	switch name {
	case "node":
		o.Node = metric.NodeName(value)
	case "resolution":
		if o.Resolution, err = time.ParseDuration(value); err == nil && o.Resolution < time.Second {
			err = errors.New("must be at least 1s")
		}
	case "prefix":
		if !strings.HasPrefix(value, "/") {
			err = errors.New("must start with /")
		}
		o.Prefixes = append(o.Prefixes, value)
	case "rootfs":
		if !path.IsAbs(value) {
			err = errors.New("must be an absolute path")
		}
		o.RootFS = path.Clean(value)
	case "containerd":
		o.Containerd = strings.TrimPrefix(value, "unix://")
		if value == "none" {
			o.Containerd = ""
		} else if !path.IsAbs(o.Containerd) {
			err = errors.New("must be an absolute path or none")
		}
	case "containerd-namespace":
		o.ContainerdNamespace = value
	case "max-cgroups":
		if o.MaxCgroups, err = strconv.Atoi(value); err == nil && o.MaxCgroups <= 0 {
			err = errors.New("must be positive")
		}
	default:
		err = errUnknownOption
	}
	return err
}

var errUnknownOption = errors.New("unknown option")

// ParseOptions parses the text after "--source=host:" on the command line. config is the part
// before the "?" and must be empty. The error lists every wrong option, and the options that exist.
func ParseOptions(config string, query url.Values) (Options, error) {
	o := Options{Containerd: DefaultContainerd}
	var errs []error
	if config != "" {
		errs = append(errs, fmt.Errorf("the source host has no address, but %q was given; options follow a question mark: host:?node=NAME", config))
	}
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(query)) {
		for i, v := range query[name] {
			switch err := o.set(name, v); {
			case i > 0 && name != "prefix":
				errs = append(errs, fmt.Errorf("option %s is given %d times", name, i+1))
			case errors.Is(err, errUnknownOption):
				unknown = append(unknown, name)
			case v == "":
				errs = append(errs, fmt.Errorf("option %s has no value", name))
			case err != nil:
				errs = append(errs, fmt.Errorf("option %s=%s: %w", name, v, err))
			}
		}
	}
	if len(unknown) > 0 {
		errs = append(errs, fmt.Errorf("unknown option %s; there are:\n%s", strings.Join(unknown, ", "), OptionsHelp()))
	}
	if err := errors.Join(errs...); err != nil {
		return Options{}, fmt.Errorf("source host: %w", err)
	}
	return o, nil
}

// OptionsHelp describes the options of ParseOptions, one on each line.
func OptionsHelp() string {
	return `  node                  NAME of this node (default: the host name)
  resolution            time between two reads, such as 10s
  prefix                report only cgroups with this prefix of their path, such as /kubepods; repeatable
  rootfs                directory where the host's / is mounted (default: /)
  containerd            path of containerd's socket, or none (default: ` + DefaultContainerd + `)
  containerd-namespace  containerd namespace of the kubelet's containers (default: k8s.io)
  max-cgroups           most cgroups to report (default: 20000)`
}
