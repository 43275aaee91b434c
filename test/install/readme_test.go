//go:build e2e

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/test/cluster/harness"
	"github.com/weir-metrics/weir/test/memoryload"
	"github.com/weir-metrics/weir/test/pages"
)

func TestMain(m *testing.M) {
	memoryload.Child() // if this process is one
	goleak.VerifyTestMain(m)
}

const root = "../.."

// stepsOf returns the commands of the console blocks below a heading of a page, up to the next
// heading, with what they print. A comment after a command is cut off.
func stepsOf(t *testing.T, page, heading string) []pages.Step {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n"+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	steps, err := pages.Steps(strings.ReplaceAll(section, "```console\n", "```console run\n"))
	if err != nil || len(steps) == 0 {
		t.Fatalf("%s has no commands below %q: %v", page, heading, err)
	}
	for i := range steps {
		command, _, _ := strings.Cut(steps[i].Command, "  #")
		steps[i].Command = strings.TrimSpace(command)
	}
	return steps
}

// shell runs a command in the root of the repository and returns what it prints.
func shell(ctx context.Context, t *testing.T, command string, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.Env = root, append(os.Environ(), env...)
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	t.Logf("$ %s  (%v)\n%s", command, time.Since(begin).Round(100*time.Millisecond), out)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return string(out)
}

// TestFirstCommands runs make run of README.md and then the commands that ask it, on a machine with the
// cgroups that the page shows. Each line of the page must be among those that a command prints.
func TestFirstCommands(t *testing.T) {
	steps := stepsOf(t, "README.md", "## Try it")
	if len(steps) != 4 || steps[0].Command != "make run" || steps[3].Command != "make test" {
		t.Fatalf("README.md has %+v, want make run, two commands and make test", steps)
	}
	makeCgroups(t)
	run := exec.Command("bash", "-c", "exec "+steps[0].Command)
	run.Dir = root
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // make, and weir below it
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	run.Stdout, run.Stderr = output, output
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Kill(-run.Process.Pid, syscall.SIGINT); err != nil {
			t.Error(err)
		}
		_ = run.Wait() // make reports the interrupt
		if text, _ := os.ReadFile(output.Name()); t.Failed() {
			t.Logf("$ %s\n%s", steps[0].Command, text)
		}
	}()
	await(t, steps[0].Command+" to print what the page shows", 5*time.Minute, func() error {
		text, err := os.ReadFile(output.Name())
		return errors.Join(err, shows(steps[0].Text, string(text)))
	})
	for _, step := range steps[1:3] {
		await(t, step.Command+" to print what the page shows", time.Minute, func() error {
			cmd := exec.Command("bash", "-c", step.Command)
			cmd.Dir, cmd.Env = root, append(os.Environ(), "NO_PROXY=*", "no_proxy=*")
			out, err := cmd.CombinedOutput()
			return errors.Join(err, shows(step.Text, string(out)))
		})
	}
}

// shows returns an error unless each line of a page is among those that a command printed. The name of
// the node and the unit of an amount may differ.
func shows(page, printed string) error {
	lines := slices.Collect(strings.Lines(printed))
	for line := range strings.Lines(strings.NewReplacer(`node="vm"`, `node="..."`, "Mi\n", "...i\n").Replace(page)) {
		like := func(l string) bool { return pages.Matches(pages.Step{Text: line}, l) }
		if line != "\n" && !slices.ContainsFunc(lines, like) {
			return fmt.Errorf("no line is like %q:\n%s", line, printed)
		}
	}
	return nil
}

// makeCgroups creates the cgroups that README.md shows, with a process that uses memory in each one
// without a child.
func makeCgroups(t *testing.T) {
	t.Helper()
	roots := []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/memory"}
	if memoryload.Version() == cgroupfs.V2 {
		roots = []string{"/sys/fs/cgroup"}
	}
	for _, path := range []string{"batch", "batch/import", "web", "idle"} {
		var dirs []string
		for _, root := range roots {
			dir := filepath.Join(root, path)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatalf("create a cgroup, as root: %v", err)
			}
			t.Cleanup(func() { memoryload.Remove(t, dir) })
			dirs = append(dirs, dir)
		}
		if path != "batch" {
			memoryload.Start(t, dirs...).Command("grow %d", 8<<20)
		} else if len(roots) == 1 { // version 2 counts memory in a child only if its parent says so
			if err := os.WriteFile(filepath.Join(dirs[0], "cgroup.subtree_control"), []byte("+memory"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// await calls do until it returns no error.
func await(t *testing.T, what string, atMost time.Duration, do func() error) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(atMost); ; <-tick.C {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("wait for %s: %v", what, err)
		}
	}
}

// TestQuickStart runs the commands that install weir in a cluster. Only ctr is not run itself: its
// command is done on the cluster's one node, which has its own containerd.
func TestQuickStart(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute) // the cluster's programs may have to be built
	defer cancel()
	c, err := harness.Start(ctx, harness.Options{Name: fmt.Sprintf("install-%d", os.Getpid()), Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Down(context.Background()); err != nil {
			t.Errorf("take the cluster down: %v", err)
		}
	})
	env := []string{"KUBECONFIG=" + c.Kubeconfig(), "PATH=" + c.BinaryDir("kubectl") + ":" + os.Getenv("PATH"), "KUBECACHEDIR=" + t.TempDir(), "NO_PROXY=*", "no_proxy=*"}
	load := regexp.MustCompile(`^ctr -n k8s\.io images import (\S+)$`)
	var last string
	for _, step := range stepsOf(t, "README.md", "## In a cluster") {
		if image := load.FindStringSubmatch(step.Command); image != nil {
			if err := c.LoadImage(ctx, filepath.Join(root, image[1])); err != nil {
				t.Fatal(err)
			}
			continue
		}
		last = shell(ctx, t, step.Command, env...)
	}
	if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(c.Node()) + ` +\d+m +\d+% +\d+Mi +\d+%`).MatchString(last) {
		t.Errorf("the last command shows no numbers of node %s", c.Node())
	}
	t.Run("doctor", func(t *testing.T) { testDoctor(ctx, t, env) })
}

// testDoctor checks that kubectl weir doctor finds nothing wrong in the new cluster, and what was taken
// from it.
func testDoctor(ctx context.Context, t *testing.T, env []string) {
	const doctor = "bin/kubectl-weir doctor --exit-code"
	out := shell(ctx, t, doctor, env...)
	for _, want := range []string{
		"v1beta1.metrics.k8s.io is served by weir-system/weir\n", "system:serviceaccount:weir-system:weir-kubelet-reader may read kubelets\n",
		"all use the cgroup driver ", " has CPU and memory. ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the doctor does not say %q", want)
		}
	}
	if strings.Contains(out, "\nskipped ") {
		t.Error("an administrator may read everything, and something is skipped")
	}
	shell(ctx, t, "kubectl delete clusterrolebinding weir:kubelet-reader", env...)
	out = shell(ctx, t, doctor+"; test $? = 2", env...)
	if want := "failure  weir's rights  system:serviceaccount:weir-system:weir-kubelet-reader may not get nodes/metrics\n"; !strings.Contains(out, want) {
		t.Errorf("without the binding of weir-kubelet-reader the doctor does not say %q", want)
	}
}
