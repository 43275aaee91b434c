package payload

import (
	"bytes"
	"strings"
)

// EachLabel calls do with each label of raw, in order. Scanner.Labels returned raw. Escapes in
// values are resolved. It returns false if raw is not a list of labels.
//
// It allocates a string for each value, so use it only for labels that were not seen before.
func EachLabel(raw []byte, do func(name []byte, value string)) bool {
	i := skipBlanks(raw, 0)
	if i >= len(raw) {
		return true
	}
	if raw[i] != '{' {
		return false
	}
	for i++; ; {
		i = skipBlanks(raw, i)
		if i < len(raw) && raw[i] == '}' {
			return skipBlanks(raw, i+1) == len(raw)
		}
		name, quoted, n := labelName(raw[i:])
		if n == 0 {
			return false
		}
		i = skipBlanks(raw, i+n)
		switch {
		case i < len(raw) && raw[i] == '=':
			i = skipBlanks(raw, i+1)
			value, n := quotedString(raw[i:])
			if n == 0 {
				return false
			}
			do(name, value)
			i = skipBlanks(raw, i+n)
		case quoted: // {"metric name", a="b"}: a metric name in quotes
		default:
			return false
		}
		if i < len(raw) && raw[i] == ',' {
			i++
		} else if i >= len(raw) || raw[i] != '}' {
			return false
		}
	}
}

// labelName parses a plain or quoted label name. It returns the name and its length, or 0 if there
// is none.
func labelName(b []byte) (name []byte, quoted bool, n int) {
	if len(b) > 0 && b[0] == '"' {
		s, n := quotedString(b)
		return []byte(s), true, n
	}
	n = nameLen(b)
	return b[:n], false, n
}

// quotedString parses a string in double quotes, with the escapes \\, \" and \n. It returns the
// string and its length, or 0 if there is none.
func quotedString(b []byte) (string, int) {
	if len(b) == 0 || b[0] != '"' {
		return "", 0
	}
	if end := bytes.IndexAny(b[1:], `"\`); end >= 0 && b[1+end] == '"' {
		return string(b[1 : 1+end]), end + 2
	}
	var sb strings.Builder
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return sb.String(), i + 1
		case '\\':
			i++
			if i >= len(b) {
				return "", 0
			}
			switch b[i] {
			case 'n':
				sb.WriteByte('\n')
			case '\\', '"':
				sb.WriteByte(b[i])
			default: // an undefined escape is kept as it is
				sb.WriteByte('\\')
				sb.WriteByte(b[i])
			}
		default:
			sb.WriteByte(b[i])
		}
	}
	return "", 0
}
