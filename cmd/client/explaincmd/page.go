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
	program string   // the command before "explain"
	advised []string // each advice that was written
}

// onPage returns a function that writes an answer on a page, as write does.
func onPage[T any](program string, write func(*page, *T)) func(io.Writer, *T) error {
	return func(w io.Writer, answer *T) error {
		t := cli.TerminalOf(w)
		p := &page{program: program}
		p.Colour = t.Colour
		if t.Size != nil {
			if width, _, err := t.Size(); err == nil && width >= humanize.MinPageWidth {
				p.Width = width
			}
		}
		write(p, answer)
		return p.Print(w)
	}
}

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

// list writes the rows of a table, and the command that explains the first of them. Their second and third
// cells are the namespace and the pod; the namespace is left out unless the list is of all.
func (p *page) list(command string, everywhere bool, rows [][]string) {
	first := rows[1][1] + "/" + rows[1][2]
	if !everywhere {
		for i, row := range rows {
			rows[i] = slices.Delete(row, 1, 2)
		}
	}
	p.Gap()
	p.Table(rows)
	if humanize.IsShellWord(first) {
		p.Gap()
		p.paragraph("In full: ", p.program+" explain "+command+" "+first)
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
