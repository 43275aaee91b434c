package explaincmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/client/terminal"
	"github.com/weir-metrics/weir/humanize"
)

// page is text for people. It is written whole, once it is complete.
type page struct {
	humanize.Page
	to      io.Writer
	program string // what people type before "explain"
}

func newPage(w io.Writer, program string) *page {
	t := terminal.Of(w)
	p := &page{to: w, program: program}
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

// paragraph writes a line with a lead; nothing if the text is empty.
func (p *page) paragraph(lead, text string) {
	if text != "" {
		p.line(0, lead, humanize.Plain, text)
	}
}

// advise is item for advice, with commands as this program is called.
func (p *page) advise(column int, text string) {
	p.item(column, "do", cli.ForProgram(text, p.program))
}

// longest is how much is written of one paragraph, in bytes: a server's error may
// be a page of its own.
const longest = 1000

// shorten cuts a very long text.
func shorten(text string) string {
	if len(text) <= longest {
		return text
	}
	start := strings.ToValidUTF8(text[:longest], "") // without a half character at its end
	return fmt.Sprintf("%s... (%d bytes more: -o json has them)", start, len(text)-len(start))
}
