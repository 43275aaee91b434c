//go:build linux

// Command crossing measures on a live node how soon an agent decides after a memory threshold was
// crossed. It fills memory itself, in one process, because processes that are started in between
// would change what is measured. It needs an agent in mode observe.
//
//	crossing --below 300 --rate 20 --runs 20 --node n1 --cgroup /sys/fs/cgroup/kubepods.slice
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/eviction/evictionreport/document"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

const (
	mib      = 1 << 20
	pageSize = 4096
	// pollInterval is the time between two looks at what is available.
	pollInterval = 10 * time.Millisecond
)

var (
	below  = flag.Int64("below", 0, "the threshold of memory.available, in MiB; the agent must have it")
	rate   = flag.Float64("rate", 20, "MiB to fill in a second; 0 means as fast as possible")
	runs   = flag.Int("runs", 20, "number of crossings")
	lead   = flag.Int64("lead", 80, "where a run begins, in MiB above the threshold; the rest is filled before the first")
	depth  = flag.Int64("depth", 60, "where a run ends, in MiB below the threshold; more than is left ends in an OOM kill")
	wait   = flag.Duration("wait", 13*time.Second, "time after a crossing in which the agent must decide")
	server = flag.String("agent", "http://127.0.0.1:8087", "address of the agent")
	node   = flag.String("node", "", "name of the node")
	cgroup = flag.String("cgroup", "", "cgroup to join, so that this process counts as a pod; empty means none")
	pid    = flag.Int("pid", 0, "process of the agent, whose processor time is measured near the threshold; 0 means none")
)

// result is one run. It is printed as a line of JSON.
type result struct {
	Run int `json:"run"`
	// DelayMs is the time from the poll that saw the crossing to the agent's decision. The crossing was
	// up to a poll earlier. Missed is set if there was no decision.
	DelayMs float64 `json:"delayMs"`
	Missed  bool    `json:"missed,omitempty"`
	// OverMiB is how far memory was below the threshold at the first poll after the decision.
	OverMiB int64 `json:"overMiB"`
	// FillMiBs is the rate that was reached. SlowestPollMs is the longest time between two polls.
	FillMiBs, SlowestPollMs float64
	WokenBy                 string `json:"wokenBy"`
}

func main() {
	flag.Parse()
	if *below <= 0 || *node == "" {
		log.Fatal("give --below and --node")
	}
	if *cgroup != "" {
		if err := os.WriteFile(filepath.Join(*cgroup, "cgroup.procs"), []byte("0"), 0); err != nil {
			log.Fatal("join the cgroup: ", err)
		}
	}
	meminfo, err := os.Open("/proc/meminfo")
	if err != nil {
		log.Fatal(err)
	}
	ballast := fill(available(meminfo)-(*below+*lead)*mib, 0, nil)
	time.Sleep(5 * time.Second) // the agent sees it
	if *pid != 0 {
		before, began := processorTime(*pid), time.Now()
		time.Sleep(20 * time.Second)
		fmt.Printf("{\"agentProcessorPercent\":%.3f}\n", 100*float64(processorTime(*pid)-before)/float64(time.Since(began)))
	}
	var all []result
	for i := range *runs {
		r := measure(meminfo)
		r.Run = i + 1
		line, _ := json.Marshal(r)
		fmt.Println(string(line))
		all = append(all, r)
	}
	free(ballast)
	summarize(all)
}

// measure crosses the threshold once, at a random time.
func measure(meminfo *os.File) (r result) {
	for state := string(document.InForce); state != string(document.NotMet) && state != ""; time.Sleep(time.Second) {
		state, _ = ask() // the agent may not yet have seen the end of the last run
	}
	time.Sleep(time.Duration(rand.Int63n(int64(10 * time.Second))))
	type sample struct {
		at        time.Time
		available int64
	}
	var samples []sample
	var crossed time.Time
	var stop atomic.Bool
	filled := make(chan []byte, 1)
	before, began := available(meminfo), time.Now()
	var took atomic.Int64
	go func() {
		b := fill(before-(*below-*depth)*mib, *rate, &stop)
		took.Store(int64(time.Since(began)))
		filled <- b
	}()
	for last := began; crossed.IsZero() && time.Since(began) < 2*time.Minute || !crossed.IsZero() && time.Since(crossed) < *wait; time.Sleep(pollInterval) {
		s := sample{time.Now(), available(meminfo)}
		r.SlowestPollMs = max(r.SlowestPollMs, ms(s.at.Sub(last)))
		last = s.at
		samples = append(samples, s)
		if crossed.IsZero() && s.available < *below*mib {
			crossed = s.at
		}
		if !crossed.IsZero() && len(samples)%50 == 0 { // the answer has the time of the decision
			if state, since := ask(); state != string(document.NotMet) && !since.IsZero() {
				r.DelayMs = ms(since.Sub(crossed))
				if i := slices.IndexFunc(samples, func(s sample) bool { return !s.at.Before(since) }); i >= 0 {
					r.OverMiB = *below - samples[i].available/mib
				}
				r.WokenBy = wokenBy
				break
			}
		}
	}
	r.Missed = r.WokenBy == ""
	stop.Store(true)
	b := <-filled
	r.FillMiBs = float64(len(b)/mib) / time.Duration(took.Load()).Seconds()
	free(b)
	return r
}

