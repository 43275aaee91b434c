// Command weir measures what nodes, pods and containers use, and serves it.
package main

import (
	"os"

	"github.com/weir-metrics/weir/cmd/app"
)

func main() { os.Exit(app.Main(os.Args[1:])) }
