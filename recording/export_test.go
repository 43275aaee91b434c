package recording

import (
	"bytes"

	"github.com/klauspost/compress/zstd"
)

// Packed returns a file of one block that holds frames, so that a fuzzer needs to
// know nothing of compression and checksums.
func Packed(frames []byte) []byte {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err)
	}
	defer z.Close()
	payload := z.EncodeAll(frames, nil)
	file := appendBlockHead([]byte(header), blockFrames, payload)
	return append(file, payload...)
}

// Unpacked returns the frames of a file.
func Unpacked(file []byte) (frames []byte) {
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		panic(err)
	}
	defer r.Close()
	for r.unpack() == nil {
		frames = append(frames, r.block...)
	}
	return frames
}