// wokenBy is what woke the agent at the last ask.
var wokenBy string

// ask returns the state of the first threshold of memory.available, and the time since which it is
// met. The state is empty if the agent does not answer.
func ask() (state string, since time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, *server+"/apis/weir.dev/v1alpha1/nodes/"+*node+"/eviction", nil)
	var answer *http.Response
	if err == nil {
		answer, err = http.DefaultClient.Do(request)
	}
	if err != nil {
		log.Print(err)
		return "", since
	}
	defer answer.Body.Close()
	var report document.EvictionReport
	if err := json.NewDecoder(answer.Body).Decode(&report); err != nil {
		log.Print(err)
		return "", since
	}
	wokenBy = report.WokenBy
	for _, s := range report.Signals {
		if s.Name == "memory.available" && len(s.Thresholds) > 0 {
			return string(s.Thresholds[0].State), s.Thresholds[0].Since
		}
	}
	return "", since
}

// fill uses memory, at most perSecond MiB in a second, until it has size bytes or stop is set.
func fill(size int64, perSecond float64, stop *atomic.Bool) []byte {
	if size <= 0 {
		log.Fatal("memory is already below where a run begins: choose a smaller --below or --lead")
	}
	b, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		log.Fatal(err)
	}
	runtime.LockOSThread() // a page fault that waits must not delay the polls
	defer runtime.UnlockOSThread()
	began := time.Now()
	for i := 0; i < len(b) && (stop == nil || !stop.Load()); i += pageSize {
		b[i] = 1
		if perSecond > 0 && i%(mib/4) == 0 {
			time.Sleep(time.Until(began.Add(time.Duration(float64(i) / (perSecond * mib) * float64(time.Second)))))
		}
	}
	return b
}

func free(b []byte) {
	if err := unix.Munmap(b); err != nil {
		log.Fatal(err)
	}
}

var buffer [8192]byte

// available returns what the kubelet calls memory.available, in bytes, from meminfo.
func available(meminfo *os.File) int64 {
	n, err := unix.Pread(int(meminfo.Fd()), buffer[:], 0)
	if err != nil {
		log.Fatal(err)
	}
	f := map[string]int64{}
	for name, value := range cgroupfs.Pairs(buffer[:n]) {
		f[string(name)] = int64(value)
	}
	return f["MemTotal"] - (f["AnonPages"] + f["Cached"] + f["Buffers"] - f["Inactive(file)"])
}

// processorTime returns the processor time of all threads of a process.
func processorTime(pid int) (sum time.Duration) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil {
			ns, _ := strconv.ParseInt(string(bytes.Fields(b)[0]), 10, 64)
			sum += time.Duration(ns)
		}
	}
	return sum
}

// summarize prints the last line: the distribution of the delays.
func summarize(all []result) {
	var delays []float64
	var over int64
	missed := 0
	for _, r := range all {
		if r.Missed {
			missed++
			continue
		}
		delays, over = append(delays, r.DelayMs), max(over, r.OverMiB)
	}
	if len(delays) == 0 {
		fmt.Printf("{\"runs\":%d,\"missed\":%d}\n", len(all), missed)
		return
	}
	slices.Sort(delays)
	fmt.Printf("{\"rate\":%v,\"runs\":%d,\"missed\":%d,\"medianMs\":%.1f,\"p99Ms\":%.1f,\"mostOverMiB\":%d}\n",
		*rate, len(all), missed, delays[len(delays)/2], delays[(len(delays)*99-1)/100], over)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
