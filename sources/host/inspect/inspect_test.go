package inspect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/transcript"
)

// TestTranscripts prints what is found on a machine, how it is judged, and what is removed. The
// commands:
//
//	machine v1|v2|hybrid
//	    PATH [in=cpu,memory] [pids=1,2] [age=10m] ...   a cgroup; see fixture.cgroup
//	    process 1 sleep S age=5m
//	pods [from=kubelet|server|nobody] [at=0s]
//	    see parsePods
//	judge [wide] [root=/x]     the output of weir inspect cgroups
//	clean                      prints what was removed
//	meanwhile                  like machine, between judge and clean
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, file string) {
		var (
			f       *fixture
			pods    *Pods
			report  *Report
			machine *Inspector
		)
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "machine":
				f, pods, report = newFixture(t, d.CmdArgs[0].Key), nil, nil
				f.add(d.Input)
				return ""
			case "meanwhile":
				f.add(d.Input)
				return ""
			case "pods":
				pods = &Pods{List: parsePods(t, d.Input), From: "the API server", At: transcript.Epoch}
				for _, arg := range d.CmdArgs {
					switch {
					case arg.Key == "from" && arg.Vals[0] == "kubelet":
						pods.From, pods.Static = "the kubelet", true
					case arg.Key == "from" && arg.Vals[0] == "nobody":
						pods = nil
					case arg.Key == "at":
						pods.At = transcript.Epoch.Add(f.duration(arg.Vals[0]))
					}
				}
				return ""
			case "judge":
				under := metric.CgroupPath("/")
				if d.HasArg("root") {
					var root string
					d.ScanArgs(t, "root", &root)
					under = metric.CgroupPath(root)
				}
				machine = f.inspector(under)
				tree, err := machine.Read()
				if err != nil {
					return err.Error()
				}
				report = Judge(tree, pods, transcript.Epoch)
				var out strings.Builder
				if err := report.WriteTable(&out, d.HasArg("wide")); err != nil {
					t.Fatal(err)
				}
				if _, err := report.WritePlan(&out); err != nil {
					t.Fatal(err)
				}
				return strings.ReplaceAll(shorten(out.String()), f.mount, "CGROUPS")
			case "clean":
				before := f.directories()
				machine.Clean(report)
				after := f.directories()
				var out strings.Builder
				if err := report.WriteRemovals(&out); err != nil {
					t.Fatal(err)
				}
				var gone []string
				for dir := range before {
					if !after[dir] {
						gone = append(gone, "gone: "+dir+"\n")
					}
				}
				slices.Sort(gone)
				return shorten(out.String() + strings.Join(gone, ""))
			}
			t.Fatalf("%s: no command %q", d.Pos, d.Cmd)
			return ""
		})
	})
}

// add creates what the lines describe.
func (f *fixture) add(input string) {
	f.t.Helper()
	for _, line := range transcript.Lines(expand(input)) {
		words := strings.Fields(line)
		switch words[0] {
		case "process":
			age := "10m"
			for _, word := range words[4:] {
				age = strings.TrimPrefix(word, "age=")
			}
			f.process(words[1], words[2], words[3], f.duration(age))
		case "link":
			if err := os.Symlink(filepath.Join(f.mount, words[2]), filepath.Join(f.mount, words[1])); err != nil {
				f.t.Fatal(err)
			}
		case "again": // another directory with the same path
			dir := filepath.Join(f.mount, words[1])
			if err := os.Rename(dir, filepath.Join(f.t.TempDir(), "old")); err != nil {
				f.t.Fatal(err)
			}
			f.mkdir(dir)
		default:
			in, rest := "all", words[1:]
			if len(rest) > 0 && strings.HasPrefix(rest[0], "in=") {
				in, rest = strings.TrimPrefix(rest[0], "in="), rest[1:]
			}
			f.cgroup(words[0], in, rest...)
		}
	}
}

