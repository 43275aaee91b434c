package clustermetrics

import (
	"strings"

	"github.com/weir-metrics/weir/metric/series"
)

// appendLabels appends {a="b",...}, or nothing if there are none.
func appendLabels(buf []byte, l *series.Labels) []byte {
	all := l.All()
	if len(all) == 0 {
		return buf
	}
	sep := byte('{')
	for _, p := range all {
		buf = append(buf, sep)
		buf = append(buf, p.Name...)
		buf = append(buf, '=', '"')
		buf = appendEscaped(buf, p.Value)
		buf = append(buf, '"')
		sep = ','
	}
	return append(buf, '}')
}

// appendEscaped appends s as a label's value.
func appendEscaped(buf []byte, s string) []byte {
	if !strings.ContainsAny(s, "\\\"\n") {
		return append(buf, strings.ToValidUTF8(s, "\uFFFD")...)
	}
	for _, r := range s { // what is not UTF-8 becomes U+FFFD
		switch r {
		case '\\':
			buf = append(buf, `\\`...)
		case '"':
			buf = append(buf, `\"`...)
		case '\n':
			buf = append(buf, `\n`...)
		default:
			buf = append(buf, string(r)...)
		}
	}
	return buf
}
