package kubelet

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
)

// buffer holds a payload while it is parsed, and the memory that decompressing it needs. Buffers
// are shared by all nodes.
type buffer struct {
	bytes  []byte
	date   int64 // the Date header of the answer in nanoseconds since the Unix epoch; 0 without one
	gzip   *gzip.Reader
	packed *bufio.Reader // gzip reads from it
}

const (
	// initialBytes is the size of a new buffer: the payload of a small node.
	initialBytes = 32 << 10
	// maxTrustedBytes is the largest Content-Length that memory is reserved for at once.
	maxTrustedBytes = 1 << 20
	// maxPooledBytes is the size of the largest buffer that is kept for other nodes.
	maxPooledBytes = 8 << 20
)

// putBuffer keeps a buffer for another read.
func (s *Scraper) putBuffer(b *buffer) {
	if cap(b.bytes) <= maxPooledBytes {
		s.buffers.Put(b)
	}
}

// readBody reads the decompressed body of a response. It fails if the body is longer
// than max bytes or ends too early.
func (b *buffer) readBody(resp *http.Response, max int64) error {
	var from io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		if err := b.resetGzip(resp.Body); err != nil {
			return fmt.Errorf("decompress: %w", err)
		}
		from = b.gzip
	}
	if n := resp.ContentLength; n > int64(cap(b.bytes)) && n <= min(max, maxTrustedBytes) {
		b.bytes = make([]byte, 0, n+1)
	}
	for {
		if len(b.bytes) == cap(b.bytes) {
			b.grow()
		}
		n, err := from.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		switch {
		case int64(len(b.bytes)) > max:
			return fmt.Errorf("the payload is larger than max-bytes, %d", max)
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("the payload ended after %d bytes: %w", len(b.bytes), err)
		}
	}
}

func (b *buffer) grow() {
	bigger := make([]byte, len(b.bytes), max(initialBytes, 2*cap(b.bytes)))
	copy(bigger, b.bytes)
	b.bytes = bigger
}

// resetGzip prepares the gzip reader for another body.
func (b *buffer) resetGzip(body io.Reader) error {
	if b.gzip == nil {
		b.gzip, b.packed = new(gzip.Reader), new(bufio.Reader)
	}
	b.packed.Reset(body)
	return b.gzip.Reset(b.packed)
}