// TestTableObeysNoProcess checks that the command of a process cannot send control sequences to the
// terminal: its pod may be malicious.
func TestTableObeysNoProcess(t *testing.T) {
	f := newFixture(t, "v2")
	f.add("/kubepods/pod$A pids=7")
	f.process("7", "\x1b[2J\nlive\xff", "S", time.Minute)
	tree, err := f.inspector("/").Read()
	if err != nil {
		t.Fatal(err)
	}
	report := Judge(tree, nil, transcript.Epoch)
	report.Problems = append(report.Problems, "open /\x9b2J")
	var out strings.Builder
	if err := report.WriteTable(&out, true); err != nil {
		t.Fatal(err)
	}
	want := "\n  1 process is inside: 7 \\x1b[2J live\ufffd (sleeping)\n"
	if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "\x1b") || !utf8.ValidString(out.String()) {
		t.Errorf("got\n%q\nwant a line %q, and nothing that a terminal obeys", out.String(), want)
	}
}

// TestCleanBesideTheKubelet checks that it is not an error if another program removes a cgroup at
// the same time as Clean.
func TestCleanBesideTheKubelet(t *testing.T) {
	f := newFixture(t, "v1")
	f.add("/kubepods/burstable/pod$A/#1\n/kubepods/burstable/pod$A")
	machine := f.inspector("/")
	tree, err := machine.Read()
	if err != nil {
		t.Fatal(err)
	}
	report := Judge(tree, &Pods{From: "the kubelet", At: transcript.Epoch}, transcript.Epoch)
	machine.rmdir = func(dir *os.Root, name string) error {
		for _, h := range f.all {
			if err := os.RemoveAll(filepath.Join(f.mount, h, "kubepods")); err != nil {
				t.Fatal(err)
			}
		}
		return dir.Remove(name)
	}
	removals := machine.Clean(report)
	if len(removals) != 1 || removals[0].Failed != "" {
		t.Errorf("got %+v, want one removal that did not fail", removals)
	}
}

func TestNewNeedsHierarchies(t *testing.T) {
	dir := t.TempDir()
	_, err := New(Options{Mount: dir})
	if want := "find cgroup hierarchies: " + dir + " has none: name the directory they are mounted in, such as /sys/fs/cgroup"; err == nil || err.Error() != want {
		t.Errorf("New where no cgroups are: %v, want %s", err, want)
	}
	if _, err := New(Options{Mount: filepath.Join(dir, "nosuch")}); err == nil {
		t.Error("New below a directory that is not there: no error")
	}
}

func TestProcessTable(t *testing.T) {
	f := newFixture(t, "v2")
	f.process("4711", "a) (b c", "D", 1500*time.Millisecond)
	f.process("12", "app", "R", time.Minute)
	if err := os.WriteFile(filepath.Join(f.proc, "12", "stat"), []byte("12 (app) R 1"), 0o644); err != nil {
		t.Fatal(err)
	}
	table, err := newProcessTable(f.proc)
	if err != nil {
		t.Fatal(err)
	}
	want := Process{PID: 4711, Command: "a) (b c", State: "D", Started: transcript.Epoch.Add(-1500 * time.Millisecond)}
	if got := table.find(4711); got == nil || got.PID != want.PID || got.Command != want.Command || got.State != want.State || !got.Started.Equal(want.Started) {
		t.Errorf("find: got %+v, want %+v", got, want)
	}
	for _, pid := range []int{12, 13} { // a broken stat file, and a process that has ended
		if got := table.find(pid); got != nil {
			t.Errorf("find(%d) = %+v, want none", pid, got)
		}
	}
	for _, bad := range []string{"", "btime x\n"} {
		f.write(filepath.Join(f.proc, "stat"), bad)
		if table, err := newProcessTable(f.proc); err == nil || table.find(4711) != nil {
			t.Errorf("with %q: no error, or a process", bad)
		}
	}
}
