package simulator

import (
	"fmt"
	"strings"
	"time"
)

// A Kind says what goes wrong.
type Kind uint8

// The kinds of fault. README.md says what each does to which endpoint.
const (
	Restart     Kind = iota // a container ends; another of its name starts
	Replace                 // a pod ends; another of its name starts (new UID)
	Duplicate               // two instances, or one seen twice
	TwoNodes                // another node reports the pod too
	Pending                 // a new pod of this name is bound, and does not start
	Finish                  // a container ends for good
	Terminate               // a pod is being deleted, and its containers have already ended
	Reset                   // a counter falls without a restart
	Leap                    // a counter contains CPU time that nobody used
	Jitter                  // start times move from scrape to scrape
	Missing                 // not reported
	Zero                    // reported as 0 at the present time, as a kubelet writes "unread"
	Stale                   // values and times do not change
	ClockStep               // a node's clock jumps
	Slow                    // a node answers late
	Hang                    // a node accepts connections, and never answers
	Down                    // a node closes connections
	Garbage                 // a node's answer cannot be parsed
	Bulk                    // a node's answer is ten times as long
	Refuse                  // a node answers 401 or 403
	Certificate             // a node's certificate does not verify
	Impostor                // another node answers at the node's address
	ScrapeError             // a node reports that it could not collect
	NotReady                // the API server reports that the node is not ready
	NoAddress               // the API server knows no address of the node
	Unlisted                // the API server does not know the node
	Reboot                  // a node is silent, and then all its containers begin again
	SlowStart               // a container's process starts later than its cgroup
	Assign                  // a container has another role than a regular one
	numKinds    int  = iota
)

var kindNames = [numKinds]string{
	"restart", "replace", "duplicate", "twonodes", "pending", "finish", "terminate", "reset", "leap", "jitter", "missing", "zero", "stale",
	"clockstep", "slow", "hang", "down", "garbage", "bulk",
	"refuse", "certificate", "impostor", "scrapeerror", "notready", "noaddress", "unlisted",
	"reboot", "slowstart", "role",
}

// String returns the verb of the language.
func (k Kind) String() string {
	if int(k) < numKinds {
		return kindNames[k]
	}
	return "unknown"
}

// A Style is a variety of a fault.
type Style uint8

// The styles.
const (
	NoStyle Style = iota
	// OldInstance: a pod is deleted by force and created again, and the cgroup of
	// the old pod remains.
	OldInstance
	// TwoLines: a container of the same name starts beside the first, in the
	// same pod.
	TwoLines
	// TwoPaths: one container is seen under two cgroup paths.
	TwoPaths
	// OwnCounters: as TwoPaths, but the cgroup of the second path is another one: it
	// has a counter and memory of its own, which are not the container's. Sometimes
	// only the second path is reported.
	OwnCounters
	// TwoQoS: a second, empty cgroup of the pod exists in the directory of another
	// QoS class.
	TwoQoS
	// Binary, HTML and Truncated are varieties of Garbage: bytes that are not text,
	// the error page of a proxy, and half an answer.
	Binary
	HTML
	Truncated
	// Unauthorized and Forbidden are varieties of Refuse: status 401 and status
	// 403.
	Unauthorized
	Forbidden
	// SelfSigned, WrongName and Expired are varieties of Certificate.
	SelfSigned
	WrongName
	Expired
	// WasSuccessful and HasFailed are varieties of Finish.
	WasSuccessful
	HasFailed
	// Steady is a variety of Jitter: the error of a container's start times does
	// not change.
	Steady
	// Older is a variety of Missing: only runs and pods that another of the name
	// has followed are not reported.
	Older
	// CPUOnly is a variety of Zero: the CPU counter is 0, and memory and time are
	// right.
	CPUOnly
	// Init, Sidecar and Ephemeral are the roles of Assign.
	Init
	Sidecar
	Ephemeral
	numStyles int = iota
)

