package ui

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weir-metrics/weir/humanize"
)

// shownTime is a time as the page shows it: how long ago or until then, and in full
// where one points at it. The zero moment is none.
type shownTime struct{ Text, Full string }

// dueTime returns t, at which something is to happen, as seen at now.
func dueTime(t, now time.Time) shownTime {
	m := relativeTime(t, now)
	if m.Text != "" && !t.After(now) {
		m.Text = "now"
	}
	return m
}

// relativeTime returns t as seen at now.
func relativeTime(t, now time.Time) shownTime {
	if t.IsZero() {
		return shownTime{}
	}
	full := t.UTC().Format("2006-01-02T15:04:05Z")
	return shownTime{humanize.Ago(t, now), full}
}

// maxText is how much of a text is shown, in bytes: a server's error may be a page
// of its own.
const maxText = maxName

// printable makes a name safe to show: what has no shape, or turns the direction of
// what stands around it, is quoted.
func printable(s string) string {
	if len(s) > maxText {
		s = fmt.Sprintf("%s... (%s bytes more)", strings.ToValidUTF8(s[:maxText], ""), humanize.Number(len(s)-maxText))
	}
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	return strconv.QuoteToGraphic(s)
}

// textPart is a part of a text: words, or something to type.
type textPart struct {
	Text string
	Code bool
}

// splitCode divides a text at its backquotes, between which is something to type. One
// that is never closed is a character as any other.
func splitCode(text string) (phrases []textPart) {
	for text != "" {
		before, rest, ok := strings.Cut(text, "`")
		code, after, closed := strings.Cut(rest, "`")
		if !ok || !closed {
			return append(phrases, textPart{Text: printable(text)})
		}
		phrases = append(phrases, textPart{Text: printable(before)}, textPart{printable(code), true})
		text = after
	}
	return phrases
}
