//go:build tools

// Package metricsserver pins metrics-server, the peer that weir is compared with.
package metricsserver

import _ "sigs.k8s.io/metrics-server/cmd/metrics-server"
