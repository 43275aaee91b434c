//go:build e2e

package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-metrics/weir/test/cluster/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const root = "../.."

// commands returns the commands of the console blocks below a heading of README.md, up to the next
// heading. A comment after a command is cut off.
func commands(t *testing.T, heading string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n"+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			command, _, _ = strings.Cut(command, "  #")
			all = append(all, strings.TrimSpace(command))
		}
	}
	if !found || len(all) == 0 {
		t.Fatalf("README.md has no commands below %q", heading)
	}
	return all
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

// TestFirstCommands runs the first two commands of README.md. The third needs a cgroup with CPU, which
// not every machine has.
func TestFirstCommands(t *testing.T) {
	const address = "127.0.0.1:8087"
	first := commands(t, "## Try it")
	if len(first) < 2 || first[0] != "make run" {
		t.Fatalf("README.md begins with %q, want make run and a command", first)
	}
	run := exec.Command("bash", "-c", "exec "+first[0])
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
			t.Logf("$ %s\n%s", first[0], text)
		}
	}()
	await(t, first[0]+" to serve at "+address, 5*time.Minute, func() error {
		text, err := os.ReadFile(output.Name())
		if err == nil && !strings.Contains(string(text), "weir serves on http://"+address) {
			err = fmt.Errorf("it printed:\n%s", text)
		}
		return err
	})
	await(t, "two reads of this machine", time.Minute, func() error {
		out, err := exec.Command(filepath.Join(root, "bin", "weir"), "top", "cgroups", "/").CombinedOutput()
		if err == nil && !regexp.MustCompile(`(?m)^/ +\d+m +\d`).Match(out) {
			err = fmt.Errorf("it printed:\n%s", out)
		}
		return err
	})
	if out := shell(t.Context(), t, first[1]); !regexp.MustCompile(`(?m)^/ +\d+m +\d`).MatchString(out) {
		t.Errorf("%s shows no CPU and memory of /", first[1])
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
	for _, command := range commands(t, "## In a cluster") {
		if image := load.FindStringSubmatch(command); image != nil {
			if err := c.LoadImage(ctx, filepath.Join(root, image[1])); err != nil {
				t.Fatal(err)
			}
			continue
		}
		last = shell(ctx, t, command, env...)
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
