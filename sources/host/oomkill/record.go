package oomkill

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/metric"
)

// Record is what the kernel logs about a process that it kills for memory. It writes two records of a kill:
// the first has the cgroups, the second the memory.
type Record struct {
	endlog.Process // its RSS is in the second record
	// Cgroup is that of the process, and empty in the second record.
	Cgroup metric.CgroupPath
	// Limit is the cgroup whose limit was reached; empty if the machine had no memory left or, with NUMA, the
	// NUMA nodes that the process may use.
	Limit metric.CgroupPath
	NUMA  bool
}

// What the messages begin with.
var (
	chosen      = []byte("oom-kill:constraint=")
	limitKilled = []byte("Memory cgroup out of memory")
	nodeKilled  = []byte("Out of memory")
)

// ParseRecord parses a record of /dev/kmsg, "6,1234,5678,-;message", as Linux 5.1 and later write it. ok is
// false if it is about something else, or is ambiguous. Processes can write to the log, too: their records
// have another facility than the kernel's, which is 0.
func ParseRecord(record []byte) (r Record, ok bool) {
	head, message, ok := bytes.Cut(record, []byte{';'})
	if !ok || len(head) < 2 || head[0] < '0' || head[0] > '7' || head[1] != ',' {
		return Record{}, false
	}
	parse := parseKilled
	switch {
	case bytes.HasPrefix(message, chosen):
		parse = parseChosen
	case !bytes.HasPrefix(message, limitKilled) && !bytes.HasPrefix(message, nodeKilled):
		return Record{}, false
	}
	message, _, _ = bytes.Cut(message, []byte{'\n'}) // lines of fields follow
	if bytes.ContainsFunc(message, func(c rune) bool { return c < ' ' || c > '~' }) {
		return Record{}, false
	}
	if r, ok = parse(string(message)); !ok || len(r.Name) > maxName {
		return Record{}, false
	}
	return r, true
}

// maxName is more than the 15 bytes of a name, with escapes.
const maxName = 128

// parseChosen parses "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,
// oom_memcg=/a,task_memcg=/a/b,task=java,pid=4711,uid=0". The names of cgroups and processes may have
// anything in them, so a key that comes twice makes it ambiguous whose the paths are.
func parseChosen(text string) (r Record, ok bool) {
	const ofTask, ofLimit = ",task_memcg=", ",oom_memcg="
	limits, rest, _ := strings.Cut(text, ofTask)
	if strings.Contains(rest, ofTask) || strings.Count(limits, ofLimit) > 1 {
		return r, false
	}
	_, constraint, _ := strings.Cut(limits, "=")
	r.NUMA = strings.HasPrefix(constraint, "CONSTRAINT_CPUSET,") || strings.HasPrefix(constraint, "CONSTRAINT_MEMORY_POLICY,")
	if strings.HasPrefix(constraint, "CONSTRAINT_MEMCG,") {
		_, limit, _ := strings.Cut(limits, ofLimit)
		if r.Limit = metric.CgroupPath(limit); limit == "" {
			return r, false
		}
	}
	path, rest, _ := strings.Cut(rest, ",task=")
	end := strings.LastIndex(rest, ",pid=")
	if end < 0 || path == "" {
		return r, false
	}
	pid, _, _ := strings.Cut(rest[end+len(",pid="):], ",")
	r.Cgroup, r.Name = metric.CgroupPath(path), rest[:end]
	r.PID, ok = parsePID(pid)
	return r, ok
}

// parseKilled parses "Memory cgroup out of memory: Killed process 4711 (java) total-vm:19076kB,
// anon-rss:16256kB, file-rss:1448kB, shmem-rss:0kB, UID:0 pgtables:76kB oom_score_adj:0".
func parseKilled(text string) (r Record, ok bool) {
	_, rest, _ := strings.Cut(text, ": Killed process ")
	pid, rest, _ := strings.Cut(rest, " (")
	end := strings.LastIndex(rest, ") total-vm:")
	if end < 0 {
		return r, false
	}
	r.Name = rest[:end]
	for field := range strings.SplitSeq(rest[end:], ", ") {
		key, amount, _ := strings.Cut(field, ":")
		if !strings.HasSuffix(key, "-rss") {
			continue
		}
		kib, err := strconv.ParseUint(strings.TrimSuffix(amount, "kB"), 10, 40)
		if err != nil {
			return r, false
		}
		r.RSS += kib << 10
	}
	r.PID, ok = parsePID(pid)
	return r, ok
}

func parsePID(text string) (int, bool) {
	pid, err := strconv.ParseUint(text, 10, 31)
	return int(pid), err == nil && pid > 0
}
