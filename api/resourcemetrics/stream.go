package resourcemetrics

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// chunk is how many bytes of an answer are gathered before they are sent, so that a
// client reads while the rest is written and no answer is ever whole in memory. It is
// also the most that the library sends uncompressed to a client that takes gzip.
const chunk = 128 << 10

// stream sends the bytes of one answer.
type stream struct {
	w         http.ResponseWriter
	mediaType string
	gzip      bool // longer answers are compressed
	out       io.Writer
	packer    *gzip.Writer
	sent      chan outcome // of the bytes that are being sent; nil if none are
}

// outcome is what came of sending.
type outcome struct {
	err      error
	panicked any
}

var (
	buffers = sync.Pool{New: func() any { b := make([]byte, 0, chunk+chunk/4); return &b }}
	packers = sync.Pool{New: func() any {
		z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
		if err != nil {
			panic(fmt.Sprintf("resourcemetrics: make a gzip writer: %v", err)) // the level is one
		}
		return z
	}}
)

// send writes d to w as e has it. While a chunk is compressed, encrypted and sent, the next
// one is encoded.
func send(w http.ResponseWriter, mediaType string, packs bool, e encoding, d *document) (err error) {
	buffer, spare := buffers.Get().(*[]byte), (*[]byte)(nil)
	defer func() {
		buffers.Put(buffer)
		if spare != nil {
			buffers.Put(spare)
		}
	}()
	s := &stream{w: w, mediaType: mediaType, gzip: packs}
	defer func() { err = s.end(err) }()
	b, size := e.begin((*buffer)[:0], d)
	err = d.each(func(o *object, i int) error {
		if b = e.object(b, d, o, i); len(b) <= chunk {
			return nil
		}
		if err := s.wait(); err != nil {
			return err
		}
		s.start(b, size)
		if spare == nil {
			spare = buffers.Get().(*[]byte)
		}
		*buffer = b
		buffer, spare = spare, buffer
		b = (*buffer)[:0]
		return nil
	})
	if err == nil {
		err = s.wait()
	}
	if err != nil {
		return err
	}
	b = e.end(b, d)
	*buffer = b
	if s.out == nil && len(b) <= chunk {
		size = len(b)
	}
	return s.write(b, size)
}

// start begins to write b, which is good until wait has returned.
func (s *stream) start(b []byte, size int) {
	sent := make(chan outcome, 1)
	s.sent = sent
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			sent <- o
		}()
		o.err = s.write(b, size)
	}()
}

// wait returns what came of what was started, and panics if that has: whoever serves the
// request knows what to do then.
func (s *stream) wait() error {
	if s.sent == nil {
		return nil
	}
	o := <-s.sent
	if s.sent = nil; o.panicked != nil {
		panic(o.panicked)
	}
	return o.err
}

// write sends b, which begins an answer of size bytes (-1 if that is unknown) or goes
// on with it.
func (s *stream) write(b []byte, size int) error {
	if s.out == nil {
		s.begin(len(b), size)
	}
	_, err := s.out.Write(b)
	return err
}

func (s *stream) begin(first, size int) {
	header := s.w.Header()
	header.Set("Content-Type", s.mediaType)
	s.out = s.w
	switch {
	case s.gzip && first > chunk:
		header.Set("Content-Encoding", "gzip")
		header.Add("Vary", "Accept-Encoding")
		s.packer = packers.Get().(*gzip.Writer)
		s.packer.Reset(s.w)
		s.out = s.packer
	case size >= 0:
		header.Set("Content-Length", strconv.Itoa(size))
	}
	s.w.WriteHeader(http.StatusOK)
}

// end ends an answer that was sent as far as err says.
func (s *stream) end(err error) error {
	if sent := s.wait(); err == nil { // something is sent only if the encoding panicked
		err = sent
	}
	if s.packer == nil {
		return err
	}
	if closing := s.packer.Close(); err == nil {
		err = closing
	}
	s.packer.Reset(nil)
	packers.Put(s.packer)
	return err
}
