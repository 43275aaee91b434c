// The command man writes the man pages of weir and its commands into a folder: make install puts them
// beside those of other programs.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"github.com/weir-metrics/weir/cmd/app"
	"github.com/weir-metrics/weir/cmd/app/httpserver"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "write man pages:", err)
		os.Exit(1)
	}
}

// write writes a page for each command into dir, which it creates.
func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := app.NewCommand(func(string) string { return "" }, httpserver.DefaultAddress)
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{Title: "WEIR", Section: "1", Source: "weir", Manual: "weir"}, dir)
}
