//go:build tools

// Package vmagent pins the version of vmagent, which weir's senders are compared with.
package vmagent

import _ "github.com/VictoriaMetrics/VictoriaMetrics/app/vmagent"