var styleNames = [numStyles]string{
	"", "old-instance", "two-lines", "two-paths", "own-counters", "two-qos", "binary", "html", "truncated",
	"unauthorized", "forbidden", "self-signed", "wrong-name", "expired", "succeeded", "failed",
	"steady", "older", "cpu", "init", "sidecar", "ephemeral",
}

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
	// Node, Pod and Container are patterns: * matches any characters, ? matches
	// one. Pod is NAME or NAMESPACE/NAME. For TwoNodes, Node is the second node.
	Node, Pod, Container string
	// At is when the fault begins, relative to the fleet's start. For is how long
	// it lasts; 0 means that it does not end. For Restart and Replace, For is the
	// time until the next instance starts, by default about a second.
	At, For time.Duration
	// Delay is how long a Slow node takes.
	Delay time.Duration
	// By is how far a clock jumps, how much a counter is too high, or how much later than
	// its cgroup a process starts.
	By time.Duration
	// Spread is the largest error of a start time, in both directions.
	Spread time.Duration
	Style  Style
	// As is the node that answers instead of Node.
	As string
}

// String returns the fault in the language that Parse reads. Parse(f.String())
// returns f.
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
	word("as", f.As)
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
	inAs
)

var partNames = [...]string{"node", "pod", "container", "at", "for", "delay", "by", "start", "style", "as"}

func (p part) String() string {
	var names []string
	for i, n := range partNames {
		if p&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ", ")
}

// rule says which parts a kind of fault must have and which it may have.
type rule struct{ must, may part }

func (r rule) needs(p part) bool  { return r.must&p != 0 }
func (r rule) allows(p part) bool { return (r.must|r.may)&p != 0 }

var grammar = [numKinds]rule{
	Restart:     {must: inPod | inAt, may: inContainer | inFor},
	Replace:     {must: inPod | inAt, may: inFor},
	Duplicate:   {must: inPod | inAt, may: inContainer | inFor | inStyle},
	TwoNodes:    {must: inPod | inNode, may: inAt | inFor},
	Pending:     {must: inPod | inAt, may: inFor},
	Finish:      {must: inPod | inAt, may: inContainer | inStyle},
	Terminate:   {must: inPod | inAt, may: inContainer | inFor},
	Reset:       {must: inAt, may: inNode | inPod | inContainer},
	Leap:        {must: inPod | inBy | inAt, may: inContainer},
	Jitter:      {must: inPod | inStart, may: inContainer | inAt | inFor | inStyle},
	Missing:     {may: inPod | inContainer | inAt | inFor | inStyle},
	Zero:        {may: inPod | inContainer | inAt | inFor | inStyle},
	Stale:       {may: inNode | inPod | inAt | inFor},
	ClockStep:   {must: inNode | inBy | inAt},
	Slow:        {must: inNode | inDelay, may: inAt | inFor},
	Hang:        {must: inNode, may: inAt | inFor},
	Down:        {must: inNode, may: inAt | inFor},
	Garbage:     {must: inNode, may: inAt | inFor | inStyle},
	Bulk:        {must: inNode, may: inAt | inFor},
	Refuse:      {must: inNode, may: inAt | inFor | inStyle},
	Certificate: {must: inNode, may: inAt | inFor | inStyle},
	Impostor:    {must: inNode | inAs, may: inAt | inFor},
	ScrapeError: {must: inNode, may: inAt | inFor},
	NotReady:    {must: inNode, may: inAt | inFor},
	NoAddress:   {must: inNode, may: inAt | inFor},
	Unlisted:    {must: inNode, may: inAt | inFor},
	Reboot:      {must: inNode | inAt | inFor},
	SlowStart:   {must: inPod | inBy, may: inContainer | inAt | inFor},
	Assign:      {must: inPod | inContainer | inStyle, may: inAt | inFor},
}

// stylesOf lists the varieties of each kind. The first one is the default.
var stylesOf = [numKinds][]Style{
	Duplicate:   {OldInstance, TwoLines, TwoPaths, OwnCounters, TwoQoS},
	Jitter:      {NoStyle, Steady},
	Missing:     {NoStyle, Older},
	Zero:        {NoStyle, CPUOnly},
	Garbage:     {Binary, HTML, Truncated},
	Refuse:      {Unauthorized, Forbidden},
	Certificate: {SelfSigned, WrongName, Expired},
	Finish:      {WasSuccessful, HasFailed},
	Assign:      {Init, Sidecar, Ephemeral},
}
