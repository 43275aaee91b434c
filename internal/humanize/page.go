package humanize

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Tint is an escape sequence with which a terminal marks a text.
type Tint string

// The tints.
const (
	Plain Tint = ""
	Bold  Tint = "\x1b[1m"
	Dim   Tint = "\x1b[2m"
	Red   Tint = "\x1b[31m"
	Amber Tint = "\x1b[33m"
	// Reverse swaps the colours of text and background.
	Reverse Tint = "\x1b[7m"
)

// Apply returns the text with the tint.
func (t Tint) Apply(text string) string { return string(t) + text + "\x1b[0m" }

// Page is a text for people, which commands print. Every text that is added to it becomes
// Printable.
type Page struct {
	Colour bool // whether to write tints
	Width  int  // width at which lines are wrapped; 0 for no limit
	text   strings.Builder
}

// MinPageWidth is the smallest width at which lines are wrapped.
const MinPageWidth = 40

// Line writes one paragraph, indented to column.
func (p *Page) Line(column int, tint Tint, text string) { p.Labelled(column, "", tint, text) }

// Labelled writes one paragraph, indented to column, after a dim label. If it is wrapped, the
// following lines begin below its text.
func (p *Page) Labelled(column int, label string, tint Tint, text string) {
	indent := strings.Repeat(" ", column)
	label = Printable(label)
	hang := indent + strings.Repeat(" ", utf8.RuneCountInString(label))
	width := 0
	if p.Width > 0 {
		width = max(p.Width-len(hang), MinPageWidth/2)
	}
	for i, line := range wrap(Printable(text), width) {
		if i == 0 {
			p.text.WriteString(indent)
			p.addTinted(Dim, label)
		} else {
			p.text.WriteString(hang)
		}
		p.addTinted(tint, line)
		p.text.WriteByte('\n')
	}
}

// Item writes a line with a label of a fixed width. It writes nothing if the text is empty.
func (p *Page) Item(column int, label string, tint Tint, text string) {
	if text != "" {
		p.Labelled(column, fmt.Sprintf("%-7s", label), tint, text)
	}
}

// Gap writes an empty line.
func (p *Page) Gap() { p.text.WriteByte('\n') }

// Title writes an empty line and a title.
func (p *Page) Title(text string) {
	p.Gap()
	p.Line(0, Bold, text)
}

// Table writes rows of cells without tints.
func (p *Page) Table(rows [][]string) {
	table := make(Table, len(rows))
	for i, row := range rows {
		for _, text := range row {
			table[i] = append(table[i], Cell{Text: Printable(text)})
		}
	}
	for _, line := range table.Lines(0, false) {
		p.text.WriteString(line + "\n")
	}
}

// String returns the text.
func (p *Page) String() string { return p.text.String() }

// Print writes the page to w.
func (p *Page) Print(w io.Writer) error {
	if _, err := io.WriteString(w, p.String()); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

func (p *Page) addTinted(tint Tint, text string) {
	if p.Colour && tint != Plain && text != "" {
		text = tint.Apply(text)
	}
	p.text.WriteString(text)
}

// wrap breaks text between words into lines of at most width characters. A longer word has its own
// line. A width of 0 means no limit.
func wrap(text string, width int) []string {
	if width == 0 || utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
