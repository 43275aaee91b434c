//go:build e2e && linux

package local

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-metrics/weir/test/commands"
	"github.com/weir-metrics/weir/test/pages"
)

// TestPages runs the marked commands of each page, as a reader does who pastes them one by one. A
// command that does not print what the page shows is run again for a while: the numbers of the first
// rates need some seconds.
func TestPages(t *testing.T) {
	t.Parallel()
	bin := filepath.Dir(commands.Path(t, "weir"))
	all, err := pages.All("../..")
	if err != nil {
		t.Fatal(err)
	}
	for page, steps := range all {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			s := startShell(t, bin)
			for _, step := range steps {
				s.do(t, page, step)
			}
		})
	}
}

// driver reads a command and the name of a file, each ended by a zero byte, runs the command with its
// output in the file, and reports the exit status. It is one shell for all commands of a page.
const driver = `
ip link set lo up && echo 0 >&4 || exit
while read -r -u 3 -d '' command && read -r -u 3 -d '' output; do
	eval "$command" >"$output" 2>&1 </dev/null
	echo $? >&4
done
kill $(jobs -p) 2>/dev/null
wait`

// shell is a shell in a folder and a network of its own, so that the ports of a page are free and
// nothing but the machine itself can be reached.
type shell struct {
	dir    string   // the reader's working folder
	out    string   // the folder of the outputs
	input  *os.File // to the driver
	status *os.File // from the driver
	lines  *bufio.Reader
	shown  []string // the files of the outputs so far
}

func startShell(t *testing.T, bin string) *shell {
	t.Helper()
	s := &shell{dir: t.TempDir(), out: t.TempDir()}
	if err := os.Symlink(bin, filepath.Join(s.dir, "bin")); err != nil {
		t.Fatal(err)
	}
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		return r, w
	}
	commandsRead, input := pipe()
	status, statusWrite := pipe()
	s.input, s.status, s.lines = input, status, bufio.NewReader(status)
	cmd := exec.Command("bash", "-c", driver)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+s.dir, "KUBECONFIG=", "NO_PROXY=*", "no_proxy=*")
	cmd.ExtraFiles = []*os.File{commandsRead, statusWrite}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setpgid: true}
	err := cmd.Start()
	_ = commandsRead.Close()
	_ = statusWrite.Close()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("a network of its own needs root: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		timer := time.AfterFunc(15*time.Second, func() {
			t.Error("what the page has started does not end within 15 s of SIGTERM")
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		})
		_ = cmd.Wait()
		timer.Stop()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what outlived the shell
		_ = status.Close()
		for _, name := range s.shown {
			if text, _ := os.ReadFile(name); t.Failed() {
				t.Logf("%s:\n%s", filepath.Base(name), text)
			}
		}
	})
	if _, err := s.ended(); err != nil {
		t.Fatalf("set up the loopback interface with ip of iproute2: %v", err)
	}
	return s
}

// ended returns the exit status of the command that the driver was given.
func (s *shell) ended() (int, error) {
	if err := s.status.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return 0, err
	}
	line, err := s.lines.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line))
}

// do writes the step's file, or runs its command until it prints what the page shows. A command of
// which the page shows nothing runs once, and must succeed.
func (s *shell) do(t *testing.T, page string, step pages.Step) {
	t.Helper()
	if step.File != "" {
		if err := os.WriteFile(filepath.Join(s.dir, step.File), []byte(step.Text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	output := filepath.Join(s.out, fmt.Sprintf("line %d", step.Line))
	s.shown = append(s.shown, output)
	if step.Background() {
		s.run(t, step, output)
	}
	try := func() error {
		status := 0
		if !step.Background() {
			status = s.run(t, step, output)
		}
		printed, err := os.ReadFile(output)
		if err != nil {
			return err
		}
		if (status != 0) != step.Fails() || !pages.Matches(step, string(printed)) {
			return fmt.Errorf("%s:%d: %s\nended with status %d and printed:\n%s\nthe page shows:\n%s", page, step.Line, step.Command, status, printed, step.Text)
		}
		return nil
	}
	if step.Text != "" {
		commands.Eventually(t, 20*time.Second, try)
	} else if err := try(); err != nil {
		t.Fatal(err)
	}
}

// run runs the step's command with its output in a file, and returns the exit status.
func (s *shell) run(t *testing.T, step pages.Step, output string) int {
	t.Helper()
	if _, err := fmt.Fprintf(s.input, "%s\x00%s\x00", step.Command, output); err != nil {
		t.Fatal(err)
	}
	status, err := s.ended()
	if err != nil {
		t.Fatalf("line %d: %s: %v", step.Line, step.Command, err)
	}
	return status
}
