package kubelet

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/metric"
)

// maxTargets bounds a static list, against a range typed wrongly.
const maxTargets = 1 << 16

// Target is a kubelet to read.
type Target struct {
	Node metric.NodeName
	// Address is "host:port".
	Address string
	// Path is where the node serves /metrics/resource instead, as its annotation
	// PathAnnotation says; empty for the usual place.
	Path string
	// Doubt is what is wrong with the node's annotation; nil if nothing is. The
	// node is read at the usual place.
	Doubt error
	// Guessed says that Node is only the host in a static list, so that the
	// kubelet may well give another name.
	Guessed bool
	// Err is why the node cannot be read at all: NodeNoAddress. It is nil for
	// all others.
	Err *metric.ReadError
}

// Targets returns the kubelets to read by the facts, sorted by name: those of the
// static list if there is one, else those of the nodes the selector leaves in. Nobody
// may write to the slice, which is the same for as long as the nodes are.
func (s *Scraper) Targets(facts *metric.Facts) []Target {
	if s.static != nil {
		return s.static
	}
	s.found.Lock()
	defer s.found.Unlock()
	if s.found.targets == nil || !facts.SameNodes(s.found.by) {
		s.found.targets = s.find(facts)
	}
	s.found.by = facts
	return s.found.targets
}

// find returns the kubelets of the nodes that the selector leaves in.
func (s *Scraper) find(facts *metric.Facts) []Target {
	targets := make([]Target, 0, facts.Nodes())
	facts.EachNode(func(n *metric.NodeFacts) bool {
		if s.Selects(n) {
			targets = append(targets, targetOf(n, &s.opts))
		}
		return true
	})
	sortTargets(targets)
	return targets
}

// Selects reports whether the selector leaves a node in. A node it leaves out is
// NodeExcluded.
func (s *Scraper) Selects(n *metric.NodeFacts) bool {
	return s.opts.Selector == nil || s.opts.Selector.Matches(labels.Set(n.Labels))
}

func sortTargets(targets []Target) {
	slices.SortFunc(targets, func(a, b Target) int { return cmp.Compare(a.Node, b.Node) })
}

// targetOf returns where to reach a node.
func targetOf(n *metric.NodeFacts, o *Options) Target {
	port := o.port()
	if (o.Port == 0 || o.StatusPort) && n.KubeletPort != 0 {
		port = int(n.KubeletPort)
	}
	target := Target{Node: n.Name}
	if o.Endpoint == Resource {
		target.Path, target.Doubt = resourcePath(n)
	}
	for _, t := range o.AddressTypes {
		for _, a := range n.Addresses {
			if a.Type == t && a.Address != "" {
				target.Address = net.JoinHostPort(a.Address, strconv.Itoa(port))
				return target
			}
		}
	}
	return Target{Node: n.Name, Err: &metric.ReadError{
		Reason: metric.NodeNoAddress,
		Err:    fmt.Errorf("none of its %d addresses is of type %s; set address-types to a type it has", len(n.Addresses), strings.Join(o.AddressTypes, ", ")),
	}}
}

// PathAnnotation is the annotation of a Node that says where its kubelet serves
// what others serve at /metrics/resource. metrics-server gave it its name.
const PathAnnotation = "metrics.k8s.io/resource-metrics-path"

// maxPath bounds the annotation: Kubernetes itself allows 256 KiB.
const maxPath = 1024

// resourcePath returns what a node's PathAnnotation says, as a path; empty if it
// has none. One that is no path is an error.
func resourcePath(n *metric.NodeFacts) (string, error) {
	path := n.Annotations[PathAnnotation]
	if path == "" {
		return "", nil
	}
	if len(path) > maxPath {
		return "", fmt.Errorf("annotation %s is ignored: it is %d bytes long, and a path has at most %d", PathAnnotation, len(path), maxPath)
	}
	i := strings.IndexFunc(path, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || r == '?' || r == '#' || r == '\\'
	})
	if i >= 0 || strings.Contains(path, "://") {
		return "", fmt.Errorf("annotation %s=%q is ignored: it is no path; write one such as /metrics/resource", PathAnnotation, path)
	}
	if path[0] != '/' {
		path = "/" + path // as metrics-server takes it
	}
	return path, nil
}

