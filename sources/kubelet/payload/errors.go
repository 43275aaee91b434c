package payload

import (
	"bytes"
	"fmt"

	"github.com/weir-metrics/weir/metric"
)

// excerptBytes is the largest part of a bad payload that an error quotes.
const excerptBytes = 60

// ParseError returns the error for a payload that cannot be parsed. It has the problem, the line,
// the byte offset, and a short excerpt. Its reason is metric.NodeBadPayload.
func ParseError(body []byte, offset int, what string) error {
	offset = min(max(offset, 0), len(body))
	line := 1 + bytes.Count(body[:offset], []byte{'\n'})
	return metric.ReadErrorf(metric.NodeBadPayload, "line %d (offset %d): %s: %s", line, offset, what, Excerpt(body[offset:]))
}

// Excerpt returns the start of body, up to the end of its first line, quoted
// for an error message.
func Excerpt(body []byte) string {
	if len(body) == 0 {
		return "end of payload"
	}
	more := ""
	if i := bytes.IndexByte(body, '\n'); i >= 0 {
		body = body[:i]
	}
	if len(body) > excerptBytes {
		body, more = body[:excerptBytes], "..."
	}
	return fmt.Sprintf("%q%s", body, more)
}
