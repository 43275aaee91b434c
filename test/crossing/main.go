//go:build linux

// Command crossing measures on a node what follows when a pod fills memory or swap past a threshold:
// the decision of whoever evicts or kills, the signal that it sends, and the memory coming back. It
// runs on the node, outside any pod. The pod runs test/cluster/workload, which fills memory when it
// is asked to, and nothing else is started meanwhile. The answer is a line of JSON.
//
//	crossing --below 1200 --rate 20 --url http://10.65.1.7:8080 --pid 812 --agent http://127.0.0.1:8087 --node n1 --pod latency/hog-1
//	crossing --below 1200 --rate 0 --signal memAvailable --url http://10.65.1.8:8080 --pid 901 --journal earlyoom --match 'low memory'
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

const (
	mib = 1 << 20
	// sampleInterval is the time between two looks at what is available.
	sampleInterval = 4 * time.Millisecond
	tracing        = "/sys/kernel/tracing"
)

var (
	below   = flag.Int64("below", 0, "the threshold, in MiB; whoever acts must have it")
	signal  = flag.String("signal", "available", "what is compared with it: available (the kubelet's memory.available), or memAvailable or swapFree (of /proc/meminfo)")
	rate    = flag.Int64("rate", 20, "MiB to fill in a second; 0 means as fast as possible")
	lead    = flag.Int64("lead", 40, "where the fill begins, in MiB above the threshold; the pod takes the rest before")
	depth   = flag.Int64("depth", 250, "where the fill ends, in MiB below the threshold")
	wait    = flag.Duration("wait", 40*time.Second, "time after the crossing until the run ends without a signal")
	url     = flag.String("url", "", "address of the pod")
	pid     = flag.Int("pid", 0, "process of the pod")
	agent   = flag.String("agent", "", "address of the agent that acts; its report has the decision")
	node    = flag.String("node", "", "name of the node in the report")
	pod     = flag.String("pod", "", "namespace and name of the pod in the report")
	journal = flag.String("journal", "", "unit that acts, if no agent does; its log has the decision")
	match   = flag.String("match", "", "regular expression for the line of the decision")
)

// Result is one run. Times are milliseconds after the last sample before the crossing, so the
// crossing was up to a sample later. Zero means never.
type Result struct {
	DecisionMs, SignalMs, KillMs, BackMs float64 // SignalMs is of SIGTERM or SIGKILL, whichever came first
	// ReadMs is how long an agent read and computed before the decision, of DecisionMs.
	ReadMs float64
	// DecisionMiB is how far memory was below the threshold at the decision, and LowestMiB until it was
	// back.
	DecisionMiB, LowestMiB int64
	FillMiBs               float64 // from when the signal began to fall to the crossing
	SlowestSampleMs        float64
	StalledMs              float64 // how long some task of the node waited for memory, during the run
	KernelOOM              bool    // the kernel's OOM killer acted
}

type sample struct {
	at        time.Time
	available int64
}

func main() {
	flag.Parse()
	if *below <= 0 || *url == "" || *pid == 0 || (*agent == "") == (*journal == "") {
		log.Fatal("give --below, --url, --pid and one of --agent and --journal")
	}
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE); err != nil {
		log.Fatal("lock memory: ", err)
	}
	r, err := measure()
	if err != nil {
		log.Fatal(err)
	}
	line, _ := json.Marshal(r) // it can always be marshalled
	fmt.Println(string(line))
}

