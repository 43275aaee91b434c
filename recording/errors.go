package recording

import "fmt"

// NoRecordingError says that a file is none that can be read.
type NoRecordingError struct{ Why string }

// Error says why.
func (e *NoRecordingError) Error() string { return "this is no recording: " + e.Why }

// TruncatedError says that a file ends in the middle of a block, as that of a
// weir which was killed. All frames before are whole.
type TruncatedError struct {
	At int64 // bytes up to the end of the last whole block
}

// Error says where.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("the recording ends in the middle of a block after byte %d, as one whose writer was killed; everything up to there is whole", e.At)
}

// DamagedError says that the bytes are not those that were written. All frames
// before are whole.
type DamagedError struct {
	At  int64 // where the block begins that is damaged
	Err error
}

// Error says where, and what is wrong.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("the recording is damaged at byte %d: %v; everything up to there is whole", e.At, e.Err)
}

// Unwrap returns what is wrong.
func (e *DamagedError) Unwrap() error { return e.Err }
