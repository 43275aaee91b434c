package explaincmd

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/weir-metrics/weir/client/terminal"
)

// page is text for people. It is written whole, once it is complete.
type page struct {
	to     io.Writer
	text   bytes.Buffer
	colour bool
	width  int // where lines are wrapped; 0: nowhere
	// command is what a person types for another answer: "kubectl weir explain".
	command string
}

// narrowest is the narrowest terminal that lines are wrapped for.
const narrowest = 40

func newPage(w io.Writer, command string) *page {
	t := terminal.Of(w)
	p := &page{to: w, colour: t.Colour, command: command}
	if t.Size != nil {
		if width, _, err := t.Size(); err == nil && width >= narrowest {
			p.width = width
		}
	}
	return p
}

// flush writes the page.
func (p *page) flush() error {
	if _, err := p.to.Write(p.text.Bytes()); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// tint is how a line is set off.
type tint string

const (
	noTint tint = ""
	bold   tint = "\x1b[1m"
	amber  tint = "\x1b[33m"
	red    tint = "\x1b[31m"
	dim    tint = "\x1b[2m"
	plain       = "\x1b[0m"
)

// line writes one paragraph that begins at a column. Where it is wrapped, the lines
// that follow begin where its text does, after lead.
func (p *page) line(column int, lead string, c tint, text string) {
	indent := strings.Repeat(" ", column)
	lead = terminal.Safe(lead)
	hang := indent + strings.Repeat(" ", utf8.RuneCountInString(lead))
	room := 0
	if p.width > 0 {
		room = max(p.width-len(hang), narrowest/2)
	}
	for i, l := range wrap(terminal.Safe(shorten(text)), room) {
		if i == 0 {
			p.text.WriteString(indent)
			p.tinted(dim, lead)
		} else {
			p.text.WriteString(hang)
		}
		p.tinted(c, l)
		p.text.WriteByte('\n')
	}
}

func (p *page) tinted(c tint, text string) {
	if p.colour && c != noTint && text != "" {
		text = string(c) + text + plain
	}
	p.text.WriteString(text)
}

// item writes a labelled line of a list that begins at a column; nothing if there
// is nothing to say.
func (p *page) item(column int, label, text string) {
	if text != "" {
		p.line(column, fmt.Sprintf("%-*s", labels, label), noTint, text)
	}
}

// advise is item for what to do. What weir says to type becomes what this program
// is called: who has kubectl need not have weir.
func (p *page) advise(column int, text string) {
	p.item(column, "do", strings.ReplaceAll(text, "`weir explain ", "`"+p.command+" "))
}

// longest is how much is written of one paragraph, in bytes: a server's error may
// be a page of its own.
const longest = 1000

// shorten cuts text that nobody would read to its end.
func shorten(text string) string {
	if len(text) <= longest {
		return text
	}
	cut := longest
	for cut > longest-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s... (%d bytes more: -o json has them)", text[:cut], len(text)-cut)
}

// labels is how wide labels are, with the space after them.
const labels = 7

// gap writes an empty line.
func (p *page) gap() { p.text.WriteByte('\n') }

// wrap breaks text between words into lines of at most room characters; a longer
// word has a line of its own. A room of 0 has no end.
func wrap(text string, room int) []string {
	if room == 0 || utf8.RuneCountInString(text) <= room {
		return []string{text}
	}
	var lines []string
	var line strings.Builder
	used := 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		if used > 0 && used+1+n > room {
			lines = append(lines, line.String())
			line.Reset()
			used = 0
		}
		if used > 0 {
			line.WriteByte(' ')
			used++
		}
		line.WriteString(word)
		used += n
	}
	return append(lines, line.String())
}
