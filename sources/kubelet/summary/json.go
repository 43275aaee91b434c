package summary

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"unicode/utf8"

	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// maxDepth bounds nesting; a summary needs eight levels.
const maxDepth = 64

// scanner walks a JSON text without allocating. Its first error ends every
// walk: all methods then report the end of what they walk.
type scanner struct {
	body  []byte
	pos   int
	depth int
	err   error
}

func (s *scanner) fail(what string) {
	if s.err == nil {
		s.err = payload.Bad(s.body, s.pos, what)
		s.pos = len(s.body)
	}
}

// peek returns the next byte that is not white space; 0 at the end.
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
	return s.blank()
}

// blank is peek where there is white space, which is a third of what a kubelet
// writes: a line feed, and one blank for each level.
func (s *scanner) blank() byte {
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

// blanks are eight of them.
const blanks = 0x2020202020202020

// open enters an object or array. It returns false for an empty one, for null
// in its place, and on error. Use, for '{' and likewise for '[':
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
		s.word("null")
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

// more reports whether another member follows; if not, it leaves the object or
// array that close ends.
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
	s.fail("neither a comma nor an end")
	return false
}

// key reads a member's name and the colon.
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
		s.fail("no colon behind a name")
	}
	if s.err != nil {
		return nil
	}
	s.pos++
	return k
}

// enters opens an object and moves to the value of its first member, if that is the one
// of that name and written as a kubelet does; otherwise it does nothing.
func (s *scanner) enters(name string) bool {
	if s.depth >= maxDepth || !s.ahead('{', name) {
		return false
	}
	s.depth++
	return true
}

// follows moves to the value of the next member, if that is the one of that name and
// written as a kubelet does; otherwise it does nothing. It is what more, key and a
// comparison come to, for a guess.
func (s *scanner) follows(name string) bool { return s.ahead(',', name) }

// ahead moves behind mark, a new line and that name, if that is what comes.
func (s *scanner) ahead(mark byte, name string) bool {
	b := s.body[s.pos:]
	if len(b) < len(name)+16 || b[0] != mark || b[1] != '\n' {
		return false
	}
	// As deep as a summary is, there are up to eight blanks.
	quote := 2 + bits.TrailingZeros64(binary.LittleEndian.Uint64(b[2:])^blanks)/8
	from := quote + 1
	end := from + len(name)
	if b[quote] != '"' || string(b[from:end]) != name || string(b[end:end+3]) != `": ` {
		return false
	}
	s.pos += end + 3
	return true
}

// text reads a string and returns what stands between its quotes, escapes
// unresolved; see unescape. It is nil on error.
func (s *scanner) text() []byte {
	if s.err != nil {
		return nil
	}
	if s.peek() != '"' {
		s.fail("not a string")
		return nil
	}
	i := s.pos + 1
	// Fast path: eight bytes at a time, as long as none of them is special.
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
	s.fail("a string without an end")
	return nil
}

// ordinary returns how many bytes, from the lowest of w on, are neither a quote nor a
// backslash nor a control character. A borrow may make more bytes above one of those
// seem special, never the ones below it.
func ordinary(w uint64) int {
	const each, high = 0x0101010101010101, 0x8080808080808080
	quote, escape := w^('"'*each), w^('\\'*each)
	special := ((quote - each) &^ quote) | ((escape - each) &^ escape) | ((w - ' '*each) &^ w)
	return bits.TrailingZeros64(special&high) / 8
}

// name reads a string or null, which is the empty name.
func (s *scanner) name() []byte {
	if s.err == nil && s.peek() == 'n' {
		s.word("null")
		return nil
	}
	return s.text()
}

// number reads a number or null, for which ok is false.
func (s *scanner) number() (n payload.Number, ok bool) {
	if s.err != nil {
		return n, false
	}
	c := s.peek()
	if c == 'n' {
		s.word("null")
		return n, false
	}
	// Fast path: one digit, as most of pressure's numbers are.
	if i := s.pos + 1; c-'0' <= 9 && i < len(s.body) && (s.body[i] == ',' || s.body[i] == '\n') {
		s.pos = i
		return payload.Whole(uint64(c - '0')), true
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

// word reads one of the literals.
func (s *scanner) word(w string) {
	if len(s.body)-s.pos < len(w) || string(s.body[s.pos:s.pos+len(w)]) != w {
		s.fail("not a value")
		return
	}
	s.pos += len(w)
}

// skip passes over a value of any kind.
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
		s.word("true")
	case c == 'f':
		s.word("false")
	case c == 'n':
		s.word("null")
	case c-'0' <= 9 && s.decimal(): // fast path
	default:
		s.number()
	}
}

// decimal passes over digits, perhaps with a point among them, that end a line or
// a member. It returns false, and has not moved, if there is something else.
func (s *scanner) decimal() bool {
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

// end fails unless only white space is left.
func (s *scanner) end() {
	if s.err == nil && s.peek() != 0 || s.pos < len(s.body) {
		s.fail("more than one value")
	}
}

// unescape returns the string that raw, as text returned it, stands for.
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
