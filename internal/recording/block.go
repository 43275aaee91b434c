package recording

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// header begins a file. It may also appear where a block may begin, because files can be
// joined. Its last byte is the version of the format.
const header = "WEIRREC\x02"

// A block is
//
//	kind      1 byte: 'R' for records
//	length    4 bytes, little endian: of the payload
//	checksum  4 bytes, little endian: CRC-32C of kind, length and payload
//	payload
//
// The payload of records is a zstd frame.
const (
	blockHead    = 9
	blockRecords = 'R'
)

// The limits of writer and reader, in bytes.
const (
	maxPayload = 16 << 20 // of a block, compressed
	maxBlock   = 16 << 20 // of a block, decompressed
	maxRecord  = 8 << 20
	maxMemory  = 4 << 30 // that a reader keeps: enough for 5,000 nodes of 100 pods each
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the checksum of a block.
func checksum(kind byte, payload []byte) uint32 {
	var head [5]byte
	head[0] = kind
	binary.LittleEndian.PutUint32(head[1:], uint32(len(payload)))
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, payload)
}

// appendBlockHead appends what precedes the payload.
func appendBlockHead(buf []byte, kind byte, payload []byte) []byte {
	buf = append(buf, kind)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(payload)))
	return binary.LittleEndian.AppendUint32(buf, checksum(kind, payload))
}

// blockReader reads blocks.
type blockReader struct {
	r    io.Reader
	at   int64 // the end of the last complete block
	head [blockHead]byte
	buf  []byte
}

// IsRecording reports whether r begins as a recording of any version.
func IsRecording(r io.ReaderAt) bool {
	var begin [len(header) - 1]byte
	_, err := r.ReadAt(begin[:], 0)
	return err == nil && string(begin[:]) == header[:len(begin)]
}

// readHeader reads the header of the file.
func (b *blockReader) readHeader() error {
	n, err := io.ReadFull(b.r, b.head[:len(header)])
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case n == 0:
		return &NoRecordingError{"it is empty"}
	case !bytes.Equal(b.head[:min(n, len(header)-1)], []byte(header[:min(n, len(header)-1)])):
		return &NoRecordingError{"it does not begin with the bytes of one"}
	case n < len(header):
		return &TruncatedError{0}
	}
	b.at = int64(len(header))
	return b.checkVersion(b.head[len(header)-1])
}

func (b *blockReader) checkVersion(v byte) error {
	if v != header[len(header)-1] {
		return &NoRecordingError{fmt.Sprintf("it has version %d, and this weir reads version %d: use the weir that wrote it", v, header[len(header)-1])}
	}
	return nil
}

// next returns the kind and payload of the next block. The payload is valid until the next
// call. The error is io.EOF after the last block, a *TruncatedError if the file ends within
// a block, and a *DamagedError if a block has changed.
func (b *blockReader) next() (kind byte, payload []byte, err error) {
	for {
		n, err := io.ReadFull(b.r, b.head[:1])
		if err != nil {
			return 0, nil, b.endError(n, err)
		}
		if b.head[0] != header[0] {
			break
		}
		// Joined files: the header of the second.
		if n, err = io.ReadFull(b.r, b.head[1:len(header)]); err != nil {
			return 0, nil, b.endError(n+1, err)
		}
		if !bytes.Equal(b.head[:len(header)-1], []byte(header[:len(header)-1])) {
			return 0, nil, &DamagedError{b.at, errors.New("neither a block nor a file begins here")}
		}
		if err := b.checkVersion(b.head[len(header)-1]); err != nil {
			return 0, nil, err
		}
		b.at += int64(len(header))
	}
	if n, err := io.ReadFull(b.r, b.head[1:]); err != nil {
		return 0, nil, b.endError(n+1, err)
	}
	kind = b.head[0]
	length := binary.LittleEndian.Uint32(b.head[1:])
	if length > maxPayload {
		return 0, nil, &DamagedError{b.at, fmt.Errorf("a block has %d bytes, more than the allowed %d", length, maxPayload)}
	}
	if payload, err = b.read(int(length)); err != nil {
		return 0, nil, b.endError(blockHead, err)
	}
	if got, want := checksum(kind, payload), binary.LittleEndian.Uint32(b.head[5:]); got != want {
		return 0, nil, &DamagedError{b.at, fmt.Errorf("its checksum is %08x, not %08x", got, want)}
	}
	b.at += blockHead + int64(length)
	return kind, payload, nil
}

// read reads n bytes. It reserves memory in steps, so that a wrong length of a short file costs little.
func (b *blockReader) read(n int) ([]byte, error) {
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

// endError returns the error for the end of the input, n bytes after the last complete block.
func (b *blockReader) endError(n int, err error) error {
	switch {
	case errors.Is(err, io.EOF) && n == 0:
		return io.EOF
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &TruncatedError{b.at}
	default:
		return fmt.Errorf("read a block: %w", err)
	}
}
