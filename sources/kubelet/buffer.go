package kubelet

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
)

// buffer is the memory in which one payload is read, decompressed and parsed. All nodes share a
// pool of buffers.
type buffer struct {
	body    bytes.Buffer
	date    int64 // the Date header of the answer in nanoseconds since the Unix epoch; 0 if there is none
	limited io.LimitedReader
	gzip    *gzip.Reader
	packed  *bufio.Reader // gzip reads from it
}

const (
	// initialBytes is the size of a new buffer: the payload of a small node.
	initialBytes = 32 << 10
	// maxTrustedBytes is the largest Content-Length for which memory is reserved at once.
	maxTrustedBytes = 1 << 20
	// maxPooledBytes is the largest capacity of a buffer that goes back to the pool.
	maxPooledBytes = 8 << 20
)

// putBuffer returns a buffer to the pool.
func (s *Scraper) putBuffer(b *buffer) {
	if b.limited.R = nil; b.body.Cap() <= maxPooledBytes {
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
	size := initialBytes
	if n := resp.ContentLength; n > 0 && n <= min(max, maxTrustedBytes) {
		size = int(n) + bytes.MinRead
	}
	b.body.Grow(size)
	b.limited = io.LimitedReader{R: from, N: max + 1}
	n, err := b.body.ReadFrom(&b.limited)
	switch {
	case n > max:
		return fmt.Errorf("the payload is larger than max-bytes, %d", max)
	case err != nil:
		return fmt.Errorf("the payload ended after %d bytes: %w", n, err)
	}
	return nil
}

// resetGzip prepares the gzip reader for another body.
func (b *buffer) resetGzip(body io.Reader) error {
	if b.gzip == nil {
		b.gzip, b.packed = new(gzip.Reader), new(bufio.Reader)
	}
	b.packed.Reset(body)
	return b.gzip.Reset(b.packed)
}
