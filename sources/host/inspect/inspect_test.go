package inspect

import (
	"fmt"
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

// TestTranscripts shows what is found on a machine, how it is judged, and
// what is removed. The commands:
//
//	machine v1|v2|hybrid
//	    PATH [in=cpu,memory] [pids=1,2] [age=10m] ...   a cgroup; see fixture.cgroup
//	    process 1 sleep S age=5m
//	pods [from=kubelet|server|nobody] [at=0s]
//	    see parsePods
//	judge [wide] [root=/x]     what weir inspect cgroups shows
//	clean                      what is gone then
//	meanwhile                  as machine, between judging and cleaning
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
		case "again": // another directory of the same path
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

// The command of a process may contain terminal commands: its pod may be malicious.
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
	want := "\n  1 process is inside: 7 \\x1b[2J\\nlive\ufffd (sleeping)\n"
	if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "\x1b") || !utf8.ValidString(out.String()) {
		t.Errorf("got\n%q\nwant a line %q, and nothing that a terminal obeys", out.String(), want)
	}
}

// It is no error if someone else removes a cgroup while Clean does.
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

func TestParseStat(t *testing.T) {
	boot := time.Unix(1000, 0)
	got, err := parseStat([]byte("4711 (a) (b c) D 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 1000 2000\n"), boot)
	want := Process{PID: 4711, Command: "a) (b c", State: "D", Started: time.Unix(1123, 450e6)}
	if err != nil || got != want {
		t.Errorf("parseStat: got %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "1", "(x) R", "x (y) R 1", "1 )x( R", "1 (x) R 1 2 3", "1 (x) R 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 -5 1"} {
		if p, err := parseStat([]byte(bad), boot); err == nil {
			t.Errorf("parseStat(%q) = %+v, want an error", bad, p)
		}
	}
	if at, err := parseBoot([]byte("cpu 1\nbtime 77\nprocesses 3\n")); err != nil || !at.Equal(time.Unix(77, 0)) {
		t.Errorf("parseBoot: %v, %v, want 77 s", at, err)
	}
	for _, bad := range []string{"", "btime x\n"} {
		if at, err := parseBoot([]byte(bad)); err == nil {
			t.Errorf("parseBoot(%q) = %v, want an error", bad, at)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add(4711, "burn", "D", uint64(12345))
	f.Add(1, ") R 1 2 3 (", "S", uint64(0))
	f.Fuzz(func(t *testing.T, pid int, command, state string, start uint64) {
		if pid < 1 || strings.ContainsAny(state, " ()\t\n\v\f\r\u0085\u00a0") || len(state) != 1 || start > 1<<40 {
			t.Skip()
		}
		line := fmt.Sprintf("%d (%s) %s 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 %d 1 2\n", pid, command, state, start)
		got, err := parseStat([]byte(line), time.Unix(0, 0))
		if err != nil {
			t.Fatalf("parseStat(%q): %v", line, err)
		}
		if got.PID != pid || got.Command != command || got.State != state || uint64(got.Started.UnixMilli()) != start*10 {
			t.Errorf("parseStat(%q) = %+v", line, got)
		}
	})
}
