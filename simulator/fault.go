package simulator

import (
	"fmt"
	"strings"
	"time"
)

// A Kind is what goes wrong.
type Kind uint8

// The kinds of fault. README.md says what each does to which endpoint.
const (
	Restart   Kind = iota // a container ends; another of its name starts
	Replace               // a pod ends; another of its name starts (new UID)
	Duplicate             // two instances, or one seen twice
	TwoNodes              // another node reports the pod too
	Reset                 // a counter falls though nothing restarted
	Jitter                // start times move from scrape to scrape
	Missing               // not reported
	Zero                  // reported as 0, now: how a kubelet writes "unread"
	Stale                 // values and times stand still
	ClockStep             // a node's clock jumps
	Slow                  // a node answers late
	Hang                  // a node accepts, and never answers
	Down                  // a node closes connections
	Garbage               // a node answers nonsense
	numKinds  int  = iota
)

var kindNames = [numKinds]string{
	"restart", "replace", "duplicate", "twonodes", "reset", "jitter", "missing", "zero", "stale",
	"clockstep", "slow", "hang", "down", "garbage",
}

// String returns the verb of the language.
func (k Kind) String() string {
	if int(k) < numKinds {
		return kindNames[k]
	}
	return "unknown"
}

// A Style is a variety of Duplicate or Garbage.
type Style uint8

// The styles.
const (
	NoStyle Style = iota
	// OldInstance: a pod is deleted by force and made again, while the old
	// one's cgroup lives on.
	OldInstance
	// TwoLines: a container of the same name starts beside the first, in the
	// same pod.
	TwoLines
	// TwoPaths: one container is seen under two cgroup paths.
	TwoPaths
	// Binary, HTML and Truncated are varieties of Garbage: bytes that are no
	// text, a proxy's error page, and half an answer.
	Binary
	HTML
	Truncated
	numStyles int = iota
)

var styleNames = [numStyles]string{"", "old-instance", "two-lines", "two-paths", "binary", "html", "truncated"}

// String returns the word of the language.
func (s Style) String() string {
	if int(s) < numStyles {
		return styleNames[s]
	}
	return "unknown"
}

// A Fault is something that goes wrong at a known time. Fields that its kind
// does not use are zero.
type Fault struct {
	Kind Kind
	// Node, Pod and Container select: * stands for any characters, ? for one.
	// Pod is NAME or NAMESPACE/NAME. For TwoNodes, Node is the second node.
	Node, Pod, Container string
	// At is when it begins, after the fleet's start. For is how long it lasts;
	// 0 is for ever. For a Restart or Replace it is the time until the next
	// instance starts, by default about a second.
	At, For time.Duration
	// Delay is how long a Slow node takes.
	Delay time.Duration
	// By is how far a clock steps.
	By time.Duration
	// Spread is how far a start moves, either way.
	Spread time.Duration
	Style  Style
}

// String returns the fault in the language that Parse reads; Parse(f.String())
// is f.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.Kind.String())
	word := func(name, value string) {
		if value != "" {
			b.WriteString(" " + name + "=" + value)
		}
	}
	duration := func(name string, d time.Duration, always bool) {
		if d != 0 || always {
			b.WriteString(" " + name + "=" + d.String())
		}
	}
	word("node", f.Node)
	word("pod", f.Pod)
	word("container", f.Container)
	duration("at", f.At, grammar[f.Kind].needs(inAt))
	duration("for", f.For, false)
	duration("delay", f.Delay, false)
	duration("by", f.By, false)
	if f.Spread != 0 {
		fmt.Fprintf(&b, " start=±%v", f.Spread)
	}
	word("style", f.Style.String())
	return b.String()
}

// part is a set of the parts a fault can have.
type part uint16

const (
	inNode part = 1 << iota
	inPod
	inContainer
	inAt
	inFor
	inDelay
	inBy
	inStart
	inStyle
)

var partNames = [...]string{"node", "pod", "container", "at", "for", "delay", "by", "start", "style"}

func (p part) String() string {
	var names []string
	for i, n := range partNames {
		if p&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ", ")
}

// rule says which parts a kind of fault must and may have.
type rule struct{ must, may part }

func (r rule) needs(p part) bool  { return r.must&p != 0 }
func (r rule) allows(p part) bool { return (r.must|r.may)&p != 0 }

var grammar = [numKinds]rule{
	Restart:   {must: inPod | inAt, may: inContainer | inFor},
	Replace:   {must: inPod | inAt, may: inFor},
	Duplicate: {must: inPod | inAt, may: inContainer | inFor | inStyle},
	TwoNodes:  {must: inPod | inNode, may: inAt | inFor},
	Reset:     {must: inAt, may: inNode | inPod | inContainer},
	Jitter:    {must: inPod | inStart, may: inContainer | inAt | inFor},
	Missing:   {may: inPod | inContainer | inAt | inFor},
	Zero:      {may: inPod | inContainer | inAt | inFor},
	Stale:     {may: inNode | inPod | inAt | inFor},
	ClockStep: {must: inNode | inBy | inAt},
	Slow:      {must: inNode | inDelay, may: inAt | inFor},
	Hang:      {must: inNode, may: inAt | inFor},
	Down:      {must: inNode, may: inAt | inFor},
	Garbage:   {must: inNode, may: inAt | inFor | inStyle},
}

var stylesOf = [numKinds][]Style{
	Duplicate: {OldInstance, TwoLines, TwoPaths},
	Garbage:   {Binary, HTML, Truncated},
}
