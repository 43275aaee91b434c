package guard

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestProcessorsOfTheMachine counts them in a process that may use only one.
func TestProcessorsOfTheMachine(t *testing.T) {
	const inChild = "WEIR_TEST_ONE_PROCESSOR"
	if os.Getenv(inChild) != "" {
		fmt.Printf("may use %d of %d\n", runtime.NumCPU(), processors())
		return
	}
	runtime.LockOSThread() // the thread ends with the test, and its affinity with it
	var one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; one.Count() > 1; cpu++ {
		one.Clear(cpu)
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), inChild+"=1")
	out, err := child.CombinedOutput()
	if want := fmt.Sprintf("may use 1 of %d\n", runtime.NumCPU()); err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v, %s\nwant %s", err, out, want)
	}
}
