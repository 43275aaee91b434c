package recording

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// header begins a file, and may come again wherever a block may begin, as it
// does in files that were joined. Its last byte is the version.
const header = "WEIRREC\x01"

// A block is
//
//	kind      1 byte: 'F' for frames
//	length    4 bytes, little endian: of the payload
//	checksum  4 bytes, little endian: CRC-32C of kind, length and payload
//	payload
//
// The payload of frames is a zstd frame.
const (
	blockHead   = 9
	blockFrames = 'F'
)

// The bounds of what is written, and read.
const (
	maxPayload = 16 << 20 // of a block, as it is in the file
	maxBlock   = 16 << 20 // of a block, unpacked
	maxFrame   = 8 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is that of a block.
func checksum(kind byte, payload []byte) uint32 {
	var head [5]byte
	head[0] = kind
	binary.LittleEndian.PutUint32(head[1:], uint32(len(payload)))
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, payload)
}

// appendBlockHead appends what stands before the payload.
func appendBlockHead(buf []byte, kind byte, payload []byte) []byte {
	buf = append(buf, kind)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(payload)))
	return binary.LittleEndian.AppendUint32(buf, checksum(kind, payload))
}

// blocks reads blocks.
type blocks struct {
	r    io.Reader
	at   int64 // just after the last whole block
	head [blockHead]byte
	buf  []byte
}

// begin reads the header of the file.
func (b *blocks) begin() error {
	n, err := io.ReadFull(b.r, b.head[:len(header)])
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case n == 0:
		return &NoRecordingError{"it is empty"}
	case !bytes.Equal(b.head[:min(n, len(header)-1)], []byte(header[:min(n, len(header)-1)])):
		return &NoRecordingError{"it does not begin as one"}
	case n < len(header):
		return &TruncatedError{0}
	}
	b.at = int64(len(header))
	return b.version(b.head[len(header)-1])
}

func (b *blocks) version(v byte) error {
	if v != header[len(header)-1] {
		return &NoRecordingError{fmt.Sprintf("it is of version %d, and this weir reads version %d: read it with a newer weir", v, header[len(header)-1])}
	}
	return nil
}

// next returns the kind and payload of the next block, which is good until the
// next call. The error is io.EOF after the last, a *TruncatedError where the
// file ends within one, and a *DamagedError where one is not what was written.
func (b *blocks) next() (kind byte, payload []byte, err error) {
	for {
		n, err := io.ReadFull(b.r, b.head[:1])
		if err != nil {
			return 0, nil, b.ended(n, err)
		}
		if b.head[0] != header[0] {
			break
		}
		// Joined files: the second's header.
		if n, err = io.ReadFull(b.r, b.head[1:len(header)]); err != nil {
			return 0, nil, b.ended(n+1, err)
		}
		if !bytes.Equal(b.head[:len(header)-1], []byte(header[:len(header)-1])) {
			return 0, nil, &DamagedError{b.at, errors.New("neither a block nor a file begins there")}
		}
		if err := b.version(b.head[len(header)-1]); err != nil {
			return 0, nil, err
		}
		b.at += int64(len(header))
	}
	if n, err := io.ReadFull(b.r, b.head[1:]); err != nil {
		return 0, nil, b.ended(n+1, err)
	}
	kind = b.head[0]
	length := binary.LittleEndian.Uint32(b.head[1:])
	if length > maxPayload {
		return 0, nil, &DamagedError{b.at, fmt.Errorf("a block of %d bytes, at most %d are allowed", length, maxPayload)}
	}
	if payload, err = b.read(int(length)); err != nil {
		return 0, nil, b.ended(blockHead, err)
	}
	if got, want := checksum(kind, payload), binary.LittleEndian.Uint32(b.head[5:]); got != want {
		return 0, nil, &DamagedError{b.at, fmt.Errorf("checksum %08x, written was %08x", got, want)}
	}
	b.at += blockHead + int64(length)
	return kind, payload, nil
}

// read reads n bytes, and takes no more memory than there are.
func (b *blocks) read(n int) ([]byte, error) {
	const step = 1 << 20
	b.buf = b.buf[:0]
	for len(b.buf) < n {
		from := len(b.buf)
		more := min(n-from, max(step, cap(b.buf)-from))
		b.buf = append(b.buf, make([]byte, more)...)
		if _, err := io.ReadFull(b.r, b.buf[from:]); err != nil {
			return nil, err
		}
	}
	return b.buf, nil
}

// ended says what the end of the input means, n bytes after the last whole block.
func (b *blocks) ended(n int, err error) error {
	switch {
	case errors.Is(err, io.EOF) && n == 0:
		return io.EOF
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &TruncatedError{b.at}
	default:
		return fmt.Errorf("read a block: %w", err)
	}
}
