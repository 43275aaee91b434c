package simulator

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric/series"
)

// A ParseError says why a fault could not be parsed, and at which position.
type ParseError struct {
	Line   int // from 1; 0 if the text was a single fault
	Column int // byte in the line, from 1
	Msg    string
}

// Error returns "line 2, column 9: ..." or "column 9: ...".
func (e *ParseError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("column %d: %s", e.Column, e.Msg)
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

// ReadFaults reads faults, one on each line. It skips empty lines and
// everything after a #. The error of a bad line is a *ParseError.
func ReadFaults(r io.Reader) ([]Fault, error) {
	var faults []Fault
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if strings.TrimSpace(text) == "" {
			continue
		}
		f, err := parse(text)
		if err != nil {
			err.Line = n
			return nil, err
		}
		faults = append(faults, f)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read faults: %w", err)
	}
	return faults, nil
}

// Parse reads one fault: a verb and its parts, separated by spaces, in any
// order.
//
//	restart pod=shop/web-* container=app at=30s
//	duplicate pod=ledger-0 at=1m for=2m style=old-instance
//	slow node=node-0001 delay=5s
//
// The error is a *ParseError.
func Parse(text string) (Fault, error) {
	f, err := parse(text)
	if err != nil {
		return Fault{}, err
	}
	return f, nil
}

func parse(text string) (f Fault, err *ParseError) {
	words := split(text)
	if len(words) == 0 {
		return f, &ParseError{Column: 1, Msg: "empty: want one of " + strings.Join(kindNames[:], ", ")}
	}
	found := false
	for k, name := range kindNames {
		if name == words[0].text {
			f.Kind, found = Kind(k), true
		}
	}
	if !found {
		return f, words[0].errorf("unknown fault %q: want one of %s", words[0].text, strings.Join(kindNames[:], ", "))
	}
	r := grammar[f.Kind]
	var seen part
	for _, w := range words[1:] {
		name, value, ok := strings.Cut(w.text, "=")
		if _, err := time.ParseDuration(w.text); !ok && err == nil && f.Kind == Slow {
			// The short form "slow node=x 5s".
			name, value, ok = "delay", w.text, true
			w.column -= len("delay=")
		}
		if !ok {
			return f, w.errorf("%q is not NAME=VALUE: %v takes %v", w.text, f.Kind, r.must|r.may)
		}
		p := partNamed(name)
		if p == 0 || !r.allows(p) {
			return f, w.errorf("%v has no %q: it takes %v", f.Kind, name, r.must|r.may)
		}
		if seen&p != 0 {
			return f, w.errorf("%s is given twice", name)
		}
		seen |= p
		w.column += len(name) + 1
		w.text = value
		if err := f.set(p, w); err != nil {
			return f, err
		}
	}
	if lack := r.must &^ seen; lack != 0 {
		return f, &ParseError{Column: len(text) + 1, Msg: fmt.Sprintf("%v needs %v", f.Kind, lack)}
	}
	if seen&(inNode|inPod|inContainer) == 0 {
		return f, &ParseError{Column: len(text) + 1, Msg: fmt.Sprintf("%v needs one of %v", f.Kind, r.may&(inNode|inPod|inContainer))}
	}
	if f.Kind == Reset && f.Node != "" && (f.Pod != "" || f.Container != "") {
		return f, words[0].errorf("reset takes a node (its own counter falls), or a pod and container, not both")
	}
	if f.Kind == Leap && f.By < 0 {
		return f, words[0].errorf("a leap goes up: a counter that falls is a reset")
	}
	if f.Kind == Duplicate && f.Style == TwoQoS && f.Container != "" {
		return f, words[0].errorf("style=two-qos concerns pods, and the second cgroup is empty: it takes no container")
	}
	if f.Kind == SlowStart && f.By < 0 {
		return f, words[0].errorf("a process starts after its cgroup was made: by is more than 0")
	}
	if styles := stylesOf[f.Kind]; len(styles) > 0 && f.Style == NoStyle {
		f.Style = styles[0]
	}
	return f, nil
}

