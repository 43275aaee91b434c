package ui

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// millicores writes nanocores as kubectl top does, rounded to the nearest.
func millicores(nanocores float64) string {
	return strconv.FormatFloat(math.Round(nanocores/1e6), 'f', 0, 64) + "m"
}

// binary writes bytes in Mi, as kubectl does, and below 1Mi in Ki, for a cgroup
// may be small; rounded to the nearest.
func binary(bytes float64) string {
	switch {
	case bytes == 0:
		return "0"
	case bytes < 1<<20-1<<9: // what rounds to 1024Ki is 1Mi
		return strconv.FormatFloat(math.Round(bytes/(1<<10)), 'f', 0, 64) + "Ki"
	}
	return strconv.FormatFloat(math.Round(bytes/(1<<20)), 'f', 0, 64) + "Mi"
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", share*100) }

// lasting writes a duration in its two largest units: "2h 5m", "12s".
func lasting(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	days, hours := int(d/(24*time.Hour)), int(d/time.Hour)%24
	minutes, seconds := int(d/time.Minute)%60, int(d/time.Second)%60
	two := func(n int, unit string, m int, smaller string) string {
		if m == 0 {
			return fmt.Sprintf("%d%s", n, unit)
		}
		return fmt.Sprintf("%d%s %d%s", n, unit, m, smaller)
	}
	switch {
	case days > 0:
		return two(days, "d", hours, "h")
	case hours > 0:
		return two(hours, "h", minutes, "m")
	case minutes > 0:
		return two(minutes, "m", seconds, "s")
	}
	return fmt.Sprintf("%ds", seconds)
}

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
	switch d := t.Sub(now).Round(time.Second); {
	case d > 0:
		return shownTime{"in " + lasting(d), full}
	case d == 0:
		return shownTime{"just now", full}
	default:
		return shownTime{lasting(-d) + " ago", full}
	}
}

// maxText is how much of a text is shown, in bytes: a server's error may be a page
// of its own.
const maxText = maxName

// printable makes a name safe to show: what has no shape, or turns the direction of
// what stands around it, is quoted.
func printable(s string) string {
	if len(s) > maxText {
		s = fmt.Sprintf("%s... (%s bytes more)", strings.ToValidUTF8(s[:maxText], ""), grouped(len(s)-maxText))
	}
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	return strconv.QuoteToGraphic(s)
}

// plural writes a count with its noun: "1 pod", "3 pods".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(n) + " " + noun + "s"
}

// grouped writes a count with its thousands set apart: "12,345".
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
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