// ParseTargets parses a static list of kubelets. An entry is one of
//
//	node-1=10.0.0.1:10250   a name and where to reach it
//	10.0.0.1:10250          the name is the host
//	10.0.0.1                the port is the one given
//	10.0.0.1-10.0.0.9:10250 every address of a range
//	@FILE                   the entries in a file, one a line; # begins a comment
//
// The result is sorted by name, which must be unique.
func ParseTargets(entries []string, port int) ([]Target, error) {
	var targets []Target
	for _, entry := range entries {
		more, err := readTargets(entry, port)
		if err != nil {
			return nil, err
		}
		if targets = append(targets, more...); len(targets) > maxTargets {
			return nil, fmt.Errorf("targets are more than %d; is a range too wide?", maxTargets)
		}
	}
	sortTargets(targets)
	for i := 1; i < len(targets); i++ {
		if targets[i].Node == targets[i-1].Node {
			return nil, fmt.Errorf("two targets go by the name %s; name them, as in node-1=%s", targets[i].Node, targets[i].Address)
		}
	}
	return targets, nil
}

// readTargets parses one entry, which may be a file.
func readTargets(entry string, port int) ([]Target, error) {
	path, isFile := strings.CutPrefix(entry, "@")
	if !isFile {
		return parseTarget(entry, port)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open targets: %w", err)
	}
	defer f.Close()
	var targets []Target
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		more, err := parseTarget(line, port)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, n, err)
		}
		targets = append(targets, more...)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read targets: %w", err)
	}
	return targets, nil
}

// parseTarget parses an entry that is no file.
func parseTarget(entry string, port int) ([]Target, error) {
	name, address, named := strings.Cut(entry, "=")
	if !named {
		address = entry
	}
	host, p, err := splitHostPort(address, port)
	if err != nil || host == "" || named && name == "" {
		return nil, fmt.Errorf("target %q is not understood; write HOST:PORT, NAME=HOST:PORT, FIRST-LAST:PORT or @FILE", entry)
	}
	if first, last, ok := addressRange(host); ok {
		if named {
			return nil, fmt.Errorf("target %q gives one name to a range; drop the name", entry)
		}
		return expand(first, last, p)
	}
	t := Target{Node: metric.NodeName(name), Address: net.JoinHostPort(host, p)}
	if !named {
		t.Node, t.Guessed = metric.NodeName(host), true
	}
	return []Target{t}, nil
}

// splitHostPort splits an address that may lack a port.
func splitHostPort(address string, port int) (host, p string, err error) {
	if host = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]"); isIP(host) {
		return host, strconv.Itoa(port), nil
	}
	if host, p = address, strconv.Itoa(port); strings.Contains(address, ":") {
		if host, p, err = net.SplitHostPort(address); err != nil {
			return "", "", err
		}
	}
	if i := strings.IndexAny(host, "[]/?#@% \t"); i >= 0 && !isIP(host) {
		return "", "", fmt.Errorf("no host name holds %q", host[i])
	}
	if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
		return "", "", errors.New("port out of range")
	}
	return host, p, nil
}

// addressRange parses "FIRST-LAST" of IP addresses.
func addressRange(host string) (first, last netip.Addr, ok bool) {
	a, b, dash := strings.Cut(host, "-")
	if !dash {
		return first, last, false
	}
	first, err1 := netip.ParseAddr(a)
	last, err2 := netip.ParseAddr(b)
	return first, last, err1 == nil && err2 == nil
}

// expand returns a target for each address of a range.
func expand(first, last netip.Addr, port string) ([]Target, error) {
	var targets []Target
	for a := first; ; a = a.Next() {
		if !a.IsValid() || last.Less(a) || len(targets) == maxTargets {
			return nil, fmt.Errorf("targets %s-%s are no range of at most %d addresses; give the lower address first", first, last, maxTargets)
		}
		targets = append(targets, Target{Node: metric.NodeName(a.String()), Address: net.JoinHostPort(a.String(), port), Guessed: true})
		if a == last {
			return targets, nil
		}
	}
}
