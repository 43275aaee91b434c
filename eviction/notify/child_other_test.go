//go:build !linux || !e2e

package notify_test

func child() {}
