package kubelet

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
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
	packed  *bufio.Reader           // gzip reads from it
	large   int64                   // the bytes that it has of the scraper's budget
	end     context.CancelCauseFunc // ends the read
}

const (
	// smallBytes is the largest capacity of a buffer that does not count towards the budget.
	smallBytes = 1 << 20
	// maxLargeBytes bounds what larger buffers may take together, while payloads are read and parsed.
	maxLargeBytes = 256 << 20
	// initialBytes is the size of a new buffer: the payload of a small node.
	initialBytes = 32 << 10
	// maxPooledBytes is the largest capacity of a buffer that goes back to the pool.
	maxPooledBytes = 8 << 20
)

func (s *Scraper) putBuffer(b *buffer) {
	s.budget.giveBack(b)
	b.end = nil
	if b.limited.R = nil; b.body.Cap() <= maxPooledBytes {
		s.buffers.Put(b)
	}
}

// readBody reads the decompressed body of a response. It fails if the body is longer than most bytes
// or ends too early. A large body waits until the budget has enough bytes left.
func (b *buffer) readBody(ctx context.Context, resp *http.Response, most int64, all *memoryBudget) error {
	var from io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		if err := b.resetGzip(resp.Body); err != nil {
			return fmt.Errorf("decompress: %w", err)
		}
		from = b.gzip
	}
	size := initialBytes
	if n := resp.ContentLength; n > 0 && n <= min(most, smallBytes/2) {
		size = int(n) + bytes.MinRead
	}
	b.body.Grow(size)
	// Fast path: the body fits into a small buffer.
	limit := min(most+1, smallBytes/2)
	n, err := b.readUpTo(from, limit)
	// Slow path: read as much again, until the end.
	for err == nil && n == limit && n <= most {
		limit = min(most+1, 2*limit)
		if err = b.reserve(ctx, int(limit-n)+bytes.MinRead, all); err != nil {
			return fmt.Errorf("wait for memory after %d bytes, while large payloads of other nodes are read: %w", n, err)
		}
		var more int64
		more, err = b.readUpTo(from, limit-n)
		n += more
	}
	switch {
	case n > most:
		return fmt.Errorf("the payload is larger than max-bytes, %d, whose default follows from the node's pods", most)
	case err != nil:
		return fmt.Errorf("the payload ended after %d bytes: %w", n, err)
	}
	return nil
}

// readUpTo appends at most n bytes, and returns how many it read.
func (b *buffer) readUpTo(from io.Reader, n int64) (int64, error) {
	b.limited = io.LimitedReader{R: from, N: n}
	return b.body.ReadFrom(&b.limited)
}

// reserve makes room for n more bytes. It first waits until the budget has as many bytes as the buffer
// then takes.
func (b *buffer) reserve(ctx context.Context, n int, all *memoryBudget) error {
	need := int64(max(b.body.Len()+n, b.body.Cap()))
	if need <= b.large {
		return nil
	}
	if err := all.take(ctx, b, need); err != nil {
		return err
	}
	b.body.Grow(n)
	all.grown(b, need)
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
