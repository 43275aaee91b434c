// Package install follows README.md as a new user does: it runs the commands that it shows, word for
// word, and looks at what they print. TestFirstCommands needs nothing but this machine, and
// TestQuickStart starts a cluster. TestChart installs with Helm, also in the place of metrics-server,
// with the definitions of the Prometheus Operator and of cert-manager, and has a Prometheus scrape it.
package install
