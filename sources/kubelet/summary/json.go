package summary

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"unicode/utf8"

	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// maxDepth bounds the nesting of objects; a summary needs eight levels.
const maxDepth = 64

// scanner reads a JSON text without allocating. After its first error every method behaves as at
// the end of the text.
type scanner struct {
	body  []byte
	pos   int
	depth int
	err   error
}

func (s *scanner) fail(what string) {
	if s.err == nil {
		s.err = payload.ParseError(s.body, s.pos, what)
		s.pos = len(s.body)
	}
}

// peek returns the next byte that is not white space, or 0 at the end.
func (s *scanner) peek() byte {
	if i := s.pos; i+1 < len(s.body) {
		if s.body[i] > ' ' {
			return s.body[i]
		}
		if c := s.body[i+1]; s.body[i] == ' ' && c > ' ' {
			s.pos++
			return c
		}
	}
	return s.peekSlow()
}

// peekSlow does the work of peek if white space comes first. A third of a kubelet's payload is
// white space: after each line feed, one blank for each level.
func (s *scanner) peekSlow() byte {
	b, i := s.body, s.pos
	for ; i < len(b); i++ {
		switch c := b[i]; c {
		case ' ', '\t', '\r':
		case '\n':
			for i+9 <= len(b) {
				n := bits.TrailingZeros64(binary.LittleEndian.Uint64(b[i+1:])^blanks) / 8
				if i += n; n < 8 {
					break
				}
			}
		default:
			s.pos = i
			return c
		}
	}
	s.pos = i
	return 0
}

// blanks are eight blanks.
const blanks = 0x2020202020202020

// open enters an object or array. It returns false if it is empty or null, and on an error. The use
// for '{', and likewise for '[':
//
//	for more := s.open('{'); more; more = s.more('}') {
//		switch string(s.key()) { ... }
//	}
func (s *scanner) open(bracket byte) bool {
	if s.err != nil {
		return false
	}
	switch c := s.peek(); {
	case c == bracket:
	case c == 'n':
		s.literal("null")
		return false
	case bracket == '{':
		s.fail("not an object")
		return false
	default:
		s.fail("not an array")
		return false
	}
	if s.depth++; s.depth > maxDepth {
		s.fail("nested too deeply")
		return false
	}
	s.pos++
	if s.peek() == bracket+2 { // '{'+2 is '}', '['+2 is ']'
		s.pos++
		s.depth--
		return false
	}
	return true
}

// more reports whether another member follows. If not, it leaves the object or array, which ends
// with close.
func (s *scanner) more(close byte) bool {
	if s.err != nil {
		return false
	}
	switch s.peek() {
	case ',':
		s.pos++
		return true
	case close:
		s.pos++
		s.depth--
		return false
	}
	s.fail("neither a comma nor a closing bracket")
	return false
}

// key reads the name of a member and the colon.
func (s *scanner) key() []byte {
	k := s.text()
	if s.pos+1 < len(s.body) && s.body[s.pos] == ':' { // fast path
		s.pos++
		if s.body[s.pos] == ' ' {
			s.pos++
		}
		return k
	}
	if s.err == nil && s.peek() != ':' {
		s.fail("no colon after a name")
	}
	if s.err != nil {
		return nil
	}
	s.pos++
	return k
}

// enterAt opens an object and moves to the value of its first member, if the member has this name
// and the white space is a kubelet's. Otherwise it does nothing and returns false.
func (s *scanner) enterAt(name string) bool {
	if s.depth >= maxDepth || !s.skipTo('{', name) {
		return false
	}
	s.depth++
	return true
}

// moveTo moves to the value of the next member, if the member has this name and the white space is
// a kubelet's. Otherwise it does nothing and returns false. It replaces more, key and a comparison.
func (s *scanner) moveTo(name string) bool { return s.skipTo(',', name) }

// skipTo moves past mark, a line feed, blanks and that name, if they come next.
func (s *scanner) skipTo(mark byte, name string) bool {
	b := s.body[s.pos:]
	if len(b) < len(name)+16 || b[0] != mark || b[1] != '\n' {
		return false
	}
	// A summary is at most eight levels deep, so there are at most eight blanks.
	quote := 2 + bits.TrailingZeros64(binary.LittleEndian.Uint64(b[2:])^blanks)/8
	from := quote + 1
	end := from + len(name)
	if b[quote] != '"' || string(b[from:end]) != name || string(b[end:end+3]) != `": ` {
		return false
	}
	s.pos += end + 3
	return true
}