func measure() (*Result, error) {
	meminfo, err := os.Open("/proc/meminfo")
	if err != nil {
		return nil, err
	}
	defer meminfo.Close()
	threshold := *below * mib
	if err := calibrate(meminfo); err != nil {
		return nil, err
	}
	now, err := available(meminfo)
	if err != nil {
		return nil, err
	}
	ballast := room + now - threshold - *lead*mib
	if ballast <= 0 {
		return nil, fmt.Errorf("%d MiB are available: choose a smaller --below or --lead", now/mib)
	}
	if err := hold(ballast, 0); err != nil {
		return nil, fmt.Errorf("have the pod fill memory: %w", err)
	}
	time.Sleep(2 * time.Second) // whoever acts sees it
	if err := startTrace(); err != nil {
		return nil, fmt.Errorf("trace signals: %w", err)
	}
	if err := calibrate(meminfo); err != nil {
		return nil, err
	}
	// What is available now has changed a little.
	if now, err = available(meminfo); err != nil {
		return nil, err
	}
	stalled, err := stalls()
	if err != nil {
		return nil, err
	}
	go func() { _ = hold(ballast+room+now-threshold+*depth*mib, *rate*mib) }() // the pod ends before it answers
	r := &Result{}
	samples, crossed, err := watch(meminfo, threshold, r)
	if err != nil {
		return nil, err
	}
	before := samples[crossed-1].at
	after := func(t time.Time) float64 { return ms(t.Sub(before)) }
	begin := samples[0]
	for _, s := range samples[:crossed] {
		if s.available >= begin.available {
			begin = s
		}
	}
	r.FillMiBs = float64(begin.available-samples[crossed].available) / mib / samples[crossed].at.Sub(begin.at).Seconds()
	end, err := stalls()
	if err != nil {
		return nil, err
	}
	r.StalledMs = ms(end - stalled)
	signals, err := traced()
	if err != nil {
		return nil, err
	}
	_ = unix.Kill(*pid, unix.SIGKILL) // a node that thrashes could not answer
	decided, read, err := decision(before)
	if err != nil {
		return nil, err
	}
	if !decided.IsZero() {
		r.DecisionMs, r.ReadMs = after(decided), 1000*read
	}
	for _, s := range signals {
		switch {
		case s.name == "mark_victim":
			r.KernelOOM = true
			continue
		case r.SignalMs == 0:
			r.SignalMs = after(s.at)
		}
		if s.number == int(unix.SIGKILL) && r.KillMs == 0 {
			r.KillMs = after(s.at)
		}
	}
	for _, s := range samples[crossed:] {
		if r.BackMs != 0 {
			break
		}
		if !decided.IsZero() && s.at.Before(decided) {
			r.DecisionMiB = max(r.DecisionMiB, (threshold-s.available)/mib)
		}
		r.LowestMiB = max(r.LowestMiB, (threshold-s.available)/mib)
		if r.SignalMs != 0 && after(s.at) > r.SignalMs && s.available >= threshold {
			r.BackMs = after(s.at)
		}
	}
	return r, nil
}

// watch looks at what is available until the pod has ended and memory is back, or nobody acted. It
// returns the index of the first sample below the threshold.
func watch(meminfo *os.File, threshold int64, r *Result) (samples []sample, crossed int, err error) {
	for ; ; time.Sleep(sampleInterval) {
		n, err := available(meminfo)
		if err != nil {
			return nil, 0, err
		}
		s := sample{time.Now(), n}
		if len(samples) > 0 {
			r.SlowestSampleMs = max(r.SlowestSampleMs, ms(s.at.Sub(samples[len(samples)-1].at)))
		}
		samples = append(samples, s)
		switch {
		case crossed == 0 && n < threshold:
			crossed = len(samples) - 1
			if crossed == 0 {
				return nil, 0, errors.New("memory was below the threshold before the fill began")
			}
		case crossed == 0 && s.at.Sub(samples[0].at) > 2*time.Minute:
			return nil, 0, errors.New("memory was not filled")
		case crossed != 0 && n >= threshold && errors.Is(unix.Kill(*pid, 0), unix.ESRCH):
			return samples, crossed, nil
		case crossed != 0 && s.at.Sub(samples[crossed].at) > *wait:
			return samples, crossed, nil
		}
	}
}

// hold makes the pod have this many bytes, at a rate in bytes a second if it is not 0.
func hold(bytes, perSecond int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	_, err := get(ctx, fmt.Sprintf("%s/hold?bytes=%d&rate=%d", *url, bytes, perSecond))
	return err
}

func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	return body, err
}

// decision returns when the pod was decided on, zero if it was not, and how many seconds an agent
// read before.
func decision(since time.Time) (at time.Time, read float64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if *journal != "" {
		wanted, err := regexp.Compile(*match)
		if err != nil {
			return at, 0, err
		}
		out, err := exec.CommandContext(ctx, "journalctl", "--no-pager", "--unit="+*journal, "--output=short-unix",
			fmt.Sprintf("--since=@%d", since.Unix())).Output()
		if err != nil {
			return at, 0, fmt.Errorf("read the log of %s: %w", *journal, err)
		}
		for line := range strings.Lines(string(out)) {
			stamp, text, _ := strings.Cut(line, " ")
			seconds, err := strconv.ParseFloat(stamp, 64)
			at := time.UnixMicro(int64(seconds * 1e6))
			if err == nil && at.After(since) && wanted.MatchString(text) {
				return at, 0, nil
			}
		}
		return at, 0, nil
	}
	for { // an agent reports an action when the pod is gone
		body, err := get(ctx, *agent+"/apis/weir.dev/v1alpha1/nodes/"+*node+"/eviction")
		if err != nil {
			return at, 0, fmt.Errorf("ask the agent: %w", err)
		}
		var report evictionreport.EvictionReport
		if err := json.Unmarshal(body, &report); err != nil {
			return at, 0, fmt.Errorf("read the agent's report: %w", err)
		}
		if i := slices.IndexFunc(report.Actions, func(a evictionreport.Action) bool { return a.Pod == *pod && a.Result == "Killed" }); i >= 0 {
			return report.Actions[i].At, report.Actions[i].DecidedAfterSeconds, nil
		}
		select {
		case <-ctx.Done():
			return at, 0, nil
		case <-time.After(time.Second):
		}
	}
}

