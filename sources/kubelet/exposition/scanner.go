// Package exposition walks the lines of a Prometheus text payload without
// allocating: family, labels as they arrived, value, time.
//
// It is lenient where payloads differ (CRLF, OpenMetrics' exemplars, "# EOF" and
// times in seconds, blanks, escapes, unknown families) and strict where a line makes no
// sense: then Err points at the spot. It does not know what any family means.
package exposition

import (
	"bytes"
	"encoding/binary"

	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// Scanner walks a payload. Use:
//
//	for s.Next() {
//		// s.Name is the family; look at s.Rest, or call s.Labels; then
//		// s.Advance past the labels, and s.Value, or just s.Skip.
//	}
//	return s.Err()
type Scanner struct {
	// Name is the family of the present line: valid until the payload changes.
	Name []byte
	// Changed reports whether the family differs from the line before.
	Changed bool

	body []byte
	pos  int
	err  error
	// head is the first five digits of the last time of thirteen, as they are in memory, and
	// base what they stand for, in milliseconds. They change once in 28 hours.
	head uint64
	base int64
}

// Reset makes s walk body.
func (s *Scanner) Reset(body []byte) { *s = Scanner{body: body} }

// Err returns what ended the walk before the end of the payload.
func (s *Scanner) Err() error { return s.err }

// Next moves to the next line that holds a value, behind its family's name. It
// returns false at the end, or at a line that is none.
func (s *Scanner) Next() bool {
	if s.err != nil {
		return false
	}
	// Fast path: the same family as the line before.
	if n := len(s.Name); n > 0 {
		if rest := s.body[s.pos:]; len(rest) > n && (rest[n] == '{' || rest[n] == ' ') && string(rest[:n]) == string(s.Name) {
			s.pos += n
			s.Changed = false
			return true
		}
	}
	return s.family()
}

// family is Next where blanks, a comment or another family come first.
func (s *Scanner) family() bool {
	for s.pos < len(s.body) {
		switch s.body[s.pos] {
		case '\n', '\r', ' ', '\t':
			s.pos++
			continue
		case '#':
			s.Skip()
			continue
		}
		rest := s.body[s.pos:]
		n := nameLen(rest)
		if n == 0 && rest[0] != '{' {
			s.Fail("no metric name")
			return false
		}
		s.Changed = n == 0 || string(rest[:n]) != string(s.Name)
		s.Name = rest[:n]
		s.pos += n
		return true
	}
	return false
}

// nameLen returns the length of the metric name b begins with.
func nameLen(b []byte) int {
	for i, c := range b {
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == ':' || i > 0 && c >= '0' && c <= '9' {
			continue
		}
		return i
	}
	return len(b)
}

// Rest returns what follows the present position.
func (s *Scanner) Rest() []byte { return s.body[s.pos:] }

// Advance moves n bytes on: the length of labels that were recognised.
func (s *Scanner) Advance(n int) { s.pos += n }

// Plain reports whether, n bytes from here, a value begins: neither blanks nor
// labels. Where it does, the bytes up to there are the labels of this line if they
// were the labels of any line.
func (s *Scanner) Plain(n int) bool {
	i := s.pos + n
	return i < len(s.body) && s.body[i] != ' ' && s.body[i] != '\t' && s.body[i] != '{'
}

// Labels returns the bytes from here to the value: the labels in braces with
// the blanks around them, or only blanks. It does not move. It returns nil, and
// the walk ends, if there is no value behind them.
func (s *Scanner) Labels() []byte {
	b := s.body[s.pos:]
	i := blanks(b, 0)
	if i < len(b) && b[i] == '{' {
		for i++; ; i++ {
			if i >= len(b) || b[i] == '\n' {
				s.Fail("labels without an end")
				return nil
			}
			if b[i] == '}' {
				i++
				break
			}
			if b[i] != '"' {
				continue
			}
			for i++; i < len(b) && b[i] != '"' && b[i] != '\n'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if i >= len(b) || b[i] == '\n' {
				s.Fail("a label value without an end")
				return nil
			}
		}
		i = blanks(b, i)
	} else if i == 0 {
		s.Fail("neither labels nor a value")
		return nil
	}
	if i >= len(b) || b[i] == '\n' || b[i] == '\r' {
		s.Fail("no value")
		return nil
	}
	return b[:i]
}

func blanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	return i
}

// openMetricsSeconds is below any time in milliseconds that a node of this
// century reports, and above any in seconds.
const openMetricsSeconds = 100_000_000_000

// Value reads the value and the time, in nanoseconds since the Unix epoch, and
// moves behind the line. The time is 0 if the line has none. Times with a fraction, or
// too small for milliseconds, are seconds, as in OpenMetrics.
func (s *Scanner) Value() (n payload.Number, t int64, ok bool) {
	b := s.body[s.pos:]
	n, i := payload.ParseNumber(b)
	if i == 0 {
		s.Fail("not a number")
		return n, 0, false
	}
	// Fast path: one blank, thirteen digits, end of line.
	if rest := b[i:]; len(rest) >= 15 && rest[0] == ' ' && rest[14] == '\n' {
		if w := binary.LittleEndian.Uint64(rest[1:]) << 24; w != s.head {
			s.head, s.base = w, headOf(rest[1:])
		}
		if low, ok := payload.EightDigits(rest[6:]); ok && s.base >= openMetricsSeconds {
			s.pos += i + 15
			return n, (s.base + int64(low)) * 1e6, true
		}
	}
	if i < len(b) && b[i] == '\n' { // start times have no time
		s.pos += i + 1
		return n, 0, true
	}
	return s.slowTime(n, b, i)
}

// headOf returns what the first five of thirteen digits stand for, or 0 if one of them
// is none.
func headOf(b []byte) int64 {
	var n int64
	for _, c := range b[:5] {
		if c-'0' > 9 {
			return 0
		}
		n = n*10 + int64(c-'0')
	}
	return n * 1e8
}

// slowTime reads what follows a value: blanks, perhaps a time, perhaps an
// exemplar, the end of the line.
func (s *Scanner) slowTime(n payload.Number, b []byte, i int) (payload.Number, int64, bool) {
	var t int64
	end := i
	i = blanks(b, i)
	if i > end && i < len(b) && (b[i]-'0' <= 9 || b[i] == '-') {
		stamp, size := payload.ParseNumber(b[i:])
		if size == 0 {
			s.pos += i
			s.Fail("not a time")
			return n, 0, false
		}
		scale := 6
		if whole, _ := stamp.Scaled(0); stamp.Exponent < 0 || whole < openMetricsSeconds {
			scale = 9
		}
		t, _ = stamp.Scaled(scale)
		i += size
	}
	i = blanks(b, i)
	if i < len(b) && b[i] == '\r' {
		i++
	}
	switch {
	case i >= len(b):
		s.pos += i
	case b[i] == '\n':
		s.pos += i + 1
	case b[i] == '#' && (b[i-1] == ' ' || b[i-1] == '\t'): // an exemplar
		s.pos += i
		s.Skip()
	default:
		s.pos += i
		s.Fail("more than a value and a time")
		return n, 0, false
	}
	return n, t, true
}

// Skip moves to the next line without looking.
func (s *Scanner) Skip() {
	if i := bytes.IndexByte(s.body[s.pos:], '\n'); i >= 0 {
		s.pos += i + 1
		return
	}
	s.pos = len(s.body)
}

// Fail ends the walk with an error about the present position.
func (s *Scanner) Fail(what string) {
	if s.err == nil {
		s.err = payload.Bad(s.body, s.pos, what)
	}
}
