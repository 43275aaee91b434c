// Command parsers compares weir's parsers of a kubelet's answers with others on
// the same bytes, and with bytes.IndexByte, which only reads each byte: the
// floor.
//
//	go run -C test/bench ./parsers
//
// It prints a table for each payload, with the best of several rounds. In a
// round, all parsers take turns. The unit is CPU time of the whole process, so
// the garbage collector is included. See README.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 40, "turns of each parser, the best of which counts")
	slice := flag.Duration("slice", 10*time.Millisecond, "length of a turn")
	flag.Parse()
	if err := run(*rounds, *slice); err != nil {
		fmt.Fprintln(os.Stderr, "parsers:", err)
		os.Exit(1)
	}
}

func run(rounds int, slice time.Duration) error {
	payloads, err := load()
	if err != nil {
		return err
	}
	for _, p := range payloads {
		results, err := compare(p, rounds, slice)
		if err != nil {
			return err
		}
		print(p, results)
	}
	return nil
}

// result is the cost of one contender in its best round.
type result struct {
	name   string
	each   time.Duration // CPU time per payload
	allocs float64       // per payload
}

// compare measures all contenders, which take turns.
func compare(p payloads, rounds int, slice time.Duration) ([]result, error) {
	list := contenders(p.endpoint)
	results := make([]result, len(list))
	decoders := make([]decoder, len(list))
	for i, c := range list {
		decoders[i] = c.new()
		results[i] = result{name: c.name, each: time.Hour}
	}
	for range rounds {
		for i, decode := range decoders {
			each, allocs, err := turn(decode, p.bodies, slice)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", p.name, list[i].name, err)
			}
			if each < results[i].each {
				results[i].each = each
			}
			results[i].allocs = allocs
		}
	}
	return results, nil
}

// turn decodes the bodies repeatedly for about the time of slice.
func turn(decode decoder, bodies [][]byte, slice time.Duration) (each time.Duration, allocs float64, err error) {
	for _, body := range bodies { // warm caches
		if err := decode(body); err != nil {
			return 0, 0, err
		}
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, cpu, n := time.Now(), cpuTime(), 0
	for n == 0 || time.Since(began) < slice {
		for _, body := range bodies {
			if err := decode(body); err != nil {
				return 0, 0, err
			}
		}
		n += len(bodies)
	}
	cpu = cpuTime() - cpu
	runtime.ReadMemStats(&after)
	return cpu / time.Duration(n), float64(after.Mallocs-before.Mallocs) / float64(n), nil
}

// cpuTime returns the CPU time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // the only possible error is an invalid argument
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// print writes a Markdown table. The first result is weir's.
func print(p payloads, results []result) {
	size := float64(len(p.bodies[0]))
	fmt.Printf("\n%s, %.1f kB\n\n", p.name, size/1000)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', tabwriter.AlignRight|tabwriter.Debug)
	fmt.Fprintln(w, "\tparser\tµs\tMB/s\tallocations\ttimes weir's\t")
	fmt.Fprintln(w, "\t--:\t--:\t--:\t--:\t--:\t")
	for _, r := range results {
		us := float64(r.each.Nanoseconds()) / 1000
		fmt.Fprintf(w, "\t%s\t%.1f\t%.0f\t%.0f\t%.2f\t\n", r.name, us, size/us, r.allocs, float64(r.each)/float64(results[0].each))
	}
	w.Flush()
}
