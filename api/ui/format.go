package ui

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weir-metrics/weir/internal/humanize"
)

// shownTime is a time as the page shows it. Text is relative to now, and Full is absolute. The zero
// value shows nothing.
type shownTime struct{ Text, Full string }

// dueTime returns the shown time of a future event, "now" if it is due.
func dueTime(t, now time.Time) shownTime {
	m := relativeTime(t, now)
	if m.Text != "" && !t.After(now) {
		m.Text = "now"
	}
	return m
}

// relativeTime returns t relative to now.
func relativeTime(t, now time.Time) shownTime {
	if t.IsZero() {
		return shownTime{}
	}
	full := t.UTC().Format("2006-01-02T15:04:05Z")
	return shownTime{humanize.Ago(t, now), full}
}

// maxText limits the length of a text in bytes. The error of a server may be a whole page.
const maxText = maxName

// printable returns a text that is safe to show. It quotes a text with characters that are not
// printable or that change the direction of writing.
func printable(s string) string {
	if len(s) > maxText {
		s = fmt.Sprintf("%s... (%s bytes more)", strings.ToValidUTF8(s[:maxText], ""), humanize.Number(len(s)-maxText))
	}
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	return strconv.QuoteToGraphic(s)
}

// textPart is a part of a text: prose, or code to type.
type textPart struct {
	Text string
	Code bool
}

// splitCode splits a text at backquotes. The parts between two backquotes are code. A single
// backquote stays a character.
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
