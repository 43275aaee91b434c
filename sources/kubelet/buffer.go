package kubelet

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
)

// buffer holds a payload while it is parsed, and what unpacked it. It is used
// again for other nodes.
type buffer struct {
	bytes []byte
	date  int64 // what the node's clock showed, in nanoseconds since the Unix epoch; 0 if it did not say
	gzip  *gzip.Reader
	from  *bufio.Reader // what gzip reads
}

const (
	// firstBytes is how much room a new buffer has: a small node's payload.
	firstBytes = 32 << 10
	// trustedBytes is how much room is made on a node's word that so much will
	// come.
	trustedBytes = 1 << 20
	// keptBytes is the largest buffer that is kept for other nodes.
	keptBytes = 8 << 20
)

// putBack keeps a buffer for another read.
func (s *Scraper) putBack(b *buffer) {
	if cap(b.bytes) <= keptBytes {
		s.buffers.Put(b)
	}
}

// fill reads a response's body, unpacked, into the buffer. It fails beyond max
// bytes, and if the body breaks off.
func (b *buffer) fill(resp *http.Response, max int64) error {
	var from io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		if err := b.unpack(resp.Body); err != nil {
			return fmt.Errorf("unpack gzip: %w", err)
		}
		from = b.gzip
	}
	if n := resp.ContentLength; n > int64(cap(b.bytes)) && n <= min(max, trustedBytes) {
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
			return fmt.Errorf("the payload broke off after %d bytes: %w", len(b.bytes), err)
		}
	}
}

func (b *buffer) grow() {
	bigger := make([]byte, len(b.bytes), max(firstBytes, 2*cap(b.bytes)))
	copy(bigger, b.bytes)
	b.bytes = bigger
}

// unpack readies the gzip reader for another body.
func (b *buffer) unpack(body io.Reader) error {
	if b.gzip == nil {
		b.gzip, b.from = new(gzip.Reader), new(bufio.Reader)
	}
	b.from.Reset(body)
	return b.gzip.Reset(b.from)
}