// startTrace has the kernel record the signals to the pod's process, and the OOM killer's victims.
func startTrace() error {
	if err := unix.Mount("tracefs", tracing, "tracefs", 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
		return err
	}
	for _, setting := range [][2]string{
		{"trace_clock", "mono"},
		// Without it the kernel would also patch its scheduler, to record names of commands. QEMU before
		// 8.1 may hang if a processor runs code that another one patches.
		{"options/record-cmd", "0"},
		{"events/signal/signal_generate/filter", fmt.Sprintf("pid == %d && (sig == %d || sig == %d)", *pid, unix.SIGTERM, unix.SIGKILL)},
		{"events/signal/signal_generate/enable", "1"},
		{"events/oom/mark_victim/enable", "1"},
		{"trace", ""},
	} {
		if err := os.WriteFile(filepath.Join(tracing, setting[0]), []byte(setting[1]), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// event is a line of the trace.
type event struct {
	at     time.Time
	name   string // signal_generate or mark_victim
	number int    // of the signal
}

var eventLine = regexp.MustCompile(` (\d+\.\d+): (signal_generate|mark_victim): (?:sig=(\d+))?`)

// traced returns what the kernel has recorded.
func traced() (all []event, err error) {
	b, err := os.ReadFile(filepath.Join(tracing, "trace"))
	if err != nil {
		return nil, err
	}
	var mono unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono); err != nil {
		return nil, err
	}
	boot := time.Now().Add(-time.Duration(mono.Nano()))
	for _, m := range eventLine.FindAllStringSubmatch(string(b), -1) {
		seconds, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return nil, err
		}
		number, _ := strconv.Atoi(m[3]) // absent for a victim
		all = append(all, event{boot.Add(time.Duration(seconds * 1e9)), m[2], number})
	}
	return all, nil
}

var (
	buffer [8192]byte
	// offset is what memory.available is more than the quick read of it.
	offset int64
)

// calibrate reads memory.available as the kubelet does, which takes longer, and sets offset.
func calibrate(meminfo *os.File) error {
	if *signal != "available" {
		return nil
	}
	b, err := os.ReadFile("/sys/fs/cgroup/memory.stat")
	if err != nil {
		return err
	}
	offset = 0
	quick, err := available(meminfo)
	if err != nil {
		return err
	}
	stat := numbers(b)
	offset = total - (stat["anon"] + stat["file"] - stat["inactive_file"]) - quick
	return nil
}

// As of the last call of available: the node's memory, and how much a pod can take before the signal
// begins to fall.
var total, room int64

// available returns the signal, in bytes.
func available(meminfo *os.File) (int64, error) {
	n, err := unix.Pread(int(meminfo.Fd()), buffer[:], 0)
	if err != nil {
		return 0, err
	}
	f := numbers(buffer[:n])
	total = f["MemTotal"]
	switch *signal {
	case "memAvailable":
		return f["MemAvailable"], nil
	case "swapFree":
		room = f["MemAvailable"]
		return f["SwapFree"], nil
	}
	return total - (f["AnonPages"] + f["Cached"] + f["Buffers"] - f["Inactive(file)"]) + offset, nil
}

// stalls returns how long some task has waited for memory since the start of the node.
func stalls() (time.Duration, error) {
	b, err := os.ReadFile("/proc/pressure/memory")
	if err != nil {
		return 0, err
	}
	_, text, _ := strings.Cut(strings.SplitN(string(b), "\n", 2)[0], "total=")
	micros, err := strconv.ParseInt(text, 10, 64)
	return time.Duration(micros) * time.Microsecond, err
}

func numbers(b []byte) map[string]int64 {
	all := map[string]int64{}
	for name, value := range cgroupfs.Pairs(b) {
		all[string(name)] = int64(value)
	}
	return all
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
