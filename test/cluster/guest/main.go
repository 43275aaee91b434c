//go:build linux

// Command guest runs in a cluster's virtual machine, as root, and runs the
// commands that the harness sends: a shell without a login. It serves HTTP on
// the address of its first argument, and answers only the address of its
// second.
//
//	POST /run   runs a command: header Args is a JSON list, Dir a folder; the
//	            body is its standard input, the answer its standard output. The
//	            trailers are Exit, its exit code, and Stderr, as JSON.
//	POST /wake  after the machine was started from a snapshot: header Now is the
//	            time in nanoseconds, the body is random bytes.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: guest LISTEN CLIENT")
		os.Exit(2)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /run", run)
	mux.HandleFunc("POST /wake", wake)
	server := &http.Server{
		Addr: os.Args[1],
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if host, _, err := net.SplitHostPort(r.RemoteAddr); err != nil || host != os.Args[2] {
				http.Error(w, "not for you", http.StatusForbidden) // a pod
				return
			}
			mux.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: time.Minute,
	}
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
	os.Exit(1)
}

// maxStderr is how many bytes of a command's standard error the answer has, the
// last ones.
const maxStderr = 16 << 10

// run runs a command. The command and the processes that it started end when
// the client closes the connection.
func run(w http.ResponseWriter, r *http.Request) {
	var args []string
	if err := json.Unmarshal([]byte(r.Header.Get("Args")), &args); err != nil || len(args) == 0 {
		http.Error(w, "header Args: want a JSON list of strings", http.StatusBadRequest)
		return
	}
	control := http.NewResponseController(w)
	if err := control.EnableFullDuplex(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Trailer", "Exit, Stderr")
	var errs bytes.Buffer
	cmd := exec.CommandContext(r.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = r.Header.Get("Dir"), r.Body, flusher{w, control}, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for processes that it left in the background with its output
	err := cmd.Run()
	exit := cmd.ProcessState.ExitCode()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) && !errors.Is(err, exec.ErrWaitDelay) {
		exit = -1
		fmt.Fprintln(&errs, err)
	}
	last := errs.Bytes()[max(0, errs.Len()-maxStderr):]
	text, _ := json.Marshal(string(last)) // a string can always be marshalled
	w.Header().Set("Exit", strconv.Itoa(exit))
	w.Header().Set("Stderr", string(text))
}

// flusher sends output at once.
type flusher struct {
	io.Writer
	control *http.ResponseController
}

func (f flusher) Write(b []byte) (int, error) {
	n, err := f.Writer.Write(b)
	return n, errors.Join(err, f.control.Flush())
}

// wake sets the clock, and makes the kernel's random numbers differ from those
// of another machine that was started from the same snapshot.
func wake(w http.ResponseWriter, r *http.Request) {
	if err := func() error {
		now, err := strconv.ParseInt(r.Header.Get("Now"), 10, 64)
		if err != nil {
			return fmt.Errorf("header Now: %w", err)
		}
		spec := unix.NsecToTimespec(now)
		if err := unix.ClockSettime(unix.CLOCK_REALTIME, &spec); err != nil {
			return fmt.Errorf("set clock: %w", err)
		}
		seed, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64))
		if err != nil {
			return err
		}
		return addEntropy(seed)
	}(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// addEntropy mixes a seed into the kernel's random numbers: ioctls
// RNDADDENTROPY with struct rand_pool_info, and RNDRESEEDCRNG
// (linux/random.h).
func addEntropy(seed []byte) error {
	f, err := os.OpenFile("/dev/urandom", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info := struct {
		bits, bytes int32
		seed        [64]byte
	}{bits: int32(8 * len(seed)), bytes: int32(len(seed))} // at most 64 bytes
	copy(info.seed[:], seed)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.RNDADDENTROPY, uintptr(unsafe.Pointer(&info))); errno != 0 { // the ioctl reads a struct
		return fmt.Errorf("add entropy: %w", errno)
	}
	if err := unix.IoctlSetInt(int(f.Fd()), unix.RNDRESEEDCRNG, 0); err != nil {
		return fmt.Errorf("reseed: %w", err)
	}
	return nil
}
