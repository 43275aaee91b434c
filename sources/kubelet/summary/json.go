package summary

import (
	"bytes"
	"encoding/json"
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
	for s.pos < len(s.body) {
		switch c := s.body[s.pos]; c {
		case ' ', '\n', '\t', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

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
	if s.err == nil && s.peek() != ':' {
		s.fail("no colon behind a name")
	}
	if s.err != nil {
		return nil
	}
	s.pos++
	return k
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
	for i := s.pos + 1; i < len(s.body); i++ {
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
	default:
		s.number()
	}
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
