//go:build linux

package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Network has the addresses of a cluster: the four /24 networks of a /22 in
// 10.0.0.0/8 that this machine did not use.
type Network struct {
	Host     netip.Addr   `json:"host"`     // this machine's end of the link
	Node     netip.Addr   `json:"node"`     // the node's end
	Gateway  netip.Addr   `json:"gateway"`  // the node's address on the link to its virtual machine, if it has one
	Machine  netip.Addr   `json:"machine"`  // the virtual machine's address
	Link     netip.Prefix `json:"link"`     // the network of both ends
	Pods     netip.Prefix `json:"pods"`     // pods' addresses
	Services netip.Prefix `json:"services"` // Services' cluster addresses
}

// networkOf returns the cluster's networks in the /22 that begins at base.
func networkOf(base netip.Addr) Network {
	at := func(third, fourth byte) netip.Addr {
		b := base.As4()
		b[2] += third
		b[3] = fourth
		return netip.AddrFrom4(b)
	}
	return Network{
		Host:     at(0, 1),
		Node:     at(0, 2),
		Gateway:  at(3, 1),
		Machine:  at(3, 2),
		Link:     netip.PrefixFrom(at(0, 0), 24),
		Pods:     netip.PrefixFrom(at(1, 0), 24),
		Services: netip.PrefixFrom(at(2, 0), 24),
	}
}

// chooseNetwork returns a network that overlaps none in use. The first one it
// tries depends on the name, so a cluster usually gets the same addresses
// again.
func chooseNetwork(name string, used []netip.Prefix) (Network, error) {
	const blocks = 64 * 64 // 10.64.0.0/22 to 10.127.252.0/22
	h := fnv.New32a()
	h.Write([]byte(name))
	for i := range uint32(blocks) {
		n := (h.Sum32() + i) % blocks
		base := netip.AddrFrom4([4]byte{10, byte(64 + n/64), byte(n % 64 * 4), 0})
		if free(netip.PrefixFrom(base, 22), used) {
			return networkOf(base), nil
		}
	}
	return Network{}, fmt.Errorf("choose a network: every /22 in 10.64.0.0/10 is in use on this machine")
}

func free(p netip.Prefix, used []netip.Prefix) bool {
	for _, u := range used {
		if u.Bits() > 0 && u.Overlaps(p) { // the default route does not use an address range
			return false
		}
	}
	return true
}

// usedNetworks returns the networks to which this machine has routes.
func usedNetworks(ctx context.Context) ([]netip.Prefix, error) {
	out, err := output(exec.CommandContext(ctx, "ip", "-json", "-4", "route", "show", "table", "all"))
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	return parseRoutes(out)
}

func parseRoutes(b []byte) ([]netip.Prefix, error) {
	var routes []struct {
		Dst string `json:"dst"`
	}
	if err := json.Unmarshal(b, &routes); err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	var used []netip.Prefix
	for _, r := range routes {
		if r.Dst == "default" {
			continue
		}
		if !strings.Contains(r.Dst, "/") {
			r.Dst += "/32"
		}
		p, err := netip.ParsePrefix(r.Dst)
		if err != nil {
			return nil, fmt.Errorf("list routes: %w", err)
		}
		used = append(used, p)
	}
	return used, nil
}

// connect creates the link between this machine and the namespace of process
// pid, and chooses its addresses. Both happen under one lock, so two clusters
// that start at the same time get different addresses.
func connect(ctx context.Context, s *ClusterRecord, pid int) error {
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	unlock, err := lockFile(ctx, filepath.Join(cache, "network.lock"), nil)
	if err != nil {
		return err
	}
	defer unlock()
	used, err := usedNetworks(ctx)
	if err != nil {
		return err
	}
	n, err := chooseNetwork(s.Name, used)
	if err != nil {
		return err
	}
	s.Network = n
	outside := fmt.Sprintf(`link add %[1]s type veth peer name eth0 netns %[2]d
address add %[3]s/24 dev %[1]s
link set %[1]s up
route add %[4]s via %[6]s dev %[1]s
route add %[5]s via %[6]s dev %[1]s
`, s.Interface, pid, n.Host, n.Pods, n.Services, n.Node)
	if err := ipBatch(ctx, outside); err != nil {
		return fmt.Errorf("connect this machine: %w", err)
	}
	// The route to Services only makes the kernel send such packets; kube-proxy's
	// rules then redirect them. If there is no rule, nothing has the address, and
	// the caller gets an error.
	inside := fmt.Sprintf(`link set lo up
address add %[1]s/24 dev eth0
link set eth0 up
route add %[2]s dev eth0
`, n.Node, n.Services)
	if err := ipBatch(ctx, inside, "nsenter", "--target", strconv.Itoa(pid), "--net", "--"); err != nil {
		return fmt.Errorf("connect the node: %w", err)
	}
	return nil
}

// ipBatch runs ip with a batch of commands. If within is given, it is the
// command that runs ip.
func ipBatch(ctx context.Context, batch string, within ...string) error {
	args := slices.Concat(within, []string{"ip", "-batch", "-"})
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(batch)
	_, err := output(cmd)
	return err
}

// removeLink removes this machine's end of the link, and with it the other end
// and the routes. The kernel would also do this, but some time after the last
// process of the namespace has ended.
func removeLink(ctx context.Context, name string) error {
	if !exists("/sys/class/net/" + name) {
		return nil
	}
	if _, err := output(exec.CommandContext(ctx, "ip", "link", "delete", name)); err != nil && exists("/sys/class/net/"+name) {
		return fmt.Errorf("remove link: %w", err)
	}
	return nil
}

// output runs a command and returns its standard output. An error contains its
// standard error.
func output(cmd *exec.Cmd) ([]byte, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, strings.TrimSpace(lastLines(errs.Bytes(), 10)))
	}
	return out.Bytes(), nil
}
