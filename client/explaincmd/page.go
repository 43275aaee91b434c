package explaincmd

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/weir-metrics/weir/client/terminal"
	"github.com/weir-metrics/weir/humanize"
)

// page is text for people. It is written whole, once it is complete.
type page struct {
	humanize.Page
	to io.Writer
	// command is what a person types for another answer: "kubectl weir explain".
	command string
}

func newPage(w io.Writer, command string) *page {
	t := terminal.Of(w)
	p := &page{to: w, command: command}
	p.Colour = t.Colour
	if t.Size != nil {
		if width, _, err := t.Size(); err == nil && width >= humanize.MinPageWidth {
			p.Width = width
		}
	}
	return p
}

// flush writes the page.
func (p *page) flush() error { return p.Print(p.to) }

// line writes one paragraph, shortened: see humanize.Page.Labelled.
func (p *page) line(column int, lead string, tint humanize.Tint, text string) {
	p.Labelled(column, lead, tint, shorten(text))
}

// item writes a labelled line, shortened; nothing if the text is empty.
func (p *page) item(column int, label, text string) {
	p.Item(column, label, humanize.Plain, shorten(text))
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
