package pages

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSteps(t *testing.T) {
	page := strings.ReplaceAll(`# A page
'''yaml file=rules.yaml
a: 1
'''
'''console
$ kubectl get pods
'''
  '''console run
  $ weir server \
      --listen=:0 &
  weir serves on ...
  $ weir top nodes
  '''
`, "'''", "```")
	got, err := Steps(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []Step{
		{Line: 2, File: "rules.yaml", Text: "a: 1\n"},
		{Line: 9, Command: "weir server \\\n    --listen=:0 &", Text: "weir serves on ...\n"},
		{Line: 12, Command: "weir top nodes"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !got[1].Background() || got[2].Background() {
		t.Error("the first command is in the background, and the second is not")
	}
}

func TestStepsRefuse(t *testing.T) {
	f := func(page, want string) {
		t.Helper()
		if steps, err := Steps(strings.ReplaceAll(page, "'''", "```")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v and the error %v, want %q", page, steps, err, want)
		}
	}
	f("'''console runs\n$ ls\n'''", "1: the mark \"console runs\"")
	f("'''sh run\n$ ls\n'''", "1: the mark \"sh run\"")
	f("'''yaml file=../x\na: 1\n'''", "1: the mark")
	f("'''yaml file=\na: 1\n'''", "1: the mark")
	f("'''console run\nls\n'''", "2: the block begins with \"ls\"")
	f("'''console run\n'''", "2: the block ends without a whole command")
	f("'''console run\n$ ls \\\n'''", "3: the block ends without a whole command")
	f("'''console run\n$ ls\n", "1: the block has no end")
}

func TestMatches(t *testing.T) {
	f := func(command, shown, printed string, want bool) {
		t.Helper()
		if got := Matches(Step{Command: command, Text: shown}, printed); got != want {
			t.Errorf("%s: the page shows %q, it printed %q: got %v, want %v", command, shown, printed, got, want)
		}
	}
	f("top", "", "anything\n", true)
	f("top", "NAME   CPU\nn1     12m\n", "NAME  CPU  \nn2    1,203.5m\n", true)
	f("top", "n1  12m\n", "n1  -\n", false)
	f("top", "n1  12m\n", "n1  12Mi\n", false)
	f("top", "n1  12m\n", "n1  12m\nn2  12m\n", false)
	f("top", "n1  12m\n...\n", "n1  12m\nn2  -\nn3  -\n", true)
	f("top", "n1  12m\n...\n", "n1  12m\n", true)
	f("top", "...\nend\n", "begin\nend\n", true)
	f("top", "why ... late\n", "why it was late\n", true)
	f("top", "why ... late\n", "why it was\nlate\n", false)
	f("top", "a.c\n", "abc\n", false)
	f("run &", "serves\n", "serves\nINFO serving\n", true)
	f("run &", "serves\n", "INFO serving\n", false)
}

func TestFails(t *testing.T) {
	if (Step{Text: "an error: no\n"}).Fails() || !(Step{Text: "a:1: no\nerror: a has 1 mistake\n"}).Fails() {
		t.Error("a command fails if the page shows a line that begins with error:")
	}
}
