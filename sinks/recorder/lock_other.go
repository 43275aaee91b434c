//go:build !unix

package recorder

import "os"

// lock does nothing here: weir runs on Linux.
func lock(*os.File) error { return nil }
