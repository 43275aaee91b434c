//go:build tools

// Package prometheus pins the version of Prometheus, which weir's senders are compared with in agent mode.
package prometheus

import _ "github.com/prometheus/prometheus/cmd/prometheus"
