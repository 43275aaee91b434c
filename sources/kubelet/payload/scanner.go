package payload

import "bytes"

// Scanner reads the lines of a Prometheus text payload without allocating: family, raw labels, value,
// time. It does not know the meaning of a family.
//
// It accepts the variants that occur in payloads: CRLF, OpenMetrics' exemplars, "# EOF" and times
// in seconds, blanks, escapes, unknown families. A line that is not valid ends the scan with an
// error that has its line number and offset.
//
// textparse, Prometheus' own parser, takes 5 to 9 times as long (docs/performance.md).
//
// Use:
//
//	for s.Next() {
//		// s.Name is the family; look at s.Rest, or call s.Labels; then
//		// s.Advance past the labels, and s.Value, or just s.Skip.
//	}
//	return s.Err()
type Scanner struct {
	// Name is the family of the current line. It is valid as long as the payload is.
	Name []byte
	// Changed reports whether the family differs from that of the line before.
	Changed bool

	body []byte
	pos  int
	err  error
}

// Reset begins a payload.
func (s *Scanner) Reset(body []byte) { *s = Scanner{body: body} }

// Err returns the error that ended the scan before the end of the payload.
func (s *Scanner) Err() error { return s.err }

// Next moves to the next line that has a value, and to the end of its family's name. It returns
// false at the end, and at a line that is not valid.
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
	return s.nextFamily()
}

// nextFamily does the work of Next if blanks, a comment or another family come first.
func (s *Scanner) nextFamily() bool {
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
	s.checkEnd()
	return false
}

// nameLen returns the length of the metric name at the start of b.
func nameLen(b []byte) int {
	for i, c := range b {
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == ':' || i > 0 && c >= '0' && c <= '9' {
			continue
		}
		return i
	}
	return len(b)
}

// checkEnd fails if the last line has no line feed: the payload was cut, and its last number may
// lack digits. OpenMetrics' "# EOF" needs none.
func (s *Scanner) checkEnd() {
	if n := len(s.body); n > 0 && s.body[n-1] != '\n' && !bytes.HasSuffix(s.body, []byte("\n# EOF")) {
		s.Fail("the last line has no line feed: the payload is not complete")
	}
}

// Rest returns the payload from the current position on.
func (s *Scanner) Rest() []byte { return s.body[s.pos:] }

// Advance moves n bytes forward, over the labels.
func (s *Scanner) Advance(n int) { s.pos += n }

// ValueAt reports whether a value can begin n bytes from here: the byte there is no blank, no
// opening brace and not the end of the line. If so, and the n bytes equal the labels of another line, they are all the
// labels of this line.
func (s *Scanner) ValueAt(n int) bool {
	i := s.pos + n
	return i < len(s.body) && s.body[i] != ' ' && s.body[i] != '\t' && s.body[i] != '{' && s.body[i] != '\n' && s.body[i] != '\r'
}

