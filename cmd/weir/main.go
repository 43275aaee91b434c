// Command weir measures what nodes, pods and containers use, and serves it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/weir-metrics/weir/app/httpserver"
	"github.com/weir-metrics/weir/client/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(cli.Main(ctx, newRoot(os.Getenv, httpserver.DefaultAddress), os.Args[1:], os.Stdout, os.Stderr))
}
