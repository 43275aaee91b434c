package explaincmd

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/humanize"
)

// page is text for people. It is written as a whole when it is complete.
type page struct {
	humanize.Page
	to      io.Writer
	program string   // the command before "explain"
	advised []string // each advice that was written
}

func newPage(w io.Writer, program string) *page {
	t := cli.TerminalOf(w)
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

// line writes one paragraph, cut to longest: see humanize.Page.Labelled.
func (p *page) line(column int, lead string, tint humanize.Tint, text string) {
	p.Labelled(column, lead, tint, shorten(text))
}

// item writes a line with a label, cut to longest. It writes nothing if the text is empty.
func (p *page) item(column int, label, text string) {
	p.Item(column, label, humanize.Plain, shorten(text))
}

// items is item for each of some texts. Only the first line has the label.
func (p *page) items(column int, label string, texts []string) {
	for _, text := range texts {
		p.item(column, label, text)
		label = ""
	}
}

// leftOut writes how many rows a list does not have.
func (p *page) leftOut(n int) {
	if n > 0 {
		p.Gap()
		p.line(0, "", humanize.Plain, humanize.Number(n)+" more are left out: name a namespace or a pod.")
	}
}

// paragraph writes a line with a lead. It writes nothing if the text is empty.
func (p *page) paragraph(lead, text string) {
	if text != "" {
		p.line(0, lead, humanize.Plain, text)
	}
}

// advise is item for advice, with commands in the form of this program. It writes each advice once.
func (p *page) advise(column int, text string) {
	if slices.Contains(p.advised, text) {
		return
	}
	p.advised = append(p.advised, text)
	p.item(column, "do", cli.ForProgram(text, p.program))
}

// longest is the maximum length of one paragraph, in bytes: the error of a server may be a whole
// page.
const longest = 1000

// shorten cuts a very long text.
func shorten(text string) string {
	if len(text) <= longest {
		return text
	}
	start := strings.ToValidUTF8(text[:longest], "") // without half a character at its end
	return fmt.Sprintf("%s... (%d bytes more: -o json has them)", start, len(text)-len(start))
}
