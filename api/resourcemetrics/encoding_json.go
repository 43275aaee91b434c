package resourcemetrics

import (
	"encoding/json"
	"time"

	"github.com/weir-metrics/weir/metric/served"
)

// jsonEncoding is application/json.
type jsonEncoding struct {
	spans spans
	made  string // the creation time
}

func (e *jsonEncoding) begin(b []byte, d *document) ([]byte, int) {
	e.made = `,"creationTimestamp":"` + d.now.UTC().Format(time.RFC3339) + `"`
	b = append(b, `{"kind":"`...)
	b = append(b, d.name()...)
	b = append(b, `","apiVersion":"`+groupVersion+`",`...)
	if d.list {
		b = append(b, `"metadata":{},"items":[`...)
	}
	return b, -1
}

func (e *jsonEncoding) object(b []byte, d *document, o *object, i int) []byte {
	switch {
	case !d.list:
	case i > 0:
		b = append(b, `,{`...)
	default:
		b = append(b, '{')
	}
	b = append(b, `"metadata":{"name":`...)
	b = o.subject.appendText(b, o.name)
	if o.namespace != "" {
		b = append(b, `,"namespace":`...)
		b = o.subject.appendText(b, string(o.namespace))
	}
	b = append(b, e.made...)
	b = append(b, o.labels.json...)
	b = append(b, e.spans.text(o.over)...)
	if !d.kind.containers {
		b = append(b, ',')
		return append(appendUsage(b, &o.uses[0]), '}')
	}
	b = append(b, `,"containers":[`...)
	for i := range o.uses {
		u := &o.uses[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = appendString(b, u.name)
		b = append(b, ',')
		b = append(appendUsage(b, u), '}')
	}
	return append(b, `]}`...)
}

// appendText appends a name of s as encoding/json writes it.
func (s *subject) appendText(b []byte, name string) []byte {
	if !s.plain {
		return appendString(b, name)
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"')
}

// appendLabels appends labels as a field that is not the first.
func appendLabels(b []byte, labels []label) []byte {
	between := `,"labels":{`
	for _, l := range labels {
		b = append(b, between...)
		b = appendString(b, l.key)
		b = append(b, ':')
		b = appendString(b, l.value)
		between = `,`
	}
	return append(b, '}')
}

func appendUsage(b []byte, u *usage) []byte {
	b = append(b, `"usage":{"cpu":"`...)
	b = u.cpu.append(b)
	b = append(b, `","memory":"`...)
	b = u.memory.append(b)
	return append(b, `"}`...)
}

func (*jsonEncoding) end(b []byte, d *document) []byte {
	if d.list {
		b = append(b, `]}`...)
	}
	return append(b, '\n')
}

// plain reports whether encoding/json writes s as it is, in quotes. No name or label that
// an API server takes is not.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// appendString appends s as encoding/json writes it.
func appendString(b []byte, s string) []byte {
	if !plain(s) {
		quoted, _ := json.Marshal(s) // a string is never refused
		return append(b, quoted...)
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// spans remembers how times and windows were written, each time in a place of its own
// among some that lie together: objects are of a few seconds, without any order.
type spans [16]struct {
	second int64
	window time.Duration
	text   []byte
}

// text returns the end of the metadata, the timestamp, which is cut to the second as RFC
// 3339 has it, and the window.
func (s *spans) text(over served.Span) []byte {
	second := unix(over.End)
	at := &s[uint64(second)%uint64(len(s))]
	if at.text == nil || at.second != second || at.window != over.Length {
		at.second, at.window = second, over.Length
		at.text = time.Unix(second, 0).UTC().AppendFormat(append(at.text[:0], `},"timestamp":"`...), time.RFC3339)
		at.text = append(append(append(at.text, `","window":"`...), over.Length.String()...), '"')
	}
	return at.text
}