// text reads a string and returns the bytes between its quotes, with escapes; see unescape. It
// returns nil on an error.
func (s *scanner) text() []byte {
	if s.err != nil {
		return nil
	}
	if s.peek() != '"' {
		s.fail("not a string")
		return nil
	}
	i := s.pos + 1
	// Fast path: eight bytes at a time, until one of them is special.
	for i+8 <= len(s.body) {
		n := ordinary(binary.LittleEndian.Uint64(s.body[i:]))
		i += n
		if n == 8 {
			continue
		}
		if s.body[i] == '"' {
			t := s.body[s.pos+1 : i]
			s.pos = i + 1
			return t
		}
		break
	}
	for ; i < len(s.body); i++ {
		switch c := s.body[i]; {
		case c == '"':
			t := s.body[s.pos+1 : i]
			s.pos = i + 1
			return t
		case c == '\\':
			i++
		case c < ' ':
			s.pos = i
			s.fail("a control character in a string")
			return nil
		}
	}
	s.fail("a string without a closing quote")
	return nil
}

// ordinary returns how many bytes of w, from the lowest on, are neither a quote nor a
// backslash nor a control character. A borrow can make bytes above the first special one
// look special, never bytes below it.
func ordinary(w uint64) int {
	const each, high = 0x0101010101010101, 0x8080808080808080
	quote, escape := w^('"'*each), w^('\\'*each)
	special := ((quote - each) &^ quote) | ((escape - each) &^ escape) | ((w - ' '*each) &^ w)
	return bits.TrailingZeros64(special&high) / 8
}

// name reads a string or null. For null it returns an empty name.
func (s *scanner) name() []byte {
	if s.err == nil && s.peek() == 'n' {
		s.literal("null")
		return nil
	}
	return s.text()
}

// number reads a number or null. For null ok is false.
func (s *scanner) number() (n payload.Number, ok bool) {
	if s.err != nil {
		return n, false
	}
	c := s.peek()
	if c == 'n' {
		s.literal("null")
		return n, false
	}
	// Fast path: one digit, as in most numbers of pressure.
	if i := s.pos + 1; c-'0' <= 9 && i < len(s.body) && (s.body[i] == ',' || s.body[i] == '\n') {
		s.pos = i
		return payload.Number{Mantissa: uint64(c - '0')}, true
	}
	size := 0
	if c == '-' || c-'0' <= 9 {
		n, size = payload.ParseNumber(s.body[s.pos:])
	}
	if size == 0 {
		s.fail("not a number")
		return n, false
	}
	s.pos += size
	return n, true
}

// literal reads the literal w: true, false or null.
func (s *scanner) literal(w string) {
	if len(s.body)-s.pos < len(w) || string(s.body[s.pos:s.pos+len(w)]) != w {
		s.fail("not a value")
		return
	}
	s.pos += len(w)
}

// skip skips a value of any type.
func (s *scanner) skip() {
	if s.err != nil {
		return
	}
	switch c := s.peek(); {
	case c == '{':
		for more := s.open('{'); more; more = s.more('}') {
			s.key()
			s.skip()
		}
	case c == '[':
		for more := s.open('['); more; more = s.more(']') {
			s.skip()
		}
	case c == '"':
		s.text()
	case c == 't':
		s.literal("true")
	case c == 'f':
		s.literal("false")
	case c == 'n':
		s.literal("null")
	case c-'0' <= 9 && s.skipNumber(): // fast path
	default:
		s.number()
	}
}

// skipNumber skips digits with at most one point, if a comma or a line feed follows. Otherwise it
// does not move and returns false.
func (s *scanner) skipNumber() bool {
	point := false
	for i, c := range s.body[s.pos:] {
		switch {
		case c-'0' <= 9:
		case c == '.' && !point:
			point = true
		case c == ',' || c == '\n':
			s.pos += i
			return true
		default:
			return false
		}
	}
	return false
}

// end fails if anything but white space is left.
func (s *scanner) end() {
	if s.err == nil && s.peek() != 0 || s.pos < len(s.body) {
		s.fail("more than one value")
	}
}

// unescape resolves the escapes in raw, which text returned.
func unescape(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw)
	}
	quoted := make([]byte, 0, len(raw)+2)
	quoted = append(append(append(quoted, '"'), raw...), '"')
	var t string
	if json.Unmarshal(quoted, &t) != nil {
		return string(raw)
	}
	return t
}