func (f *Fault) set(p part, w word) (err *ParseError) {
	switch p {
	case inNode:
		f.Node, err = w.glob(false)
	case inPod:
		f.Pod, err = w.glob(true)
	case inContainer:
		f.Container, err = w.glob(false)
	case inAt:
		f.At, err = w.duration(0)
	case inFor:
		f.For, err = w.duration(1)
	case inDelay:
		f.Delay, err = w.duration(1)
	case inBy:
		f.By, err = w.anyDuration()
		if err == nil && f.By == 0 {
			err = w.errorf("a step of 0 is none")
		}
	case inStart:
		rest, ok := strings.CutPrefix(w.text, "±")
		if !ok {
			return w.errorf("%q: want ± and a duration, as in start=±2s", w.text)
		}
		w.column += len("±")
		w.text = rest
		f.Spread, err = w.duration(1)
	case inAs:
		f.As, err = w.glob(false)
	case inStyle:
		for _, s := range stylesOf[f.Kind] {
			if s.String() == w.text {
				f.Style = s
				return nil
			}
		}
		return w.errorf("%v has no style %q: want one of %s", f.Kind, w.text, strings.Trim(fmt.Sprint(stylesOf[f.Kind]), "[]"))
	}
	return err
}

func partNamed(name string) part {
	for i, n := range partNames {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// word is a word of a fault, with the byte at which it starts, counted from 1.
type word struct {
	text   string
	column int
}

func split(text string) (words []word) {
	for i := 0; i < len(text); {
		if isSpace(text[i]) {
			i++
			continue
		}
		j := i
		for j < len(text) && !isSpace(text[j]) {
			j++
		}
		words = append(words, word{text[i:j], i + 1})
		i = j
	}
	return words
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

func (w word) errorf(format string, args ...any) *ParseError {
	return &ParseError{Column: w.column, Msg: fmt.Sprintf(format, args...)}
}

// glob checks a pattern: characters of Kubernetes names, * and ?, and for a pod
// at most one slash.
func (w word) glob(slash bool) (string, *ParseError) {
	if w.text == "" {
		return "", w.errorf("empty pattern: use * for any")
	}
	slashes := 0
	for i := range len(w.text) {
		switch c := w.text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9',
			c == '-', c == '.', c == '_', c == '*', c == '?':
		case c == '/' && slash && slashes == 0 && i > 0 && i < len(w.text)-1:
			slashes++
		default:
			return "", &ParseError{Column: w.column + i, Msg: fmt.Sprintf("%q cannot be part of a name", c)}
		}
	}
	return w.text, nil
}

func (w word) anyDuration() (time.Duration, *ParseError) {
	d, err := time.ParseDuration(w.text)
	if err != nil {
		return 0, w.errorf("%q is not a duration: want 30s, 1m30s or 250ms", w.text)
	}
	// Times are nanoseconds since 1970 in 64 bits: sums of some of these must
	// not overflow.
	if d > maxDuration || d < -maxDuration {
		return 0, w.errorf("%q is too long: want at most %v", w.text, maxDuration)
	}
	return d, nil
}

const maxDuration = 10 * 365 * 24 * time.Hour

func (w word) duration(least time.Duration) (time.Duration, *ParseError) {
	d, err := w.anyDuration()
	switch {
	case err == nil && d < 0:
		return 0, w.errorf("%q is negative", w.text)
	case err == nil && d < least:
		return 0, w.errorf("%q is nothing: leave it out", w.text)
	}
	return d, err
}

// match reports whether name matches the pattern: * matches any characters, ?
// matches one. An empty pattern matches all names.
func match(pattern, name string) bool { return pattern == "" || series.Match(pattern, name) }

// hits reports whether the fault's Pod pattern matches that pod.
func (f *Fault) hits(namespace, pod string) bool {
	ns, name, ok := strings.Cut(f.Pod, "/")
	if !ok {
		ns, name = "", f.Pod
	}
	return match(ns, namespace) && match(name, pod)
}
