// Command workload runs in the containers of test pods. It consumes known
// amounts of CPU, memory, disk and network, so that the numbers of a metrics
// pipeline can be checked. It needs no other files. It is also the sandbox
// image (pause) of clusters that cannot pull images.
//
// It keeps its CPU usage at a level by feedback from the process's own CPU
// clock: over any ten seconds, a process on a machine that is not busy is
// within 1% of the level. Everything that the process does counts.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
	"unsafe"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	var code exitCode
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.As(err, &code):
		os.Exit(int(code))
	default:
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// exitCode is the exit status of the process, if a command sets one.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit with status %d", int(c)) }

const usage = `Usage: workload COMMAND [flags]

  pause     do nothing, and reap children left behind, until SIGTERM
  burn      use CPU:    --millicores N [--for D] [--deaf]
  hold      use memory: --bytes N [--for D] [--deaf]
  use       both:       --millicores N --bytes N [--for D] [--deaf]
  fill      use disk:   --dir FOLDER [--bytes N] [--files N]
  serve     all of it, changed over HTTP: --listen :8080 [--millicores N] [--bytes N]
  traffic   send:       --to URL --bytes-per-second N
  exit      end by itself: --after D --code N [--signal N] [--child N] [--millicores N] [--bytes N]
  crash     die of a panic: --after D [--millicores N] [--bytes N]

N of bytes may end in Ki, Mi or Gi; D is a duration such as 30s. Every command
ends with status 0 on SIGTERM, unless it is deaf to it.
`

// run is main with its arguments and outputs as parameters. It returns when the
// command is done or ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errors.New("no command: want one of pause, burn, hold, use, fill, serve, traffic, exit, crash")
	}
	name := args[0]
	switch name {
	case "help", "-h", "--help":
		fmt.Fprint(stdout, usage)
		return nil
	}
	c := command{name: name, stdout: stdout, flags: flag.NewFlagSet("workload "+name, flag.ContinueOnError)}
	c.flags.SetOutput(stderr)
	var do func(context.Context) error
	switch name {
	case "pause":
		do = pause
	case "burn", "hold", "use":
		do = c.use()
	case "fill":
		do = c.fill()
	case "serve":
		do = c.serve()
	case "traffic":
		do = c.traffic()
	case "exit":
		do = c.exit()
	case "crash":
		do = c.crash()
	default:
		return fmt.Errorf("no command %q: want one of pause, burn, hold, use, fill, serve, traffic, exit, crash", name)
	}
	if err := c.flags.Parse(args[1:]); err != nil {
		return err
	}
	if c.flags.NArg() > 0 {
		return fmt.Errorf("%s: unexpected argument %q: everything is a flag", name, c.flags.Arg(0))
	}
	if err := do(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// command is a subcommand, while its flags are parsed.
type command struct {
	name   string
	flags  *flag.FlagSet
	stdout io.Writer
}

// load is the usage of a command besides its own work.
type load struct {
	millicores level
	bytes      size
}

func (c command) load() *load {
	l := &load{}
	c.flags.Var(&l.millicores, "millicores", "CPU to use, in thousandths of a core")
	c.flags.Var(&l.bytes, "bytes", "memory to hold, beyond the few MiB of the program itself")
	return l
}

// carry uses what l says for d, or until ctx ends if d is 0.
func (l *load) carry(ctx context.Context, d time.Duration) error {
	if d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	var m memory
	defer m.release()
	if err := m.hold(l.bytes, 0); err != nil {
		return err
	}
	newBurner(l.millicores).run(ctx)
	return nil
}

func (c command) use() func(context.Context) error {
	l := c.load()
	d := c.flags.Duration("for", 0, "how long; 0 is until SIGTERM")
	ignoreSIGTERM := c.flags.Bool("deaf", false, "go on after SIGTERM")
	return func(ctx context.Context) error {
		if *ignoreSIGTERM {
			ctx = context.WithoutCancel(ctx)
		}
		if c.name != "hold" && l.millicores == 0 {
			return errors.New("how much? give --millicores N")
		}
		if c.name != "burn" && l.bytes == 0 {
			return errors.New("how much? give --bytes N")
		}
		return l.carry(ctx, *d)
	}
}

func (c command) exit() func(context.Context) error {
	l := c.load()
	after := c.flags.Duration("after", 0, "how long to live")
	code := c.flags.Int("code", 0, "the exit status")
	number := c.flags.Int("signal", 0, "die of this signal; the kernel keeps it from process 1 of a namespace")
	var child size
	c.flags.Var(&child, "child", "memory that a child process holds")
	return func(ctx context.Context) error {
		if child > 0 {
			if err := exec.CommandContext(ctx, "/proc/self/exe", "hold", fmt.Sprint("--bytes=", int64(child))).Start(); err != nil {
				return err
			}
		}
		if err := live(ctx, l, *after); err != nil || ctx.Err() != nil {
			return err
		}
		if *number != 0 {
			dieOf(syscall.Signal(*number))
		}
		return exitCode(*code)
	}
}

// dieOf sends the process a signal with the kernel's own effect. Go's handlers would print a trace and exit.
func dieOf(s syscall.Signal) {
	var byDefault [4]uint64                                                                                              // struct sigaction of the kernel, with the handler SIG_DFL
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0) // SIGKILL has no handler
	_ = syscall.Kill(syscall.Getpid(), s)
}

func (c command) crash() func(context.Context) error {
	l := c.load()
	after := c.flags.Duration("after", 0, "how long to live")
	return func(ctx context.Context) error {
		if err := live(ctx, l, *after); err != nil || ctx.Err() != nil {
			return err
		}
		panic("crash, as asked for") // not a signal, because the kernel does not kill process 1 of a container
	}
}

// live uses what l says for d. If d is 0, it returns at once.
func live(ctx context.Context, l *load, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	return l.carry(ctx, d)
}
