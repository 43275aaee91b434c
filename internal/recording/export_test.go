package recording

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/zstd"
)

// NewReaderMemory is NewReader with another limit of memory.
func NewReaderMemory(from io.Reader, memory int64) (*Reader, error) {
	r, err := NewReader(from)
	if err == nil {
		r.memory = memory
	}
	return r, err
}

// Packed returns a file of one block with these records, so that a fuzzer need not handle
// compression and checksums.
func Packed(records []byte) []byte {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err)
	}
	defer z.Close()
	payload := z.EncodeAll(records, nil)
	file := appendBlockHead([]byte(header), blockRecords, payload)
	return append(file, payload...)
}

// Unpacked returns the records of a file.
func Unpacked(file []byte) (records []byte) {
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		panic(err)
	}
	defer r.Close()
	for r.nextBlock() == nil {
		records = append(records, r.block...)
	}
	return records
}
