//go:build !linux

package app

import "errors"

// lockMemory returns an error: weir can do this only on Linux.
func lockMemory() error { return errors.ErrUnsupported }
