// Command kubectl-weir is kubectl's plugin: "kubectl weir top pods", "kubectl weir
// explain missing". It asks the weir of the cluster through the API server, or the
// one at --server.
package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/weir-metrics/weir/cmd/client/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	os.Exit(cli.Main(ctx, newRoot(os.Getenv), os.Args[1:], os.Stdout, os.Stderr))
}
