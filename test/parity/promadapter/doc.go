// Package promadapter asks prometheus-adapter v0.12.0 and weir the same questions, with one configuration and on
// one real Prometheus. weir's rules are what weir import prometheus-adapter writes from that configuration.
//
// Both answer by HTTP, from the same library for the protocol. The adapter is its own packages, unchanged, except for its
// command: that one needs an API server for authentication, and wires these packages only.
//
// Answers are the same if they have the same objects or series, and values at most one thousandth apart. What differs on
// purpose is a closed list (differences_test.go), and docs/from-prometheus-adapter.md has the same list for users.
//
//	go test -C test/parity ./promadapter                    # the questions about testdata/adapter.yaml, and some random configurations
//	go test -C test/parity ./promadapter -seed 7 -configs 500
package promadapter
