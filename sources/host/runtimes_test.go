//go:build linux

package host

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

// TestRuntimes starts a pod's containers in Docker, and in conmon and runc as CRI-O starts them. It
// checks that each cgroup is reported as the pod, as the container or as neither, and that the
// containers have the kernel's CPU time.
//
// Docker's paths of the systemd driver need a running systemd, in which Docker makes its scopes.
// Where systemd does not run, the test makes CRI-O's paths of that driver itself.
func TestRuntimes(t *testing.T) {
	_, err := os.Stat("/run/systemd/system")
	systemd := err == nil
	for _, driver := range []string{"cgroupfs", "systemd"} {
		t.Run("docker/"+driver, func(t *testing.T) {
			requirePrograms(t, "dockerd", "docker", "containerd", "runc")
			if driver == "systemd" && !systemd {
				t.Skip("systemd does not run here: Docker cannot use its cgroup driver")
			}
			p := newRuntimePod(t, driver)
			docker := startDocker(t, driver)
			for _, name := range []string{"sandbox", "app"} {
				id := docker("run", "--detach", "--network=none", "--cgroup-parent="+p.parent, "--env="+roleEnv+"=pauser", "burner", "/burner")
				p.add(name, id, map[string]string{"cgroupfs": id, "systemd": "docker-" + id + ".scope"}[driver])
				t.Cleanup(func() { docker("rm", "--force", id) })
			}
			p.check(t)
		})
		t.Run("crio/"+driver, func(t *testing.T) {
			requirePrograms(t, "conmon", "runc")
			p := newRuntimePod(t, driver)
			for _, name := range []string{"sandbox", "app"} {
				var random [32]byte
				rand.Read(random[:])
				id := hex.EncodeToString(random[:])
				suffix := map[string]string{"systemd": ".scope"}[driver]
				c := conmonContainer{id: id, conmonCgroup: path.Join(p.path, "crio-conmon-"+id+suffix)}
				c.cgroupsPath = path.Join(p.path, "crio-"+id+suffix)
				if driver == "systemd" && systemd {
					c.cgroupsPath, c.slice = p.parent+":crio:"+id, p.parent
				}
				c.start(t)
				p.add(name, id, "crio-"+id+suffix)
				p.want[metric.CgroupPath(c.conmonCgroup)] = reportedCgroup{Entity: metric.Entity{Kind: metric.System, Node: "n1", Name: c.conmonCgroup}}
			}
			p.check(t)
		})
	}
}

func requirePrograms(t *testing.T, names ...string) {
	t.Helper()
	cgroupRoot(t, "cpuacct")
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%v: install Debian's docker.io (dockerd, docker, containerd), conmon and runc", err)
		}
	}
}

// reportedCgroup is what a Host says about a cgroup.
type reportedCgroup struct {
	metric.Entity
	UID metric.PodUID
	ID  metric.ContainerID
}

// runtimePod is a pod of the class Burstable, below a cgroup root of its own (the kubelet's
// --cgroup-root), so that it cannot meet the cgroups of a kubelet on this machine.
type runtimePod struct {
	parent string // what the kubelet gives the runtime as the cgroup of the pod
	path   string // the pod's cgroup
	facts  cluster.Pod
	want   map[metric.CgroupPath]reportedCgroup
}

func newRuntimePod(t *testing.T, driver string) *runtimePod {
	t.Helper()
	const uid = "73296cad-fda8-4a1c-bff9-cb1de73626a6"
	root := fmt.Sprintf("weirtest%d", os.Getpid())
	p := &runtimePod{path: "/" + root + "/kubepods/burstable/pod" + uid}
	p.parent = p.path
	if driver == "systemd" {
		p.path = ""
		for i, part := range []string{root, "kubepods", "burstable", "pod" + strings.ReplaceAll(uid, "-", "_")} {
			if i > 0 {
				part = p.parent + "-" + part
			}
			p.parent = part
			p.path += "/" + part + ".slice"
		}
		p.parent += ".slice"
		root += ".slice"
	}
	p.facts = cluster.Pod{PodRef: metric.PodRef{Namespace: "shop", Name: "web"}, UID: uid, Node: "n1"}
	p.want = map[metric.CgroupPath]reportedCgroup{
		"/":                       {Entity: metric.Entity{Kind: metric.Node, Node: "n1"}},
		metric.CgroupPath(p.path): {Entity: metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: "web"}, UID: uid},
	}
	t.Cleanup(func() { removeCgroups(t, root) })
	return p
}

// add adds a container that the runtime has started. The API server does not know of sandboxes, so
// they are reported by their IDs.
func (p *runtimePod) add(name, id, cgroup string) {
	e := metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: "web", Name: id}
	if name != "sandbox" {
		p.facts.Containers = append(p.facts.Containers, cluster.Container{Name: name, ID: metric.ContainerID(id)})
		e.Name = name
	}
	p.want[metric.CgroupPath(path.Join(p.path, cgroup))] = reportedCgroup{e, p.facts.UID, metric.ContainerID(id)}
}

