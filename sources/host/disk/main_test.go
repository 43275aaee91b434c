//go:build linux

package disk

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// rootEnv is an environment variable that makes the test binary a process with another root: see
// startIn.
const rootEnv = "WEIR_DISK_TEST_ROOT"

func TestMain(m *testing.M) {
	if root := os.Getenv(rootEnv); root != "" {
		if err := unix.Chroot(root); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ready")
		bufio.NewReader(os.Stdin).ReadByte() // it runs until its parent closes the pipe
		return
	}
	goleak.VerifyTestMain(m)
}

// startIn starts a process with the given root, and returns its ID.
func startIn(t *testing.T, root string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), rootEnv+"="+root)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("a process in %s said %q", root, line)
	}
	return cmd.Process.Pid
}

// truth returns the usage of a path according to du.
func truth(t testing.TB, path string) diskUse {
	t.Helper()
	ask := func(flag string) uint64 {
		out, err := exec.Command("du", "-s", "-x", flag, path).Output()
		if err != nil {
			t.Fatalf("du %s %s: %v", flag, path, err)
		}
		n, err := strconv.ParseUint(strings.Fields(string(out))[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return diskUse{bytes: ask("--block-size=1"), inodes: ask("--inodes")}
}

// write creates a file of n bytes and its parents.
func write(t testing.TB, n int, parts ...string) string {
	t.Helper()
	file := filepath.Join(parts...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, make([]byte, n), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// mount mounts a file system until the end of the test. It skips the test if that is not allowed.
func mount(t testing.TB, what, on, kind, data string) {
	t.Helper()
	if err := os.MkdirAll(on, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(what, on, kind, 0, data); err != nil {
		if err == unix.EPERM || err == unix.EACCES {
			t.Skipf("mount %s: %v: it takes CAP_SYS_ADMIN", kind, err)
		}
		t.Fatalf("mount %s on %s: %v", kind, on, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(on, 0); err != nil {
			t.Errorf("unmount %s: %v", on, err)
		}
	})
}

func count(t testing.TB, path string) diskUse {
	t.Helper()
	u, err := countTree(context.Background(), path, newPace(1))
	if err != nil {
		t.Fatal(err)
	}
	return u
}
