//go:build linux

package harness

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// nodeScript is the script of the process that keeps the cluster's namespaces
// open.
//
//go:embed node.sh
var nodeScript []byte

// holder is the name of that process.
const holder = "node"

// A component is a process of the cluster.
type component struct {
	name    string
	path    string
	args    []string
	address string // where it serves, as text for people
	health  string // URL that answers 200 when it is ready; if empty, it is ready at once
}

// launch is a script with the arguments LOG, cgroup folders, "--" and a
// command. It runs the command in the background and prints its process ID. It
// joins the cgroups first, so that everything the command starts is in them.
const launch = `log=$1; shift
while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs" || exit 1; shift; done; shift
setsid "$@" </dev/null >>"$log" 2>&1 &
echo $!`

// hold starts the process that keeps the cluster's namespaces open, and
// connects them.
func (c *Cluster) hold(ctx context.Context) error {
	script := filepath.Join(c.dir, "node.sh")
	if err := os.WriteFile(script, nodeScript, 0o700); err != nil {
		return fmt.Errorf("write script: %w", err)
	}
	disk, err := c.options.NodeDisk.args()
	if err != nil {
		return err
	}
	p, err := c.launch(ctx, component{name: holder, path: "unshare", args: append([]string{
		"--mount", "--net", "--propagation", "private", "--", "sh", script, c.dir,
	}, disk...)}, nil)
	if err != nil {
		return err
	}
	ready := filepath.Join(c.dir, "node", "ready")
	if err := c.await(ctx, p, func() bool { return exists(ready) }); err != nil {
		return err
	}
	if err := connect(ctx, &c.state, p.PID); err != nil {
		return err
	}
	return c.state.write(c.dir)
}

// StartProcess starts a program on the node, outside any pod. The program has
// the node's addresses, mounts and cgroup, and its output is in [Cluster.Log].
// StartProcess returns when the URL health answers with status 200, or at once
// if health is empty. Down ends the program.
func (c *Cluster) StartProcess(ctx context.Context, name, path string, args []string, health string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("start process %q: use lower-case letters, digits and dashes for its name", name)
	}
	return c.run(ctx, component{name: name, path: path, args: args, health: health})
}

// group returns the cgroup of one of the cluster's processes.
func (c *Cluster) group(process string) cgroup {
	return cgroup(c.state.Cgroup).child("system").child(process)
}

// StopProcess ends a process of the cluster, such as "kubelet" or one that
// StartProcess started, and waits until it has ended.
func (c *Cluster) StopProcess(ctx context.Context, name string) error {
	if name == holder {
		return errors.New("stop process: the node holds everything else; use Down")
	}
	if _, ok := c.process(name); !ok {
		return fmt.Errorf("stop process: cluster %s has no %q", c.state.Name, name)
	}
	return c.group(name).kill(ctx)
}

// KillProcess ends a process as a crash does: the processes that it started
// continue. It returns when the process has ended.
func (c *Cluster) KillProcess(ctx context.Context, name string) error {
	p, ok := c.process(name)
	if !ok || name == holder {
		return fmt.Errorf("kill process: cluster %s has no %q to kill", c.state.Name, name)
	}
	if !p.Alive() {
		return nil
	}
	if err := unix.Kill(p.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := poll(ctx, 10*time.Millisecond, func() (bool, error) { return !p.Alive(), nil }); err != nil {
		return fmt.Errorf("kill process %s: %w", name, err)
	}
	return nil
}

// PauseProcess stops a process with SIGSTOP: it keeps its connections and does
// not answer. ResumeProcess continues it.
func (c *Cluster) PauseProcess(name string) error { return c.signal(name, unix.SIGSTOP) }

// ResumeProcess undoes PauseProcess.
func (c *Cluster) ResumeProcess(name string) error { return c.signal(name, unix.SIGCONT) }

func (c *Cluster) signal(name string, s unix.Signal) error {
	p, ok := c.process(name)
	if !ok || !p.Alive() {
		return fmt.Errorf("signal process: cluster %s runs no %q", c.state.Name, name)
	}
	if err := unix.Kill(p.PID, s); err != nil {
		return fmt.Errorf("signal process %s: %w", name, err)
	}
	return nil
}

// run starts a component in the cluster's namespaces and waits until it is
// healthy.
func (c *Cluster) run(ctx context.Context, k component) error {
	node, ok := c.process(holder)
	if !ok || !node.Alive() {
		return fmt.Errorf("start %s: the process that holds the cluster's namespaces has ended", k.name)
	}
	p, err := c.launch(ctx, k, enter(node))
	if err != nil || k.health == "" {
		return err
	}
	client := prober()
	return c.await(ctx, p, func() bool { return healthy(ctx, client, k.health) == nil })
}

// enter is the command that runs another one in the namespaces of a process.
func enter(node Process) []string {
	return []string{"nsenter", "--target", strconv.Itoa(node.PID), "--mount", "--net", "--"}
}

func (c *Cluster) launch(ctx context.Context, k component, within []string) (Process, error) {
	group := c.group(k.name)
	if err := group.make(false); err != nil {
		return Process{}, fmt.Errorf("start %s: %w", k.name, err)
	}
	dirs, err := group.dirs()
	if err != nil {
		return Process{}, err
	}
	args := slices.Concat(within, []string{"sh", "-c", launch, "sh", c.Log(k.name)}, dirs, []string{"--", k.path}, k.args)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	// The caller's environment is not passed on, because its proxies and debugging
	// switches are not for the cluster. containerd finds its shim in PATH.
	cmd.Env = []string{"PATH=" + c.BinaryDir("containerd") + ":/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + c.dir}
	out, err := output(cmd)
	if err != nil {
		return Process{}, fmt.Errorf("start %s: %w", k.name, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		return Process{}, fmt.Errorf("start %s: no process number in %q", k.name, out)
	}
	p := Process{Name: k.name, PID: pid, Address: k.address, Health: k.health}
	if p.Started, _, err = processStat(pid); err != nil {
		return Process{}, fmt.Errorf("start %s: it ended at once\n%s", k.name, c.tail(k.name))
	}
	return p, c.remember(p)
}

// await polls until ready returns true or the process ends.
func (c *Cluster) await(ctx context.Context, p Process, ready func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 90*time.Second, errors.New("not ready after 90s"))
	defer cancel()
	err := poll(ctx, 50*time.Millisecond, func() (bool, error) {
		if ready() {
			return true, nil
		}
		if !p.Alive() {
			return false, errors.New("it ended")
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("start %s: %w\n%s", p.Name, err, c.tail(p.Name))
	}
	return nil
}

// tail returns the end of a component's log, for an error.
func (c *Cluster) tail(name string) string {
	b, err := os.ReadFile(c.Log(name))
	if err != nil || len(b) == 0 {
		return "  its log is empty: " + c.Log(name)
	}
	return "  last lines of " + c.Log(name) + ":\n    " + strings.ReplaceAll(lastLines(b, 15), "\n", "\n    ")
}

// remember adds a process to the state, or replaces the one of the same name.
func (c *Cluster) remember(p Process) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Processes = slices.DeleteFunc(c.state.Processes, func(q Process) bool { return q.Name == p.Name })
	c.state.Processes = append(c.state.Processes, p)
	return c.state.write(c.dir)
}

func (c *Cluster) process(name string) (Process, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.state.Processes {
		if p.Name == name {
			return p, true
		}
	}
	return Process{}, false
}

// prober returns the client of healthy.
func prober() *http.Client {
	return &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // it only checks whether the process answers
		},
	}
}

func healthy(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
	return nil
}
