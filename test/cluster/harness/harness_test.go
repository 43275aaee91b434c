//go:build linux

package harness

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestOptions(t *testing.T) {
	for _, name := range []string{"", "a", "weir-2", strings.Repeat("x", 40)} {
		if _, err := (Options{Name: name, Dir: "/srv"}).withDefaults(); err != nil {
			t.Errorf("name %q: got %v", name, err)
		}
	}
	for _, name := range []string{"-", "a-", "A", "a/b", "..", "a b", strings.Repeat("x", 41)} {
		if _, err := (Options{Name: name, Dir: "/srv"}).withDefaults(); err == nil {
			t.Errorf("name %q: got no error", name)
		}
	}
	for _, dir := range []string{"/run", "/run/x", "/proc/1", "/sys/fs"} {
		if _, err := (Options{Dir: dir}).withDefaults(); err == nil {
			t.Errorf("folder %q: got no error", dir)
		}
	}
	if o, err := (Options{Dir: "/running"}).withDefaults(); err != nil || o.Name != "weir" {
		t.Errorf("folder /running: got %+v, %v", o, err)
	}
}

func TestStateFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := readState(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("read state that is not there: got %v", err)
	}
	want := newState(Options{Name: "a", Dir: "/srv"}, "/src", Programs{"etcd": "/bin/etcd"}, time.Unix(1e9, 5))
	want.Network = networkOf(netip.MustParseAddr("10.64.4.0"))
	want.Processes = []Process{{Name: "etcd", PID: 7, Started: 9, Health: "http://x/"}}
	if err := want.write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := readState(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
		t.Errorf("written (-) and read (+):\n%s", diff)
	}
	if len(got.Interface) > 15 {
		t.Errorf("interface %q: the kernel takes 15 bytes", got.Interface)
	}
	if err := os.WriteFile(filepath.Join(dir, stateFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readState(dir); err == nil || !strings.Contains(err.Error(), stateFile) {
		t.Errorf("read half a state: got %v, want an error that names the file", err)
	}
}

func TestAlive(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started, _, err := processStat(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	p := Process{PID: cmd.Process.Pid, Started: started}
	outsider := Process{PID: p.PID, Started: started - 1}
	if !p.Alive() || outsider.Alive() {
		t.Errorf("alive: got %v for the process and %v for one of its number that started earlier", p.Alive(), outsider.Alive())
	}
	s := ClusterRecord{Boot: bootID(), Processes: []Process{p}}
	if other := (ClusterRecord{Boot: "another", Processes: []Process{p}}); !s.Alive() || other.Alive() {
		t.Errorf("state alive: got %v, and %v after a reboot", s.Alive(), other.Alive())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Until Wait it is a zombie, which does not count as alive.
	if err := poll(t.Context(), time.Millisecond, func() (bool, error) { return !p.Alive(), nil }); err != nil {
		t.Errorf("alive after it was killed: %v", err)
	}
	cmd.Wait()
}

func TestParseStat(t *testing.T) {
	started, state, err := parseStat([]byte("12 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21\n"))
	if started != 4242 || state != 'S' || err != nil {
		t.Errorf("got %d, %q, %v", started, state, err)
	}
	for _, bad := range []string{"", "12 sh S 1", "12 (sh) S 1 2", "12 (sh) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x 20"} {
		if _, _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("12 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, state, err := parseStat(b); (err == nil) != (state != 0) {
			t.Errorf("%q: state %q with error %v", b, state, err)
		}
	})
}

// TestKey checks that the key of a build depends on everything that the build
// uses.
func TestKey(t *testing.T) {
	dir := func(mod, sum string) fstest.MapFS {
		return fstest.MapFS{"go.mod": {Data: []byte(mod)}, "go.sum": {Data: []byte(sum)}}
	}
	m := module{folder: "etcd", packages: map[string]string{"etcd": "example.com/etcd"}, flags: []string{"-tags", "a"}}
	other := m
	other.flags = []string{"-tags", "b"}
	more := m
	more.packages = map[string]string{"etcd": "example.com/etcd", "etcdctl": "example.com/etcdctl"}
	var keys []string
	for _, k := range []struct {
		m        module
		mod, sum string
		version  string
	}{
		{m, "mod", "sum", "go1"}, {m, "mod", "sum", "go2"}, {m, "mod2", "sum", "go1"}, {m, "mods", "um", "go1"},
		{other, "mod", "sum", "go1"}, {more, "mod", "sum", "go1"},
	} {
		got, err := k.m.key(dir(k.mod, k.sum), k.version)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := k.m.key(dir(k.mod, k.sum), k.version); again != got {
			t.Errorf("key twice: got %s, then %s", got, again)
		}
		if !strings.HasPrefix(got, "etcd-") || slices.Contains(keys, got) {
			t.Errorf("key %s: want one of its own that begins with etcd-", got)
		}
		keys = append(keys, got)
	}
	if _, err := m.key(fstest.MapFS{}, "go1"); err == nil {
		t.Error("key of a folder without go.mod: got no error")
	}
}

func TestSelectKubernetes(t *testing.T) {
	dir := fstest.MapFS{
		"go.mod":      {Data: []byte("module m\n\nrequire (\n\tk8s.io/kubernetes v1.37.2\n)\n")},
		"go-1.36.mod": {Data: []byte("module m\n\nrequire (\n\tk8s.io/kubernetes v1.36.3\n)\n")},
	}
	for _, c := range []struct{ version, file, want string }{
		{"", "go.mod", "gitVersion=v1.37.2 gitMajor=1 gitMinor=37"},
		{"1.37", "go.mod", "gitVersion=v1.37.2 gitMajor=1 gitMinor=37"},
		{"1.36", "go-1.36.mod", "gitVersion=v1.36.3 gitMajor=1 gitMinor=36"},
	} {
		file, flags, err := selectKubernetes(dir, c.version)
		flags = strings.ReplaceAll(flags, "-X k8s.io/component-base/version.", "")
		if file != c.file || flags != c.want || err != nil {
			t.Errorf("version %q: got %s, %q, %v; want %s, %q", c.version, file, flags, err, c.file, c.want)
		}
	}
	if _, _, err := selectKubernetes(dir, "1.35"); err == nil || !strings.Contains(err.Error(), "1.36, 1.37") {
		t.Errorf("version 1.35: got %v, want an error with the versions that exist", err)
	}
	dir["go.mod"] = &fstest.MapFile{Data: []byte("module m\n")}
	if _, _, err := selectKubernetes(dir, ""); err == nil || !strings.Contains(err.Error(), "go.mod") {
		t.Errorf("a go.mod without Kubernetes: got %v, want an error with its name", err)
	}
}

func TestSelectDebian(t *testing.T) {
	for given, want := range map[string]string{"": "bookworm", "bookworm": "bookworm", "trixie": "trixie", "forky": "forky"} {
		if got, err := selectDebian(given); got != want || err != nil {
			t.Errorf("%q: got %q, %v; want %q", given, got, err, want)
		}
	}
	if _, err := selectDebian("sid"); err == nil || !strings.Contains(err.Error(), "bookworm, trixie or forky") {
		t.Errorf("sid: got %v, want an error with the releases that can be selected", err)
	}
}

func TestBuiltName(t *testing.T) {
	for pkg, want := range map[string]string{
		"go.etcd.io/etcd/server/v3":         "server",
		"k8s.io/kubernetes/cmd/kubelet":     "kubelet",
		"example.com/cmd/containerd-shim-v": "containerd-shim-v",
		"example.com/v":                     "v",
		"example.com/v1x":                   "v1x",
	} {
		if got := builtName(pkg); got != want {
			t.Errorf("%s: got %s, want %s", pkg, got, want)
		}
	}
}

func TestChooseNetwork(t *testing.T) {
	first, err := chooseNetwork("weir", nil)
	if err != nil {
		t.Fatal(err)
	}
	used := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), first.Link, first.Pods, first.Services}
	second, err := chooseNetwork("weir", used)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []netip.Prefix{second.Link, second.Pods, second.Services} {
		if !netip.MustParsePrefix("10.64.0.0/10").Contains(a.Addr()) || !free(a, used) {
			t.Errorf("network %v is in use or outside 10.64.0.0/10", a)
		}
	}
	got := networkOf(netip.MustParseAddr("10.64.4.0"))
	want := Network{
		Host: netip.MustParseAddr("10.64.4.1"), Node: netip.MustParseAddr("10.64.4.2"),
		Gateway: netip.MustParseAddr("10.64.7.1"), Machine: netip.MustParseAddr("10.64.7.2"),
		Link: netip.MustParsePrefix("10.64.4.0/24"), Pods: netip.MustParsePrefix("10.64.5.0/24"), Services: netip.MustParsePrefix("10.64.6.0/24"),
	}
	if got != want {
		t.Errorf("layout: got %+v, want %+v", got, want)
	}
	if _, err := chooseNetwork("weir", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}); err == nil {
		t.Error("a machine that uses all of 10.0.0.0/8: got no error")
	}
}

