// Package pages reads the commands of a documentation page that a test runs, and compares what they
// print with what the page shows. CONTRIBUTING.md describes the marks.
package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Step is a command of a page, or a file that the page shows.
type Step struct {
	Line    int    // of the page
	Command string // as it is after "$ "; "" for a file
	File    string // the file's name; "" for a command
	Text    string // what the command prints, or what the file contains
}

// Background says whether the command goes on while the next ones run.
func (s Step) Background() bool { return strings.HasSuffix(s.Command, "&") }

// Fails says whether the page shows that the command ends with an error.
func (s Step) Fails() bool { return regexp.MustCompile(`(?m)^error: `).MatchString(s.Text) }

// All returns the steps of README.md and of each page in docs, by the page's path below root. A page
// without steps is not in it.
func All(root string) (map[string][]Step, error) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return nil, err
	}
	all := map[string][]Step{}
	for _, file := range append(files, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return nil, err
		}
		steps, err := Steps(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s:%w", name, err)
		}
		if len(steps) > 0 {
			all[name] = steps
		}
	}
	return all, nil
}

// Steps returns the steps of a page in their order. An error begins with the line.
func Steps(page string) (steps []Step, err error) {
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		text := strings.TrimLeft(lines[i], " ")
		info, fenced := strings.CutPrefix(text, "```")
		if !fenced {
			continue
		}
		indent, begin := lines[i][:len(lines[i])-len(text)], i+1
		var block []string
		for i++; i < len(lines) && strings.TrimLeft(lines[i], " ") != "```"; i++ {
			block = append(block, strings.TrimPrefix(lines[i], indent))
		}
		if i == len(lines) {
			return nil, fmt.Errorf("%d: the block has no end", begin)
		}
		language, mark, _ := strings.Cut(info, " ")
		file, isFile := strings.CutPrefix(mark, "file=")
		switch {
		case mark == "":
		case mark == "run" && language == "console":
			commands, err := commandsOf(block, begin+1)
			if err != nil {
				return nil, err
			}
			steps = append(steps, commands...)
		case isFile && file != "" && filepath.Base(file) == file:
			steps = append(steps, Step{Line: begin, File: file, Text: strings.Join(block, "\n") + "\n"})
		default:
			return nil, fmt.Errorf("%d: the mark %q is neither `console run` nor `LANGUAGE file=NAME`", begin, info)
		}
	}
	return steps, nil
}

// commandsOf returns the commands of a block that begins at a line. A command that ends with a
// backslash goes on in the next line.
func commandsOf(block []string, line int) (commands []Step, err error) {
	continued := false
	for i, text := range block {
		command, begins := strings.CutPrefix(text, "$ ")
		last := len(commands) - 1
		switch {
		case continued:
			commands[last].Command += "\n" + text
		case begins:
			commands = append(commands, Step{Line: line + i, Command: command})
		case last < 0:
			return nil, fmt.Errorf("%d: the block begins with %q, not with a command", line+i, text)
		default:
			commands[last].Text += text + "\n"
		}
		continued = (begins || continued) && strings.HasSuffix(text, `\`)
	}
	if len(commands) == 0 || continued {
		return nil, fmt.Errorf("%d: the block ends without a whole command", line+len(block))
	}
	return commands, nil
}

var (
	// token is what a number, spaces or a gap may differ in.
	token = regexp.MustCompile(`\.\.\.|\d+(?:[.,]\d+)*| +`)
	// atEnd is the spaces at the end of a line.
	atEnd = regexp.MustCompile(`(?m) +$`)
)

// Matches says whether a command printed what the page shows. `...` in the page is any text of one
// line, and a line of `...` is any lines. A number is any number, and spaces are any spaces. What a
// command in the background prints may have more lines at its end. If the page shows nothing, it does
// not matter what the command prints.
func Matches(step Step, printed string) bool {
	if step.Text == "" {
		return true
	}
	var pattern strings.Builder
	for line := range strings.Lines(atEnd.ReplaceAllString(step.Text, "")) {
		if line == "...\n" {
			pattern.WriteString(`(?:.*\n)*`)
			continue
		}
		rest := 0
		for _, at := range token.FindAllStringIndex(line, -1) {
			pattern.WriteString(regexp.QuoteMeta(line[rest:at[0]]))
			switch line[at[0]] {
			case '.':
				pattern.WriteString(`.*`)
			case ' ':
				pattern.WriteString(` +`)
			default:
				pattern.WriteString(`\d+(?:[.,]\d+)*`)
			}
			rest = at[1]
		}
		pattern.WriteString(regexp.QuoteMeta(line[rest:]))
	}
	if step.Background() {
		pattern.WriteString(`(?s:.*)`)
	}
	return regexp.MustCompile(`\A` + pattern.String() + `\z`).MatchString(atEnd.ReplaceAllString(printed, ""))
}
