package oomkill_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/sources/host/oomkill"
)

const (
	chosenRecord = "6,1,2,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0-1,3,oom_memcg=/a,task_memcg=/a/b,task=NAME,pid=4711,uid=0\n SUBSYSTEM=x\n"
	globalRecord = "6,1,2,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=c,mems_allowed=0,global_oom,task_memcg=/a/b,task=NAME,pid=4711,uid=0\n"
	killedRecord = "3,1,2,-,caller=T1;Memory cgroup out of memory: Killed process 4711 (NAME) total-vm:9kB, anon-rss:4kB, file-rss:2kB, shmem-rss:1kB, UID:0 pgtables:7kB oom_score_adj:-997\n"
)

// TestParseRecord reads records as Linux 6.18 writes them, with what processes may be called.
func TestParseRecord(t *testing.T) {
	for _, name := range []string{"java", "", "a b", "a,pid=1,uid=0", "x,task=y", ") total-vm:1kB,", "(sd-pam)", `caf\xc3\xa9`, `\x0a;6,1,2,-;`, `"'<b>&`, "kworker/u4:1"} {
		process := endlog.Process{PID: 4711, Name: name}
		killed := oomkill.Record{Process: endlog.Process{PID: 4711, Name: name, RSS: 7 << 10}}
		for record, want := range map[string]oomkill.Record{
			chosenRecord: {Process: process, Cgroup: "/a/b", Limit: "/a"},
			globalRecord: {Process: process, Cgroup: "/a/b"},
			strings.Replace(globalRecord, "_NONE", "_CPUSET", 1):        {Process: process, Cgroup: "/a/b", NUMA: true},
			strings.Replace(globalRecord, "_NONE", "_MEMORY_POLICY", 1): {Process: process, Cgroup: "/a/b", NUMA: true},
			killedRecord: killed,
			strings.Replace(killedRecord, "Memory cgroup out", "Out", 1):                                                killed,
			strings.Replace(killedRecord, "Memory cgroup out of memory", "Out of memory (oom_kill_allocating_task)", 1): killed,
		} {
			record = strings.Replace(record, "NAME", name, 1)
			if got, ok := oomkill.ParseRecord([]byte(record)); !ok || got != want {
				t.Errorf("%q: got %+v, %v; want %+v", record, got, ok, want)
			}
		}
	}
}

// TestParseRecordRefuses checks records that are not of the kernel, ambiguous or damaged.
func TestParseRecordRefuses(t *testing.T) {
	change := func(record, from, to string) string {
		t.Helper()
		if !strings.Contains(record, from) {
			t.Fatalf("no %q in %q", from, record)
		}
		return strings.Replace(record, from, to, 1)
	}
	for what, record := range map[string]string{
		"empty": "", "no message": "6,1,2,-", "another message": "6,1,2,-;eth0: link up\n", "a process wrote it": change(chosenRecord, "6,", "14,"), "a daemon wrote it": change(killedRecord, "3,", "8,"),
		"a cgroup with another's path":         change(chosenRecord, "=/a/b", "=/a/x,task_memcg=/c/d"),
		"a limit with another's path":          change(chosenRecord, "=/a,", "=/a/x,task_memcg=/c/d,"),
		"a cpuset with another's limit":        change(chosenRecord, "cpuset=c", "cpuset=c,oom_memcg=/c"),
		"a process with another's path":        change(chosenRecord, "NAME", ",task_memcg=/c"),
		"no limit, although it was reached":    change(chosenRecord, ",oom_memcg=/a", ""),
		"the path is cut off":                  chosenRecord[:strings.Index(chosenRecord, "/b")],
		"the pid is cut off":                   chosenRecord[:strings.Index(chosenRecord, "4711")],
		"no pid":                               change(chosenRecord, "4711", "0"),
		"a pid that is too large":              change(killedRecord, "4711", "99999999999999999999"),
		"a byte that the kernel would escape":  change(chosenRecord, "NAME", "\x1b[2J"),
		"the memory is cut off":                killedRecord[:strings.Index(killedRecord, ") total")],
		"memory that is not a number":          change(killedRecord, "anon-rss:4", "anon-rss:x"),
		"a name that is too long":              change(chosenRecord, "NAME", strings.Repeat("x", 129)),
		"the sentence in another's text":       "6,1,2,-;x: Memory cgroup out of memory: Killed process 4711 (x) total-vm:1kB, anon-rss:1kB\n",
		"a kill that is neither of the memory": "3,1,2,-;Killed process 4711 (x) total-vm:1kB, anon-rss:1kB\n",
	} {
		if got, ok := oomkill.ParseRecord([]byte(record)); ok || got != (oomkill.Record{}) {
			t.Errorf("%s: %q is read as %+v", what, record, got)
		}
	}
}

// FuzzParseRecord checks that what is read of a record can be written as the same record, is printable, and
// is bounded.
func FuzzParseRecord(f *testing.F) {
	for _, record := range []string{chosenRecord, globalRecord, killedRecord, "", "6,1,2,-;", strings.Replace(chosenRecord, "NAME", ",task=,pid=1", 1), strings.Replace(killedRecord, "NAME", ") total-vm:", 1)} {
		f.Add([]byte(record))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		r, ok := oomkill.ParseRecord(record)
		if !ok {
			if r != (oomkill.Record{}) {
				t.Errorf("%q is refused, and read as %+v", record, r)
			}
			return
		}
		for _, text := range []string{r.Name, string(r.Cgroup), string(r.Limit)} {
			if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) || !strings.Contains(string(record), text) {
				t.Errorf("%q is read as %+v", record, r)
			}
		}
		if r.PID <= 0 || len(r.Name) > 128 || r.Cgroup == "" && r.Limit != "" || r.Cgroup != "" && r.RSS != 0 {
			t.Errorf("%q is read as %+v", record, r)
		}
		again := fmt.Sprintf("3,1,2,-;Out of memory: Killed process %d (%s) total-vm:1kB, anon-rss:%dkB\n", r.PID, r.Name, r.RSS>>10)
		want := oomkill.Record{Process: r.Process}
		if r.RSS>>10 < 1<<40 {
			if got, ok := oomkill.ParseRecord([]byte(again)); !ok || got != want {
				t.Errorf("%q is read as %+v, and that written again as %+v, %v", record, r, got, ok)
			}
		}
	})
}