func TestParseRoutes(t *testing.T) {
	got, err := parseRoutes([]byte(`[{"dst":"default","dev":"eth0"},{"dst":"10.64.0.0/24"},{"type":"local","dst":"10.64.0.1"}]`))
	want := []netip.Prefix{netip.MustParsePrefix("10.64.0.0/24"), netip.MustParsePrefix("10.64.0.1/32")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "{}", `[{"dst":"x"}]`} {
		if _, err := parseRoutes([]byte(bad)); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}

func TestParseHierarchies(t *testing.T) {
	got := parseHierarchies([]byte(`25 20 0:22 / /sys/fs/cgroup ro - tmpfs tmpfs ro
26 25 0:23 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
27 25 0:24 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
28 20 0:23 /docker/x /srv/cgroup rw - cgroup cgroup rw,memory
29 20 0:23 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
broken
`))
	want := []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestCgroupCheck checks that no mistake makes Down end this machine's own
// processes.
func TestCgroupCheck(t *testing.T) {
	for _, good := range []cgroup{"/weir-cluster-a", "/weir-cluster-a-b/system/etcd", cgroupOf("weir").child("x")} {
		if err := good.check(); err != nil {
			t.Errorf("%q: got %v", good, err)
		}
	}
	for _, bad := range []cgroup{
		"", "/", "weir-cluster-a", "/weir-cluster-", "/weir-cluster-/x", "/system", "/weir-cluster-a/../..", "/weir-cluster-a/", "/weir-cluster-..",
	} {
		for name, f := range map[string]func(context.Context) error{"kill": bad.kill, "remove": bad.remove} {
			if err := f(t.Context()); err == nil {
				t.Errorf("%s %q: got no error", name, bad)
			}
		}
		if err := bad.make(true); err == nil {
			t.Errorf("make %q: got no error", bad)
		}
	}
}

func TestHostTools(t *testing.T) {
	dir := t.TempDir()
	_, err := findHostTools([]string{dir}, []string{dir}, false)
	const want = "apt-get install runc iptables iproute2 util-linux containernetworking-plugins"
	if !errors.Is(err, ErrHostTools) || !strings.Contains(err.Error(), want) {
		t.Errorf("nothing there: got %v, want %v with %q", err, ErrHostTools, want)
	}
	const fewer = "apt-get install iproute2 util-linux"
	if _, err := findHostTools([]string{dir}, nil, true); !errors.Is(err, ErrHostTools) || !strings.HasSuffix(err.Error(), fewer) {
		t.Errorf("nothing there, and no pods: got %v, want %v with %q at its end", err, ErrHostTools, fewer)
	}
	for _, name := range []string{"runc", "iptables", "ip", "nsenter", "bridge"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got, err := findHostTools([]string{"/nowhere", dir}, []string{"/nowhere", dir}, false)
	if want := (hostTools{runc: filepath.Join(dir, "runc"), cni: dir}); got != want || err != nil {
		t.Errorf("all there: got %+v, %v, want %+v", got, err, want)
	}
}

func TestMachineTools(t *testing.T) {
	dir := t.TempDir()
	const want = "apt-get install qemu-system-x86 mmdebstrap e2fsprogs"
	if err := findMachineTools([]string{dir}, dir); !errors.Is(err, ErrHostTools) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("nothing there: got %v, want %v with %q at its end", err, ErrHostTools, want)
	}
	if err := findMachineTools(nil, filepath.Join(dir, "tun")); !errors.Is(err, ErrHostTools) || !strings.Contains(err.Error(), "tap") {
		t.Errorf("a kernel without tap devices: got %v, want %v", err, ErrHostTools)
	}
	for _, tool := range machineTools {
		if err := os.WriteFile(filepath.Join(dir, tool[0]), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := findMachineTools([]string{"/nowhere", dir}, dir); err != nil {
		t.Errorf("all there: got %v", err)
	}
}

// TestRemoveOld checks that the cache keeps the images that were used last, and
// nothing else is removed.
func TestRemoveOld(t *testing.T) {
	cache := t.TempDir()
	now := time.Now()
	var dirs []string
	for n := range keptImages + 2 {
		dir := filepath.Join(cache, fmt.Sprintf("machine-%016d", n))
		dirs = append(dirs, dir)
		used := now.Add(-time.Duration(n) * time.Hour)
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chtimes(dir, used, used)); err != nil {
			t.Fatal(err)
		}
	}
	others := []string{filepath.Join(cache, "debian-0000000000000000"), filepath.Join(cache, "machine-0000000000000009.lock"), filepath.Join(cache, "clusters")}
	for _, other := range others {
		if err := os.Mkdir(other, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeOld(dirs[len(dirs)-1]); err != nil {
		t.Fatal(err)
	}
	for n, dir := range dirs {
		if want := n < keptImages; exists(dir) != want {
			t.Errorf("%s, used %d hours ago: exists is %v, want %v", filepath.Base(dir), n, !want, want)
		}
	}
	for _, other := range others {
		if !exists(other) {
			t.Errorf("%s is gone", other)
		}
	}
}

func TestPKI(t *testing.T) {
	p := pki(t.TempDir())
	node := netip.MustParseAddr("10.64.0.2")
	if err := errors.Join(
		p.authority("ca", "test"), p.authority("other", "other"), p.key("sa"),
		p.issue("server", "ca", subject{name: "server", hosts: []string{"localhost"}, ips: []netip.Addr{node}}),
	); err != nil {
		t.Fatal(err)
	}
	ca, _, err := p.read("ca")
	if err != nil {
		t.Fatal(err)
	}
	server, key, err := p.read("server")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	for _, name := range []string{"localhost", "10.64.0.2"} {
		if _, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("verify the server's certificate for %s: %v", name, err)
		}
	}
	if !key.PublicKey.Equal(server.PublicKey) {
		t.Error("the key is not the certificate's")
	}
	strangers := x509.NewCertPool()
	other, _, err := p.read("other")
	if err != nil {
		t.Fatal(err)
	}
	strangers.AddCert(other)
	if _, err := server.Verify(x509.VerifyOptions{Roots: strangers}); err == nil {
		t.Error("another authority's certificate verifies it")
	}
	if _, err := p.pair("nobody", subject{name: "x"}); err == nil {
		t.Error("sign with an authority that there is not: got no error")
	}
}

func TestLockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "lock")
	unlock, err := lockFile(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := lockFile(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("a second lock: got %v, want to wait until cancelled", err)
	}
	unlock()
	again, err := lockFile(t.Context(), path, nil)
	if err != nil {
		t.Fatalf("after it was given back: %v", err)
	}
	// A process that waits for the lock must not take a file that was removed in
	// the meantime.
	remove := func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
		again()
	}
	last, err := lockFile(t.Context(), path, remove)
	if err != nil {
		t.Fatalf("after it was removed: %v", err)
	}
	defer last()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the lock that is held is of no file: %v", err)
	}
}

func TestLastLines(t *testing.T) {
	for in, want := range map[string]string{"": "", "a\n": "a", "a\nb\nc\n": "b\nc", "a\nb": "a\nb"} {
		if got := lastLines([]byte(in), 2); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestServiceName(t *testing.T) {
	if got, want := serviceName("metrics.k8s.io", "v1beta1"), "outside-v1beta1-metrics-k8s-io"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNodeDisk(t *testing.T) {
	if got, err := (NodeDisk{}).args(); got != nil || err != nil {
		t.Errorf("none: got %q, %v", got, err)
	}
	if got, err := (NodeDisk{Bytes: 1 << 30, Inodes: 5000}).args(); !slices.Equal(got, []string{"1073741824", "5000"}) || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for _, d := range []NodeDisk{{Bytes: 1}, {Inodes: 1}, {Bytes: -1, Inodes: 1}} {
		if got, err := d.args(); err == nil {
			t.Errorf("%+v: got %q and no error", d, got)
		}
	}
}
