package ui_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// blocks are the elements that begin a new line.
var blocks = []string{"header", "nav", "form", "main", "h1", "h2", "h3", "p", "li", "tr", "dl", "section", "footer", "div", "figure"}

// text returns the text of a page, with one line for each block, links as [text](address) and
// pictures as {title}. It returns an error if an element is not closed or if text is not escaped.
func text(page string) (string, error) {
	var out, line strings.Builder
	flush := func() {
		if s := strings.TrimSpace(strings.Join(strings.Fields(line.String()), " ")); s != "" {
			out.WriteString(s + "\n")
		}
		line.Reset()
	}
	var hrefs []string
	skip := 0
	err := walk(page, func(t xml.Token) {
		switch t := t.(type) {
		case xml.StartElement:
			name := t.Name.Local
			switch {
			case name == "style" || name == "script":
				skip++
			case slices.Contains(blocks, name):
				flush()
			}
			switch name {
			case "h1", "h2", "h3":
				line.WriteString(strings.Repeat("#", int(name[1]-'0')) + " ")
			case "td", "th":
				line.WriteString(" | ")
			case "a":
				hrefs = append(hrefs, attr(t, "href"))
				line.WriteString(" [")
			case "input":
				fmt.Fprintf(&line, " <%s %s=%q>", attr(t, "type"), attr(t, "name"), attr(t, "value"))
			case "svg":
				line.WriteString(" {")
				if attr(t, "aria-hidden") != "" {
					line.WriteString("bar")
				}
			case "dd", "dt", "span", "text", "output", "option":
				line.WriteString(" ")
			case "meta":
				if attr(t, "http-equiv") == "refresh" {
					fmt.Fprintf(&line, "refresh every %s s\n", attr(t, "content"))
				}
			}
		case xml.EndElement:
			switch name := t.Name.Local; {
			case name == "style" || name == "script":
				skip--
			case name == "a":
				fmt.Fprintf(&line, "](%s) ", hrefs[len(hrefs)-1])
				hrefs = hrefs[:len(hrefs)-1]
			case name == "svg":
				line.WriteString("} ")
			case slices.Contains(blocks, name):
				flush()
			}
		case xml.CharData:
			if skip == 0 {
				// The title of a picture is part of the line around it.
				line.Write(t)
			}
		}
	})
	flush()
	return out.String(), err
}

// walk calls do for each token of a page. The page must be valid XML.
func walk(page string, do func(xml.Token)) error {
	d := xml.NewDecoder(strings.NewReader(page))
	d.Entity = xml.HTMLEntity
	for {
		t, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		do(t)
	}
}

func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
