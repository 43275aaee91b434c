//go:build tools

// Package metricsserver pins the version of metrics-server, which weir is
// compared with.
package metricsserver

import _ "sigs.k8s.io/metrics-server/cmd/metrics-server"