// check reads the pod's cgroups.
func (p *runtimePod) check(t *testing.T) {
	t.Helper()
	var none *cluster.Facts
	facts := none.With(cluster.FactsChange{Synced: true, Pods: []*cluster.Pod{&p.facts}})
	h := newHost(t, Options{Node: "n1", Prefixes: []string{p.path}, Facts: func() *cluster.Facts { return facts }})
	usage := func() map[metric.CgroupPath]uint64 {
		all := map[metric.CgroupPath]uint64{}
		for at, c := range p.want {
			if c.Kind == metric.Container {
				all[at] = kernelCPUTime(t, filepath.Join(cgroupRoot(t, "cpuacct")[0], string(at)))
			}
		}
		return all
	}
	before := usage()
	b := read(t, h)
	after := usage()
	got := map[metric.CgroupPath]reportedCgroup{}
	for i := range b.Samples {
		s := &b.Samples[i]
		if s.Entity.Part != "" {
			continue
		}
		got[s.Instance.Path] = reportedCgroup{s.Entity, s.Instance.UID, s.Instance.ID}
		if s.Entity.Kind != metric.Container {
			continue
		}
		if v := value(t, s, metric.CPUUsage); v == 0 || v < float64(before[s.Instance.Path]) || v > float64(after[s.Instance.Path]) {
			t.Errorf("%v: cpu/usage = %.0f, want the kernel's: %d before, %d after", s.Entity, v, before[s.Instance.Path], after[s.Instance.Path])
		}
		if s.Instance.Processes != 1 {
			t.Errorf("%v: %d processes, want 1", s.Entity, s.Instance.Processes)
		}
	}
	cmptest.Equal(t, fmt.Sprintf("cgroups below %s", p.path), p.want, got)
	for at := range got {
		t.Logf("%s: %v", at, got[at].Entity)
	}
}

// startDocker starts a Docker daemon with the image "burner", which has the test binary. It returns
// a function that runs a command of the client and returns its output.
func startDocker(t *testing.T, driver string) func(args ...string) string {
	t.Helper()
	dir := t.TempDir()
	host := "--host=unix://" + dir + "/docker.sock"
	daemon := exec.Command("dockerd", host, "--data-root="+dir+"/data", "--exec-root="+dir+"/run", "--pidfile="+dir+"/pid",
		"--exec-opt=native.cgroupdriver="+driver, "--storage-driver=vfs", "--bridge=none", "--iptables=false", "--ip-forward=false")
	stderr, err := daemon.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	lines := bufio.NewScanner(io.TeeReader(stderr, &log))
	ended := make(chan struct{})
	t.Cleanup(func() {
		daemon.Process.Signal(syscall.SIGTERM)
		<-ended
		if err := daemon.Wait(); err != nil || t.Failed() {
			t.Errorf("dockerd: %v\n%s", err, log.Bytes())
		}
	})
	for lines.Scan() && !strings.Contains(lines.Text(), "API listen on") {
	}
	go func() {
		defer close(ended)
		for lines.Scan() {
		}
	}()
	client := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("docker", append([]string{host}, args...)...).Output()
		if err != nil {
			t.Fatalf("docker %s: %v", strings.Join(args, " "), commandError(err))
		}
		return strings.TrimSpace(string(out))
	}
	root := burnerRoot(t)
	tarball := filepath.Join(dir, "root.tar")
	if out, err := exec.Command("tar", "-C", root, "-cf", tarball, ".").CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
	client("import", tarball, "burner")
	return client
}

// burnerRoot returns a directory that has the test binary as "burner". The binary is static.
func burnerRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	binary, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "burner"), binary, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// conmonContainer is a container that conmon starts with runc, as CRI-O does it.
type conmonContainer struct {
	id, conmonCgroup string
	cgroupsPath      string // of the container, in runc's form
	slice            string // the pod's slice in systemd; empty without systemd
}

