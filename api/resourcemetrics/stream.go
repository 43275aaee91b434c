package resourcemetrics

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// chunkBytes is how many bytes of an answer are collected before they are sent. A client reads
// while the rest is encoded, and no answer is in memory as a whole. It is also the largest
// answer that the library sends uncompressed to a client that accepts gzip.
const chunkBytes = 128 << 10

// responseStream sends the bytes of one answer.
type responseStream struct {
	w          http.ResponseWriter
	mediaType  string
	gzip       bool // answers longer than chunkBytes are compressed
	out        io.Writer
	compressor *gzip.Writer
	sent       chan sendResult // result of the write in progress; nil if there is none
}

// sendResult is the result of a write.
type sendResult struct {
	err      error
	panicked any
}

var (
	bufferPool     = sync.Pool{New: func() any { b := make([]byte, 0, chunkBytes+chunkBytes/4); return &b }}
	compressorPool = sync.Pool{New: func() any {
		z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
		if err != nil {
			panic(fmt.Sprintf("resourcemetrics: make a gzip writer: %v", err)) // the level is valid
		}
		return z
	}}
)

// sendResponse writes d to w with the encoder e. While one chunk is compressed, encrypted and
// sent, the next one is encoded.
func sendResponse(w http.ResponseWriter, mediaType string, packs bool, e encoder, d *response) (err error) {
	buffer, spare := bufferPool.Get().(*[]byte), (*[]byte)(nil)
	defer func() {
		bufferPool.Put(buffer)
		if spare != nil {
			bufferPool.Put(spare)
		}
	}()
	s := &responseStream{w: w, mediaType: mediaType, gzip: packs}
	defer func() { err = s.end(err) }()
	b, size := e.begin((*buffer)[:0], d)
	err = d.eachObject(func(o *encodedObject, i int) error {
		if b = e.object(b, d, o, i); len(b) <= chunkBytes {
			return nil
		}
		if err := s.wait(); err != nil {
			return err
		}
		s.start(b, size)
		if spare == nil {
			spare = bufferPool.Get().(*[]byte)
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
	if s.out == nil && len(b) <= chunkBytes {
		size = len(b)
	}
	return s.write(b, size)
}

// start begins to write b, which must not change until wait has returned.
func (s *responseStream) start(b []byte, size int) {
	sent := make(chan sendResult, 1)
	s.sent = sent
	go func() {
		var o sendResult
		defer func() {
			o.panicked = recover()
			sent <- o
		}()
		o.err = s.write(b, size)
	}()
}

// wait returns the result of the write in progress. If that panicked, wait panics too: the
// server handles a panic of the goroutine that serves the request.
func (s *responseStream) wait() error {
	if s.sent == nil {
		return nil
	}
	o := <-s.sent
	if s.sent = nil; o.panicked != nil {
		panic(o.panicked)
	}
	return o.err
}

// write sends b. The first call begins an answer of size bytes, -1 if that is unknown.
func (s *responseStream) write(b []byte, size int) error {
	if s.out == nil {
		s.begin(len(b), size)
	}
	_, err := s.out.Write(b)
	return err
}

func (s *responseStream) begin(first, size int) {
	header := s.w.Header()
	header.Set("Content-Type", s.mediaType)
	s.out = s.w
	switch {
	case s.gzip && first > chunkBytes:
		header.Set("Content-Encoding", "gzip")
		header.Add("Vary", "Accept-Encoding")
		s.compressor = compressorPool.Get().(*gzip.Writer)
		s.compressor.Reset(s.w)
		s.out = s.compressor
	case size >= 0:
		header.Set("Content-Length", strconv.Itoa(size))
	}
	s.w.WriteHeader(http.StatusOK)
}

// end ends the answer. err is the error of the encoding, if there was one.
func (s *responseStream) end(err error) error {
	if sent := s.wait(); err == nil { // a write is in progress only if the encoding panicked
		err = sent
	}
	if s.compressor == nil {
		return err
	}
	if closing := s.compressor.Close(); err == nil {
		err = closing
	}
	s.compressor.Reset(nil)
	compressorPool.Put(s.compressor)
	return err
}