// Labels returns the bytes from here to the value: the labels in braces with the blanks around
// them, or only blanks. It does not move. If no value follows, it returns nil and the scan ends.
func (s *Scanner) Labels() []byte {
	b := s.body[s.pos:]
	i := skipBlanks(b, 0)
	if i < len(b) && b[i] == '{' {
		if i = s.bracesEnd(b, i); i == 0 {
			return nil
		}
		i = skipBlanks(b, i)
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

// bracesEnd returns the index after the closing brace of the labels that begin at b[i]; 0 if there is
// none, and the scan ends.
func (s *Scanner) bracesEnd(b []byte, i int) int {
	for i++; i < len(b) && b[i] != '\n'; i++ {
		switch b[i] {
		case '}':
			return i + 1
		case '"':
			for i++; i < len(b) && b[i] != '"' && b[i] != '\n'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if i >= len(b) || b[i] == '\n' {
				s.Fail("a label value without a closing quote")
				return 0
			}
		}
	}
	s.Fail("labels without a closing brace")
	return 0
}

// FamilyScanner reads the lines of the families in a table, and skips the others.
type FamilyScanner[F any] struct {
	Scanner
	// Family is the family of the current line.
	Family   *F
	families map[string]*F
	known    bool // the payload has a family of the table
}

// Begin begins a payload, with its table of families by name.
func (s *FamilyScanner[F]) Begin(body []byte, families map[string]*F) {
	*s = FamilyScanner[F]{families: families}
	s.Reset(body)
}

// Next moves to the next line of a family in the table. Of another family it checks one line.
func (s *FamilyScanner[F]) Next() bool {
	for s.Scanner.Next() {
		if s.Changed {
			if s.Family = s.families[string(s.Name)]; s.Family == nil {
				s.ValueOnly()
				continue
			}
			s.known = true
		} else if s.Family == nil {
			s.Skip()
			continue
		}
		return true
	}
	return false
}

// End ends the payload. It returns the error that ended the scan early, or one if no family was in the
// table. endpoint is the name of the table.
func (s *FamilyScanner[F]) End(endpoint string) error {
	err := s.err
	if err == nil && !s.known {
		err = ParseError(s.body, 0, "no family of "+endpoint)
	}
	*s = FamilyScanner[F]{}
	return err
}

// skipBlanks returns the index of the first byte from i on that is neither a space nor a tab.
func skipBlanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	return i
}

// ValueOnly reads the value and time of the current line, if the labels are not needed.
func (s *Scanner) ValueOnly() (n Number, t int64, ok bool) {
	labels := s.Labels()
	if labels == nil {
		return n, 0, false
	}
	s.Advance(len(labels))
	return s.Value()
}

// minMilliseconds is less than any time of this century in milliseconds, and more than any in
// seconds.
const minMilliseconds = 100_000_000_000

// nanoseconds returns a line's time in nanoseconds since the Unix epoch. A time with a
// fraction, or below minMilliseconds, is in seconds, as in OpenMetrics.
func nanoseconds(stamp Number) int64 {
	scale := 6
	if whole, _ := stamp.Scaled(0); stamp.Exponent < 0 || whole < minMilliseconds {
		scale = 9
	}
	t, _ := stamp.Scaled(scale)
	return t
}

// Value reads the value and the time, in nanoseconds since the Unix epoch, and moves to the
// next line. The time is 0 if the line has none.
func (s *Scanner) Value() (n Number, t int64, ok bool) {
	b := s.body[s.pos:]
	n, i := ParseNumber(b)
	if i == 0 {
		s.Fail("not a number")
		return n, 0, false
	}
	// Fast path: one blank, thirteen digits, end of line.
	if rest := b[i:]; len(rest) >= 15 && rest[0] == ' ' && rest[14] == '\n' {
		first, ok := parseEightDigits(rest[1:])
		last, alsoOK := parseEightDigits(rest[6:])
		if t := int64(first*1e5 + last%1e5); ok && alsoOK && t >= minMilliseconds {
			s.pos += i + 15
			return n, t * 1e6, true
		}
	}
	if i < len(b) && b[i] == '\n' { // a kubelet writes start times without a timestamp
		s.pos += i + 1
		return n, 0, true
	}
	return s.timeSlow(n, b, i)
}

// timeSlow reads the rest of a line after its value: blanks, an optional time, an optional
// exemplar, the end of the line.
func (s *Scanner) timeSlow(n Number, b []byte, i int) (Number, int64, bool) {
	var t int64
	if i < len(b) && b[i]|0x20 == 'x' { // hexadecimal: the format allows it, and no kubelet writes it
		n = Number{kind: notFinite}
		for i < len(b) && b[i] > ' ' {
			i++
		}
	}
	end := i
	i = skipBlanks(b, i)
	if i > end && i < len(b) && (b[i]-'0' <= 9 || b[i] == '-') {
		stamp, size := ParseNumber(b[i:])
		if size == 0 {
			s.pos += i
			s.Fail("not a time")
			return n, 0, false
		}
		t = nanoseconds(stamp)
		i += size
	}
	if !s.lineEnd(b, i) {
		return n, 0, false
	}
	return n, t, true
}

// lineEnd moves to the next line, if blanks, an exemplar and a carriage return are all that
// is left of b from i on. b begins at the current position.
func (s *Scanner) lineEnd(b []byte, i int) bool {
	i = skipBlanks(b, i)
	if i < len(b) && b[i] == '\r' {
		i++
	}
	s.pos += i
	switch {
	case i >= len(b):
	case b[i] == '\n':
		s.pos++
	case b[i] == '#' && (b[i-1] == ' ' || b[i-1] == '\t'): // an exemplar
		s.Skip()
	default:
		s.Fail("more than a value and a time")
		return false
	}
	return true
}

// Skip moves to the next line without reading the current one.
func (s *Scanner) Skip() {
	if i := bytes.IndexByte(s.body[s.pos:], '\n'); i >= 0 {
		s.pos += i + 1
		return
	}
	s.pos = len(s.body)
}

// Fail ends the scan with an error at the current position.
func (s *Scanner) Fail(what string) {
	if s.err == nil {
		s.err = ParseError(s.body, s.pos, what)
	}
}
