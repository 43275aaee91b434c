package explain

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// A reason that lasts until somebody acts needs advice. Advice ends like a sentence.
func TestAdvice(t *testing.T) {
	for r := range metric.Reason(metric.NumReasons) {
		a := Advice(r)
		if a == "" && r.Severity() == metric.Broken {
			t.Errorf("%v is broken and has no advice", r)
		}
		if a != "" && (!strings.HasSuffix(a, ".") || strings.Count(a, "`")%2 != 0) {
			t.Errorf("%v: %q does not end like a sentence, or leaves a ` open", r, a)
		}
	}
	for _, r := range []metric.Reason{metric.Unjudged, metric.Measured, metric.PodFinished, metric.FirstSample, metric.TooYoung, metric.WarmingUp, metric.NodeNotScrapedYet, metric.Reason(metric.NumReasons)} {
		if a := Advice(r); a != "" {
			t.Errorf("%v: got the advice %q, want none: there is nothing to be done", r, a)
		}
	}
}

// Commands in advice can be pasted: they have the names of what is explained. A name that a shell
// could misread stays a placeholder.
func TestAdviceHasNames(t *testing.T) {
	t1 := &messageWriter{kind: metric.Pod, node: "n1", ref: metric.PodRef{Namespace: "shop", Name: "web-1"}, container: "app", read: &reading{}}
	for r := range metric.Reason(metric.NumReasons) {
		got := t1.advice(&Outcome{Reason: r})
		if found := regexp.MustCompile(`[{}\[\]]|\b(NODE|NAMESPACE|POD|CONTAINER)\b`).FindString(got); found != "" {
			t.Errorf("%v: the advice has %q: %s", r, found, got)
		}
	}
	evil := &messageWriter{kind: metric.Pod, node: "-rf", ref: metric.PodRef{Namespace: "shop", Name: "$(reboot)"}, read: &reading{}}
	want := "`kubectl describe pod -n shop POD` shows what it is waiting for: a node with room, a volume or an image."
	if got := evil.advice(&Outcome{Reason: metric.PodPending}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What to do about a certificate depends on what is wrong with it.
func TestCertificateAdvice(t *testing.T) {
	for text, want := range map[string]string{
		"x509: certificate signed by unknown authority":                                                   "serverTLSBootstrap: true, then approve",
		"x509: certificate has expired or is not yet valid: current time 2026-01-02 is after 2026-01-01":  "The certificate has expired.",
		"x509: certificate has expired or is not yet valid: current time 2026-01-02 is before 2026-01-03": "The certificate is not valid yet",
		"x509: certificate is valid for 10.0.0.2, not 10.0.0.1":                                           "does not have the address",
		"x509: cannot validate certificate for 10.0.0.1 because it doesn't contain any IP SANs":           "`kubectl get node n1 -o wide`",
	} {
		w := &messageWriter{kind: metric.Node, node: "n1", read: &reading{err: errors.New(text)}}
		if got := w.advice(&Outcome{Reason: metric.NodeCertificate, Node: "n1"}); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want it to contain %q", text, got, want)
		}
	}
}

func TestNext(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, test := range []struct {
		reason metric.Reason
		in     time.Duration // until it is due; 0 if unknown
		want   string
	}{
		{metric.FirstSample, 9 * time.Second, "a second usable reading is due in 9s"},
		{metric.FirstSample, -time.Second, "a second usable reading is under way"},
		{metric.FirstSample, 0, ""},
		{metric.NodeTimeout, 90 * time.Second, "the next attempt is due in 1m30s"},
		{metric.PodPending, 9 * time.Second, "it is measured once it runs"},
		{metric.Ambiguous, 0, "a later reading may distinguish them; metrics.k8s.io cannot mark a doubtful number and leaves it out"},
		{metric.NodeExcluded, 9 * time.Second, ""},
		{metric.Measured, 9 * time.Second, ""},
		{metric.Reason(metric.NumReasons), 9 * time.Second, ""},
	} {
		var ev metric.Evidence
		if test.in != 0 {
			ev.Due = now.Add(test.in).UnixNano()
		}
		if got := nextStep(test.reason, ev, now); got != test.want {
			t.Errorf("%v, due in %v: got %q, want %q", test.reason, test.in, got, test.want)
		}
	}
}

func TestEveryReasonHasAMessage(t *testing.T) {
	seen := map[string]metric.Reason{}
	for r := range metric.Reason(metric.NumReasons) {
		s := Message(r, metric.CPU, metric.Evidence{})
		if s == "" {
			t.Errorf("%v has no sentence", r)
		}
		if other, twice := seen[s]; twice {
			t.Errorf("%v and %v have one sentence: %q", r, other, s)
		}
		seen[s] = r
	}
}

func TestMessageHasTheEvidence(t *testing.T) {
	for _, test := range []struct {
		reason metric.Reason
		ev     metric.Evidence
		want   string
	}{
		{metric.Incomplete, metric.Evidence{Name: "app", Cause: metric.FirstSample},
			"container app has no number: it was first seen too recently, and a rate needs two readings"},
		{metric.OtherNode, metric.Evidence{Name: "n2"}, "the API server binds the pod to n2"},
		{metric.CounterReset, metric.Evidence{Other: metric.CounterReading{Value: 100e9}, Got: metric.CounterReading{Value: 10e9}},
			"the counter fell from 100s to 10s although nothing restarted"},
		{metric.OverLimit, metric.Evidence{Limit: 5000}, "it was dropped at the configured limit of 5,000"},
		{metric.NodeUnreachable, metric.Evidence{Err: errors.New("connection refused")},
			"the node cannot be reached: connection refused"},
	} {
		if got := Message(test.reason, metric.CPU, test.ev); got != test.want {
			t.Errorf("%v\n got: %s\nwant: %s", test.reason, got, test.want)
		}
	}
}

// argumentNames are all arguments that templates may contain.
var argumentNames = []string{
	"not", "no run", "node", "node's", "kubelet", "container", "cause", "said", "ended", "since", "late", "grace", "restarts", "limit", "unread",
	"waiting container", "incomplete container", "ambiguous container", "several nodes", "chosen node", "bound node", "no longer", "older start", "newer start",
	"UID", "other UID", "ID", "other ID", "stands still", "earlier", "other cgroup", "other path", "read", "read before", "read last", "first seen", "run time", "needed",
	"counter", "counter before", "clock", "used", "window", "cores",
}

// TestTemplates checks that a template names only existing arguments and closes its brackets, and
// that the last template of a reason needs only arguments that are always known.
func TestTemplates(t *testing.T) {
	names := regexp.MustCompile(`\{[^}]*\}`)
	for r, templates := range messages {
		if len(templates) == 0 {
			t.Errorf("%v has no message", metric.Reason(r))
			continue
		}
		for _, m := range templates {
			for _, name := range names.FindAllString(string(m), -1) {
				if !slices.Contains(argumentNames, name[1:len(name)-1]) {
					t.Errorf("%v: no argument is called %s", metric.Reason(r), name)
				}
			}
			if strings.Count(string(m), "[") != strings.Count(string(m), "]") {
				t.Errorf("%v: %q leaves a bracket open", metric.Reason(r), m)
			}
		}
		a := nounArguments("")
		a["container"] = ""
		if text, ok := templates[len(templates)-1].render(a); !ok || strings.ContainsAny(text, "{}[]") {
			t.Errorf("%v: the last template, %q, needs an argument that may be unknown", metric.Reason(r), templates[len(templates)-1])
		}
	}
}

func TestRender(t *testing.T) {
	f := func(m template, a arguments, want string) {
		t.Helper()
		if got, ok := m.render(a); got != want || ok != (want != "") {
			t.Errorf("%q with %v: got %q, %v, want %q", m, a, got, ok, want)
		}
	}
	f("{a} waits[: {b}]", arguments{"a": "x", "b": "y"}, "x waits: y")
	f("{a} waits[: {b}]", arguments{"a": "x"}, "x waits")
	f("{a} waits[: {b}]", arguments{"b": "y"}, "")
	f("[{a} ]waits", nil, "waits")
	f("{a}", arguments{"a": "{b}[c]"}, "{b}[c]") // templates inside arguments are not rendered
}

// A kernel that tells only the pressure of block I/O gives a value, too.
func TestPressureIsAValue(t *testing.T) {
	s := &metric.Sample{}
	s.Values.Set(metric.IOPressureSomeRate, 0.05)
	if got, _ := value(s, metric.IO); got != "waited for 5% of the time" {
		t.Errorf("got %q, want %q", got, "waited for 5% of the time")
	}
}