// start starts the container. It gives conmon the arguments that CRI-O gives, and puts it in its
// cgroup before it lets it continue.
func (c *conmonContainer) start(t *testing.T) {
	t.Helper()
	bundle := t.TempDir()
	c.writeSpec(t, bundle)
	runc, err := exec.LookPath("runc")
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(bundle, "state")
	args := []string{"-b", bundle, "-c", c.id, "--exit-dir", bundle, "-l", filepath.Join(bundle, "log"), "--log-level", "error",
		"-n", "k8s_app_web_shop", "-P", filepath.Join(bundle, "conmon-pidfile"), "-p", filepath.Join(bundle, "pidfile"),
		"--persist-dir", bundle, "-r", runc, "--runtime-arg", "--root=" + state, "--socket-dir-path", bundle, "-u", c.id}
	runcArgs := []string{"--root=" + state}
	if c.slice != "" {
		args = append(args, "-s")
		runcArgs = append(runcArgs, "--systemd-cgroup")
	}
	conmon := exec.Command("conmon", args...)
	answer, answerIn := pipe(t)
	startOut, start := pipe(t)
	conmon.ExtraFiles = []*os.File{answerIn, startOut}
	conmon.Env = append(os.Environ(), "_OCI_SYNCPIPE=3", "_OCI_STARTPIPE=4")
	if err := conmon.Start(); err != nil {
		t.Fatal(err)
	}
	answerIn.Close()
	c.moveConmon(t, conmon.Process.Pid)
	if _, err := start.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	if err := conmon.Wait(); err != nil { // it has a child that goes on
		t.Fatalf("conmon: %v", err)
	}
	t.Cleanup(func() {
		// conmon ends after its container, and closes the pipe when it ends.
		if out, err := exec.Command("runc", append(runcArgs, "delete", "--force", c.id)...).CombinedOutput(); err != nil {
			t.Errorf("runc delete: %v: %s", err, out)
		}
		io.Copy(io.Discard, answer)
	})
	var created struct {
		Pid     int    `json:"pid"`
		Message string `json:"message"`
	}
	if err := json.NewDecoder(answer).Decode(&created); err != nil || created.Pid <= 0 {
		t.Fatalf("conmon: %v, %+v", err, created)
	}
	if out, err := exec.Command("runc", append(runcArgs, "start", c.id)...).CombinedOutput(); err != nil {
		t.Fatalf("runc start: %v: %s", err, out)
	}
}

func (c *conmonContainer) writeSpec(t *testing.T, bundle string) {
	t.Helper()
	cmd := exec.Command("runc", "spec")
	cmd.Dir = bundle
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("runc spec: %v: %s", err, out)
	}
	file := filepath.Join(bundle, "config.json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var spec map[string]any
	if err := json.Unmarshal(data, &spec); err != nil {
		t.Fatal(err)
	}
	spec["root"] = map[string]any{"path": burnerRoot(t)}
	spec["linux"].(map[string]any)["cgroupsPath"] = c.cgroupsPath
	process := spec["process"].(map[string]any)
	process["terminal"], process["args"], process["env"] = false, []string{"/burner"}, []string{roleEnv + "=pauser"}
	if data, err = json.Marshal(spec); err == nil {
		err = os.WriteFile(file, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// moveConmon puts conmon in its cgroup, as CRI-O does it with the configuration conmon_cgroup = "pod".
func (c *conmonContainer) moveConmon(t *testing.T, pid int) {
	t.Helper()
	if c.slice != "" {
		out, err := exec.Command("busctl", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
			"StartTransientUnit", "ssa(sv)a(sa(sv))", path.Base(c.conmonCgroup), "fail", "2",
			"PIDs", "au", "1", strconv.Itoa(pid), "Slice", "s", c.slice, "0").CombinedOutput()
		if err != nil {
			t.Fatalf("busctl: %v: %s", err, out)
		}
		// systemd answers before it has moved the process.
		for end := time.Now().Add(time.Minute); ; runtime.Gosched() {
			at, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
			if err == nil && strings.Contains(string(at), c.conmonCgroup) {
				return
			}
			if err != nil || time.Now().After(end) {
				t.Fatalf("conmon is in the cgroup %q, %v; want %s", at, err, c.conmonCgroup)
			}
		}
	}
	for _, dir := range makeCgroup(t, strings.TrimPrefix(c.conmonCgroup, "/"), cgroupRoot(t, "cpuacct", "memory", "pids")...) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			t.Fatalf("move conmon: %v", err)
		}
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func commandError(err error) error {
	if e, ok := err.(*exec.ExitError); ok {
		return fmt.Errorf("%w: %s", err, e.Stderr)
	}
	return err
}

// removeCgroups removes a cgroup in every hierarchy, with the cgroups below it. Their last
// processes may be about to end.
func removeCgroups(t *testing.T, name string) {
	t.Helper()
	roots := []string{"/sys/fs/cgroup"}
	if !version2Mounted() {
		roots, _ = filepath.Glob("/sys/fs/cgroup/*")
	}
	if strings.HasSuffix(name, ".slice") {
		_ = exec.Command("systemctl", "stop", name).Run() // systemd may not run
	}
	for _, root := range roots {
		var dirs []string
		filepath.WalkDir(filepath.Join(root, name), func(at string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, at)
			}
			return nil
		})
		for i := len(dirs) - 1; i >= 0; i-- {
			err := os.Remove(dirs[i])
			for end := time.Now().Add(10 * time.Second); errors.Is(err, syscall.EBUSY) && time.Now().Before(end); err = os.Remove(dirs[i]) {
				runtime.Gosched()
			}
			if err != nil {
				t.Errorf("remove cgroup: %v", err)
			}
		}
	}
}
