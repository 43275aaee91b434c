package fetch

import (
	"bytes"
	"crypto/tls"
)

// incoming is where a tls.Conn keeps what came from the network, within it.
//
// A tls.Conn never gives back the buffer that it reads records into. Between two
// requests nothing is in it, yet it takes up some 32 kB, which is three quarters of
// what an idle connection takes up: for a thousand servers 32 MB, and half as much
// again for the garbage collector. crypto/tls has no option for it, so we reach
// into the Conn and lend it a buffer while a request lasts. As that one is large,
// an answer of several records comes out of the kernel at once, too.
//
// Both are touched only while they are empty and nobody reads. If a tls.Conn should
// look otherwise one day both are nil, and it keeps its buffers: TestIdleMemory
// would tell.
type incoming struct {
	raw   *bytes.Buffer // records, as they came
	plain *bytes.Reader // what is decrypted of the first, in raw's memory
}

// incomingOf returns where c keeps what came.
func incomingOf(c *tls.Conn) incoming {
	in := incoming{raw: field[bytes.Buffer](c, "rawInput"), plain: field[bytes.Reader](c, "input")}
	if in.raw == nil || in.plain == nil {
		return incoming{}
	}
	return in
}

// lend has records be read into the memory of s, until takeBack. A connection that
// ends before keeps it.
func (i incoming) lend(s *scratch) {
	if i.raw == nil || !i.empty() {
		return
	}
	if s.records == nil {
		s.records = make([]byte, 0, recordsSize)
	}
	*i.raw = *bytes.NewBuffer(s.records)
	s.records = nil
}

// empty reports whether all that came has been read.
func (i incoming) empty() bool {
	return i.raw == nil || i.raw.Len() == 0 && i.plain.Len() == 0
}

// takeBack gives s its memory back, or what took its place because it was too
// small. There must be nothing in it.
func (i incoming) takeBack(s *scratch) {
	if i.raw == nil {
		return
	}
	i.raw.Reset()
	s.records = i.raw.AvailableBuffer()
	*i.raw, *i.plain = bytes.Buffer{}, bytes.Reader{}
}
