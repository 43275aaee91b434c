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

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// maxTargets bounds a static list, because a mistyped range could be huge.
const maxTargets = 1 << 16

// Target is a kubelet to read.
type Target struct {
	Node metric.NodeName
	// Address is "host:port".
	Address string
	// Path replaces /metrics/resource: it is the value of the node's cluster.PathAnnotation. It is empty if
	// there is none.
	Path string
	// PathError is what is wrong with the cluster.PathAnnotation; /metrics/resource is then read. It is nil
	// if nothing is wrong.
	PathError error
	// Guessed means that Node is only the host of a static target. The kubelet may then report another
	// name.
	Guessed bool
	// Err is set if the node cannot be read at all: a *metric.ReadError with NodeNoAddress.
	Err error
}

// equals reports whether t has the values of o.
func (t *Target) equals(o *Target) bool {
	return t.Node == o.Node && t.Address == o.Address && t.Path == o.Path && t.Guessed == o.Guessed &&
		sameText(t.Err, o.Err) && sameText(t.PathError, o.PathError)
}

// sameText reports whether two errors have the same text. The errors are created again each time.
func sameText(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
}

// Targets returns the kubelets to read, sorted by name: those of the static list if there is one,
// else those of the nodes that the selector matches. The caller must not change the slice. As long
// as the nodes do not change, Targets returns the same slice.
func (s *Scraper) Targets(facts *cluster.Facts) []Target {
	s.facts.Store(facts)
	if s.static != nil {
		return s.static
	}
	s.lastTargets.Lock()
	defer s.lastTargets.Unlock()
	if s.lastTargets.targets == nil || !facts.SameNodes(s.lastTargets.facts) {
		s.lastTargets.targets = s.targetsOf(facts)
	}
	s.lastTargets.facts = facts
	return s.lastTargets.targets
}

// targetsOf returns the kubelets of the nodes that the selector matches.
func (s *Scraper) targetsOf(facts *cluster.Facts) []Target {
	targets := make([]Target, 0, facts.Nodes())
	facts.EachNode(func(n *cluster.Node) bool {
		if s.IsSelected(n) {
			targets = append(targets, targetOf(n, &s.opts))
		}
		return true
	})
	sortTargets(targets)
	return targets
}

// IsSelected reports whether the node selector matches a node. A node that it does not match gets
// the reason NodeExcluded.
func (s *Scraper) IsSelected(n *cluster.Node) bool {
	return s.opts.Selector == nil || s.opts.Selector.Matches(labels.Set(n.Labels))
}

// Excluded returns the nodes of a cluster that no scraper reads because no node selector matches
// their labels, and the reason as an error. It returns nothing if no scraper has a selector. host
// is a node that is read in another way; empty if there is none.
func Excluded(scrapers []*Scraper, facts *cluster.Facts, host metric.NodeName) ([]metric.NodeName, error) {
	var selectors []string
	for _, s := range scrapers {
		if s.opts.Selector != nil && s.static == nil {
			selectors = append(selectors, fmt.Sprintf("%q", s.opts.Selector))
		}
	}
	if len(selectors) == 0 {
		return nil, nil
	}
	read := map[metric.NodeName]bool{host: true}
	for _, s := range scrapers {
		for _, t := range s.Targets(facts) {
			read[t.Node] = true
		}
	}
	var excluded []metric.NodeName
	facts.EachNode(func(n *cluster.Node) bool {
		if !read[n.Name] {
			excluded = append(excluded, n.Name)
		}
		return true
	})
	return excluded, metric.ReadErrorf(metric.NodeExcluded, "its labels do not match the node selector %s", strings.Join(selectors, " or "))
}

func sortTargets(targets []Target) {
	slices.SortFunc(targets, func(a, b Target) int { return cmp.Compare(a.Node, b.Node) })
}

// targetOf returns the target of a node, with its address and path.
func targetOf(n *cluster.Node, o *Options) Target {
	port := o.port()
	if (o.Port == 0 || o.StatusPort) && n.KubeletPort != 0 && o.Endpoint != Standalone {
		port = int(n.KubeletPort)
	}
	target := Target{Node: n.Name}
	if o.Endpoint == Resource {
		target.Path, target.PathError = resourcePath(n)
	}
	for _, t := range o.AddressTypes {
		for _, a := range n.Addresses {
			if a.Type == t && a.Address != "" {
				target.Address = net.JoinHostPort(a.Address, strconv.Itoa(port))
				return target
			}
		}
	}
	return Target{Node: n.Name, Err: metric.ReadErrorf(metric.NodeNoAddress, "none of its %d addresses is of type %s; set address-types to a type it has", len(n.Addresses), strings.Join(o.AddressTypes, ", "))}
}

// maxPath bounds cluster.PathAnnotation, in bytes. Kubernetes allows 256 KiB.
const maxPath = 1024

// resourcePath returns the path in a node's cluster.PathAnnotation, or an empty path if there is none. A
// value that is not a path is an error.
func resourcePath(n *cluster.Node) (string, error) {
	path := n.Annotations[cluster.PathAnnotation]
	if path == "" {
		return "", nil
	}
	if len(path) > maxPath {
		return "", fmt.Errorf("annotation %s is ignored: it is %d bytes long, and a path has at most %d", cluster.PathAnnotation, len(path), maxPath)
	}
	i := strings.IndexFunc(path, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || r == '?' || r == '#' || r == '\\'
	})
	if i >= 0 || strings.Contains(path, "://") {
		return "", fmt.Errorf("annotation %s=%q is ignored: it is not a path; write a path such as /metrics/resource", cluster.PathAnnotation, path)
	}
	if path[0] != '/' {
		path = "/" + path // metrics-server accepts it too
	}
	return path, nil
}

// ParseTargets parses a static list of kubelets. An entry is one of
//
//	node-1=10.0.0.1:10250   a name and its address
//	10.0.0.1:10250          the name is the host
//	10.0.0.1                the port is the argument port
//	10.0.0.1-10.0.0.9:10250 every address of a range
//	@FILE                   the entries in a file, one on each line; # begins a comment
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
			return nil, fmt.Errorf("two targets have the name %s; give each a name, as in node-1=%s", targets[i].Node, targets[i].Address)
		}
	}
	return targets, nil
}

// readTargets parses one entry, which may be @FILE.
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

// parseTarget parses one entry that is not @FILE.
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
			return nil, fmt.Errorf("target %q has one name for a range; drop the name", entry)
		}
		return expand(first, last, p)
	}
	t := Target{Node: metric.NodeName(name), Address: net.JoinHostPort(host, p)}
	if !named {
		t.Node, t.Guessed = metric.NodeName(host), true
	}
	return []Target{t}, nil
}

// splitHostPort splits an address. The address may have no port.
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
		return "", "", fmt.Errorf("a host name must not contain %q", host[i])
	}
	if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
		return "", "", errors.New("port out of range")
	}
	return host, p, nil
}

// addressRange parses a range "FIRST-LAST" of IP addresses.
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
			return nil, fmt.Errorf("targets %s-%s is not a range of at most %d addresses; give the lower address first", first, last, maxTargets)
		}
		targets = append(targets, Target{Node: metric.NodeName(a.String()), Address: net.JoinHostPort(a.String(), port), Guessed: true})
		if a == last {
			return targets, nil
		}
	}
}
