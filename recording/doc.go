// Package recording is the file format of a recorded run.
package recording

import _ "github.com/klauspost/compress/zstd"
