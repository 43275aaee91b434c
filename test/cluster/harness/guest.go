//go:build linux

package harness

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The command channel to a virtual machine (test/cluster/guest): an address of
// the link that is the same in every machine and valid only on it, because a
// machine that starts from a snapshot does not know its cluster yet.
const (
	guestAddress  = "169.254.77.2:77"
	gatewayPrefix = "169.254.77.1/30"
)

// guestClient returns a client that connects to the virtual machine from inside
// the cluster's network namespace.
func (c *Cluster) guestClient() (*http.Client, error) {
	node, ok := c.process(holder)
	if !ok || !node.Alive() {
		return nil, fmt.Errorf("call the virtual machine: cluster %s does not run", c.state.Name)
	}
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialIn(ctx, fmt.Sprintf("/proc/%d/ns/net", node.PID), guestAddress)
		},
	}}, nil
}

// dialIn connects to an IP address and port from a network namespace.
func dialIn(ctx context.Context, namespace, address string) (net.Conn, error) {
	type result struct {
		net.Conn
		error
	}
	done := make(chan result, 1)
	go func() {
		// The thread ends with this goroutine, because it is not unlocked: no other
		// goroutine runs in that namespace.
		runtime.LockOSThread()
		f, err := os.Open(namespace)
		if err != nil {
			done <- result{nil, err}
			return
		}
		defer f.Close()
		if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- result{nil, fmt.Errorf("enter network namespace: %w", err)}
			return
		}
		conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp4", address)
		done <- result{conn, err}
	}()
	r := <-done
	return r.Conn, r.error
}

// GuestError is a command of [Cluster.Guest] that did not end with exit code 0.
type GuestError struct {
	Args   []string
	Exit   int    // -1 if it did not start, or was killed
	Stderr string // its last lines
}

func (e *GuestError) Error() string {
	return fmt.Sprintf("%s: exit code %d: %s", strings.Join(e.Args, " "), e.Exit, strings.TrimSpace(e.Stderr))
}

// A GuestCommand is a command for the virtual machine of a cluster.
type GuestCommand struct {
	Args   []string
	Dir    string    // default: /
	Stdin  io.Reader // default: empty
	Stdout io.Writer // default: none
}

// Guest runs a command as root in the cluster's virtual machine, outside any
// pod and any unit, and waits until it ends. If ctx ends, the command is killed.
// Only a cluster whose node is a virtual machine has one. An error is a
// [*GuestError] if the command ran.
func (c *Cluster) Guest(ctx context.Context, command GuestCommand) error {
	client, err := c.guestClient()
	if err != nil {
		return err
	}
	args, err := json.Marshal(command.Args)
	if err != nil {
		return err
	}
	machine, ok := c.process(machineProcess)
	if !ok {
		return fmt.Errorf("call the virtual machine: cluster %s has none", c.state.Name)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // an ended machine does not close its connections
		if poll(ctx, 500*time.Millisecond, func() (bool, error) { return !machine.Alive(), nil }) == nil {
			cancel(errors.New("it has ended"))
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://guest/run", command.Stdin)
	if err != nil {
		return err
	}
	req.Header.Set("Args", string(args))
	req.Header.Set("Dir", command.Dir)
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("call the virtual machine: %w", errors.Join(context.Cause(ctx), err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return guestRefusal(resp)
	}
	out := command.Stdout
	if out == nil {
		out = io.Discard
	}
	if _, err := io.Copy(out, resp.Body); err != nil {
		return fmt.Errorf("call the virtual machine: %w", errors.Join(context.Cause(ctx), err))
	}
	exit, err := strconv.Atoi(resp.Trailer.Get("Exit"))
	if err != nil {
		return fmt.Errorf("call the virtual machine: no exit code: %w", err)
	}
	if exit == 0 {
		return nil
	}
	failed := &GuestError{Args: command.Args, Exit: exit}
	if err := json.Unmarshal([]byte(resp.Trailer.Get("Stderr")), &failed.Stderr); err != nil {
		return fmt.Errorf("call the virtual machine: %w", err)
	}
	return failed
}

// GuestOutput runs a command in the virtual machine and returns its standard
// output.
func (c *Cluster) GuestOutput(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	err := c.Guest(ctx, GuestCommand{Args: args, Stdout: &out})
	return out.String(), err
}

// wake sets the clock of a machine that was started from a snapshot, and gives it
// random numbers of its own.
func (c *Cluster) wake(ctx context.Context) error {
	client, err := c.guestClient()
	if err != nil {
		return err
	}
	seed := make([]byte, 32)
	rand.Read(seed)                                        // it never returns an error
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // it may have to boot first
	defer cancel()
	var last error
	err = poll(ctx, 50*time.Millisecond, func() (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://guest/wake", bytes.NewReader(seed))
		if err != nil {
			return false, err
		}
		req.Header.Set("Now", strconv.FormatInt(time.Now().UnixNano(), 10))
		resp, err := client.Do(req)
		if last = err; err != nil {
			return false, nil // it is not up yet
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return false, guestRefusal(resp)
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("wake the virtual machine: %w", errors.Join(err, last))
	}
	return nil
}

func guestRefusal(resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // what can be read of a refusal
	return fmt.Errorf("call the virtual machine: %s: %s", resp.Status, strings.TrimSpace(string(b)))
}
