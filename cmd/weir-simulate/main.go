// Command weir-simulate serves simulated kubelets whose use of CPU is exactly
// known.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/weir-metrics/weir/cmd/client/cli"
)

func main() { os.Exit(execute()) }

func execute() (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.Main(ctx, newCommand(), os.Args[1:], os.Stdout, os.Stderr)
}
