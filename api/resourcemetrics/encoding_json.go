package resourcemetrics

import (
	"encoding/json"
	"time"

	"github.com/weir-metrics/weir/metric/served"
)

// jsonEncoding is application/json.
type jsonEncoding struct {
	labels  labelled
	window  lasting
	seconds seconds
	now     []byte
	// The last namespace, and how it is written.
	namespace string
	quoted    []byte
}

func (e *jsonEncoding) begin(b []byte, d *document) ([]byte, int) {
	e.now = d.now.UTC().AppendFormat(nil, time.RFC3339)
	b = append(b, `{"kind":"`...)
	b = append(b, d.name()...)
	b = append(b, `","apiVersion":"`+groupVersion+`",`...)
	if d.list {
		b = append(b, `"metadata":{},"items":[`...)
	}
	return b, -1
}

func (e *jsonEncoding) object(b []byte, d *document, i int) []byte {
	o := d.at(i)
	switch {
	case !d.list:
	case i > 0:
		b = append(b, `,{`...)
	default:
		b = append(b, '{')
	}
	b = append(b, `"metadata":{"name":`...)
	b = appendString(b, o.name)
	if o.namespace != "" {
		b = append(b, `,"namespace":`...)
		if string(o.namespace) != e.namespace || e.quoted == nil {
			e.namespace, e.quoted = string(o.namespace), appendString(e.quoted[:0], string(o.namespace))
		}
		b = append(b, e.quoted...)
	}
	b = append(b, `,"creationTimestamp":"`...)
	b = append(b, e.now...)
	b = append(b, '"')
	b = append(b, e.labels.write(o.labels, appendLabels)...)
	b = append(b, `},"timestamp":"`...)
	b = e.seconds.appendTime(b, o.over.End)
	b = append(b, `","window":"`...)
	b = append(b, e.window.String(o.over.Length)...)
	uses := d.of(o)
	if !d.kind.containers {
		b = append(b, `",`...)
		return append(appendUsage(b, &uses[0]), '}')
	}
	b = append(b, `","containers":[`...)
	for i := range uses {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = appendString(b, uses[i].Name)
		b = append(b, ',')
		b = append(appendUsage(b, &uses[i]), '}')
	}
	return append(b, `]}`...)
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

func appendUsage(b []byte, u *served.Use) []byte {
	b = append(b, `"usage":{"cpu":"`...)
	b = appendCPU(b, u.CPU)
	b = append(b, `","memory":"`...)
	b = appendMemory(b, u.Memory)
	return append(b, `"}`...)
}

func (*jsonEncoding) end(b []byte, d *document) []byte {
	if d.list {
		b = append(b, `]}`...)
	}
	return append(b, '\n')
}

// appendString appends s as encoding/json writes it.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			// Slow path: no name or label that an API server takes has such a byte.
			quoted, _ := json.Marshal(s) // a string is never refused
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// lasting remembers the text of the last duration: most windows are equal.
type lasting struct {
	of   time.Duration
	text string
}

func (l *lasting) String(d time.Duration) string {
	if l.text == "" || l.of != d {
		l.of, l.text = d, d.String()
	}
	return l.text
}

// seconds remembers the text of the last time: many objects are of one second.
type seconds struct {
	of   int64
	text []byte
}

// appendTime appends a time as RFC 3339 has it, cut to the second.
func (s *seconds) appendTime(b []byte, ns int64) []byte {
	t := time.Unix(0, ns)
	if s.text == nil || s.of != t.Unix() {
		s.of, s.text = t.Unix(), t.UTC().AppendFormat(s.text[:0], time.RFC3339)
	}
	return append(b, s.text...)
}
