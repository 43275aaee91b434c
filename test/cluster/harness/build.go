//go:build linux

package harness

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Programs are the paths of the built programs by name: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kube-proxy, kubelet, kubectl,
// containerd, containerd-shim-runc-v2, ctr.
type Programs map[string]string

// Path returns the path of a program, or an empty string.
func (p Programs) Path(name string) string { return p[name] }

// Names returns the programs' names, sorted.
func (p Programs) Names() []string { return slices.Sorted(maps.Keys(p)) }

// A module is a Go module beside this package that pins the versions of
// programs.
type module struct {
	folder   string
	modFile  string            // the file that pins the versions; default go.mod
	packages map[string]string // program: main package
	flags    []string
}

// files returns the names of the files that pin the versions, and the hashes of
// what they name.
func (m module) files() (mod, sum string) {
	mod = cmp.Or(m.modFile, "go.mod")
	return mod, strings.TrimSuffix(mod, ".mod") + ".sum"
}

// VersionVariable is the environment variable that selects a Kubernetes version,
// such as 1.36. Default: the version of go.mod in test/cluster/kubernetes.
const VersionVariable = "WEIR_CLUSTER_KUBERNETES"

// requiredKubernetes finds the version of Kubernetes in a go.mod.
var requiredKubernetes = regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes (v([0-9]+)\.([0-9]+)\.[0-9]+)$`)

// selectKubernetes returns the file of a folder that pins a Kubernetes version
// such as 1.36, or go.mod if the version is empty. The second result sets the
// version of the programs at link time. Without it, each program reports v0.0.0,
// and the others refuse to work with it.
func selectKubernetes(dir fs.FS, version string) (modFile, ldflags string, err error) {
	files, err := fs.Glob(dir, "*.mod")
	if err != nil {
		return "", "", err
	}
	var known []string
	for _, name := range files {
		b, err := fs.ReadFile(dir, name)
		if err != nil {
			return "", "", err
		}
		found := requiredKubernetes.FindSubmatch(b)
		if found == nil {
			return "", "", fmt.Errorf("%s requires no version of k8s.io/kubernetes", name)
		}
		minor := fmt.Sprintf("%s.%s", found[2], found[3])
		if version == minor || version == "" && name == "go.mod" {
			const variable = "-X k8s.io/component-base/version."
			return name, fmt.Sprintf("%sgitVersion=%s %sgitMajor=%s %sgitMinor=%s", variable, found[1], variable, found[2], variable, found[3]), nil
		}
		known = append(known, minor)
	}
	return "", "", fmt.Errorf("%s=%s: test/cluster/kubernetes does not have this version; unset it, or set one of: %s",
		VersionVariable, version, strings.Join(known, ", "))
}

// product is the module that contains the harness.
const product = "github.com/weir-metrics/weir"

// modules returns the modules of a cluster. clusters is the folder of this
// package's parent in weir's source.
func modules(clusters string) ([]module, error) {
	kubernetes, err := kubernetesModule(clusters, os.Getenv(VersionVariable))
	if err != nil {
		return nil, err
	}
	return []module{kubernetes, {
		folder: "containerd",
		packages: map[string]string{
			"containerd":              "github.com/containerd/containerd/v2/cmd/containerd",
			"containerd-shim-runc-v2": "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
			"ctr":                     "github.com/containerd/containerd/v2/cmd/ctr",
		},
		flags: []string{"-ldflags", "-s -w", "-tags", "no_btrfs no_zfs"},
	}}, nil
}

var metricsServer = module{
	folder:   "metrics-server",
	packages: map[string]string{"metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server"},
	flags:    []string{"-ldflags", "-s -w"},
}

// kubernetesModule returns the module of a Kubernetes version such as 1.36, or
// of the default version if it is empty.
func kubernetesModule(clusters, version string) (module, error) {
	modFile, ldflags, err := selectKubernetes(os.DirFS(filepath.Join(clusters, "kubernetes")), version)
	if err != nil {
		return module{}, err
	}
	return module{
		folder:  "kubernetes",
		modFile: modFile,
		packages: map[string]string{
			"etcd":                    "go.etcd.io/etcd/server/v3",
			"kube-apiserver":          "k8s.io/kubernetes/cmd/kube-apiserver",
			"kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
			"kube-proxy":              "k8s.io/kubernetes/cmd/kube-proxy",
			"kube-scheduler":          "k8s.io/kubernetes/cmd/kube-scheduler",
			"kubectl":                 "k8s.io/kubernetes/cmd/kubectl",
			"kubelet":                 "k8s.io/kubernetes/cmd/kubelet",
		},
		flags: []string{"-ldflags", "-s -w " + ldflags},
	}, nil
}

// Build builds the programs of a cluster that are not in the user's cache. This
// takes some minutes the first time, then milliseconds. If several processes
// call it at the same time, one builds and the others wait.
func Build(ctx context.Context, out io.Writer) (Programs, error) {
	root, err := sourceRoot(ctx)
	if err != nil {
		return nil, err
	}
	return build(ctx, root, newProgress(out))
}

// BuildKubectl builds the kubectl of a Kubernetes version such as 1.36, if the
// cache does not have it, and returns its path.
func BuildKubectl(ctx context.Context, version string, out io.Writer) (string, error) {
	root, err := sourceRoot(ctx)
	if err != nil {
		return "", err
	}
	clusters := filepath.Join(root, "test", "cluster")
	m, err := kubernetesModule(clusters, version)
	if err != nil {
		return "", err
	}
	const name = "kubectl"
	all, err := m.cacheFolder(ctx, clusters)
	if err != nil {
		return "", err
	}
	if exists(all) {
		return filepath.Join(all, name), nil
	}
	m.packages = map[string]string{name: m.packages[name]}
	return m.buildOne(ctx, clusters, name, newProgress(out))
}

// BuildRecommender builds the recommender of the VerticalPodAutoscaler, if the
// cache does not have it, and returns its path.
func BuildRecommender(ctx context.Context, out io.Writer) (string, error) {
	root, err := sourceRoot(ctx)
	if err != nil {
		return "", err
	}
	const name = "vpa-recommender"
	m := module{
		folder:   "vertical-pod-autoscaler",
		packages: map[string]string{name: "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender"},
		flags:    []string{"-ldflags", "-s -w"},
	}
	return m.buildOne(ctx, filepath.Join(root, "test", "cluster"), name, newProgress(out))
}

// BuildMetricsServer builds metrics-server, if the cache does not have it, and
// returns its path.
func BuildMetricsServer(ctx context.Context, out io.Writer) (string, error) {
	root, err := sourceRoot(ctx)
	if err != nil {
		return "", err
	}
	return metricsServer.buildOne(ctx, filepath.Join(root, "test", "cluster"), "metrics-server", newProgress(out))
}

func build(ctx context.Context, root string, p *progress) (Programs, error) {
	clusters := filepath.Join(root, "test", "cluster")
	all, err := modules(clusters)
	if err != nil {
		return nil, err
	}
	programs := Programs{}
	for _, m := range all {
		built, err := m.build(ctx, clusters, p)
		if err != nil {
			return nil, err
		}
		maps.Copy(programs, built)
	}
	return programs, nil
}

// buildOne builds the module and returns the path of one of its programs.
func (m module) buildOne(ctx context.Context, clusters, name string, p *progress) (string, error) {
	programs, err := m.build(ctx, clusters, p)
	return programs.Path(name), err
}

// build builds the module's programs if the cache does not have them.
func (m module) build(ctx context.Context, clusters string, p *progress) (Programs, error) {
	bin, err := m.cacheFolder(ctx, clusters)
	if err != nil {
		return nil, err
	}
	if err := m.buildInto(ctx, filepath.Join(clusters, m.folder), bin, p); err != nil {
		return nil, fmt.Errorf("build %s: %w", m.folder, err)
	}
	programs := Programs{}
	for name := range m.packages {
		programs[name] = filepath.Join(bin, name)
	}
	return programs, nil
}

// cacheFolder returns the folder of the cache for the module's programs. It
// exists if they are built.
func (m module) cacheFolder(ctx context.Context, clusters string) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	version, err := goCommand(ctx, clusters, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", fmt.Errorf("ask go for its version: %w", err)
	}
	key, err := m.key(os.DirFS(filepath.Join(clusters, m.folder)), string(version))
	if err != nil {
		return "", fmt.Errorf("read module %s: %w", m.folder, err)
	}
	return filepath.Join(cache, key), nil
}

// key returns a hash of everything that the module's programs are built from.
// Equal keys mean equal programs.
func (m module) key(dir fs.FS, goVersion string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", goVersion, m.flags)
	for _, name := range slices.Sorted(maps.Keys(m.packages)) {
		fmt.Fprintf(h, "%q %q\n", name, m.packages[name])
	}
	mod, sum := m.files()
	for _, name := range []string{mod, sum} {
		b, err := fs.ReadFile(dir, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%q %d\n%s", "go"+filepath.Ext(name), len(b), b)
	}
	return m.folder + "-" + hex.EncodeToString(h.Sum(nil)[:8]), nil
}

func (m module) buildInto(ctx context.Context, dir, bin string, p *progress) error {
	if exists(bin) {
		return nil
	}
	unlock, err := lockFile(ctx, bin+".lock", func() { p.logf("waiting for another build of %s", m.folder) })
	if err != nil {
		return err
	}
	defer unlock()
	if exists(bin) { // another process has built it
		return nil
	}
	// The programs are built in another folder, which is renamed at the end. So a
	// folder with the right name is complete.
	aside := bin + ".partial"
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := os.MkdirAll(aside, 0o755); err != nil {
		return err
	}
	p.logf("building %s (minutes the first time)", strings.Join(slices.Sorted(maps.Keys(m.packages)), ", "))
	mod, _ := m.files()
	args := append([]string{"build", "-modfile=" + mod, "-o", aside + "/"}, m.flags...)
	args = append(args, slices.Sorted(maps.Values(m.packages))...)

	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		m.watch(aside, p, done)
	}()
	_, err = goCommand(ctx, dir, args...)
	close(done)
	<-watched
	if err != nil {
		return err
	}
	for name, pkg := range m.packages {
		if err := os.Rename(filepath.Join(aside, builtName(pkg)), filepath.Join(aside, name)); err != nil {
			return err
		}
	}
	return os.Rename(aside, bin)
}

// watch reports each program when the go command has written it.
func (m module) watch(dir string, p *progress, done <-chan struct{}) {
	waiting := maps.Clone(m.packages)
	look := func() {
		for _, name := range slices.Sorted(maps.Keys(waiting)) {
			if exists(filepath.Join(dir, builtName(waiting[name]))) {
				p.logf("built %s", name)
				delete(waiting, name)
			}
		}
	}
	t := time.NewTicker(500 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			look()
		case <-done:
			look()
			return
		}
	}
}

// builtName returns the file name that go build gives a main package: the last
// element of its path that is not a major version.
func builtName(pkg string) string {
	elements := strings.Split(pkg, "/")
	last := elements[len(elements)-1]
	if len(elements) > 1 && len(last) > 1 && last[0] == 'v' && strings.Trim(last[1:], "0123456789") == "" {
		last = elements[len(elements)-2]
	}
	return last
}

// goCommand runs the go command in a folder and returns its output.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, lastLines(errs.Bytes(), 20))
	}
	return out.Bytes(), nil
}

// sourceRoot returns the folder of weir's source. The programs' modules and the
// workload's image are built from it.
func sourceRoot(ctx context.Context) (string, error) {
	out, err := goCommand(ctx, "", "list", "-m", "-f", "{{.Dir}}", product)
	root := strings.TrimSpace(string(out))
	if err != nil || root == "" {
		return "", fmt.Errorf("find the source of %s: run this inside its tree: %w", product, errors.Join(err))
	}
	return root, nil
}

// cacheDir returns the folder of programs and, by default, of clusters.
func cacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache folder: %w", err)
	}
	return filepath.Join(cache, "weir-cluster"), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// lastLines returns the last n lines of a log.
func lastLines(b []byte, n int) string {
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
