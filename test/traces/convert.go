package main

import (
	"archive/tar"
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/internal/trace"
)

// source is a public repository with a trace.
type source struct {
	name string // of the trace
	// repository is on github.com; its last part is the folder of the checkout. commit is the one that
	// the evaluation was written with.
	repository, commit, licence string
	about, cannot               string // what the trace is, and what it cannot show
	vpaPeaks                    time.Duration
	warmup                      float64 // share that is only observed
	convert                     func(folder string) ([]trace.Entity, error)
}

func (s *source) folder() string { return s.repository[strings.LastIndex(s.repository, "/")+1:] }

var sources = []source{
	{
		name: "NAB", repository: "numenta/NAB", commit: "ea702d75cc2258d9d7dd35ca8e5e2539d71f3140", licence: "MIT", vpaPeaks: 24 * time.Hour, warmup: third, convert: convertNAB,
		about:  "CPU of ten machines of EC2 and RDS over 14 days and of one over 62 days, every five minutes. 100% counts as one core.",
		cannot: "The size of the machines is not known, and some use so little that the floor decides. Among the series are faults that were chosen because they surprise. There is no memory.",
	},
	{
		name: "Bitbrains", repository: "atlarge-research/opendc", commit: "691036deb92b9e236d1a33c6f3066f98a96ba0e6", licence: "MIT", vpaPeaks: 24 * time.Hour, warmup: third, convert: convertBitbrains,
		about:  "CPU and memory of one virtual machine over 30 days, every five minutes, with what was provisioned. 2,600 MHz count as one core.",
		cannot: "It is one machine, so there are no intervals. Its memory is what the hypervisor sees as active, which is not a working set.",
	},
	{
		name: "Google 2011", repository: "HiPro-IT/CPU-and-Memory-resource-usage-from-Google-Cluster-Data", commit: "327b8ce301d43fd09e0a6b63279edca0728d1af8", licence: "Google's trace CC-BY 4.0, the repository names none",
		vpaPeaks: time.Hour, warmup: hundredReadings, convert: convertGoogle,
		about:  "CPU and memory of 1,600 jobs over 24 hours, every five minutes, as shares of a machine. 100% count as one core and 16 GiB.",
		cannot: "Whoever made it summed the tasks of a job and kept what is from 5% to 90%. A day has no days to learn from: half-lives and peaks of a day have hardly an effect.",
	},
	{
		name: "Alibaba 2026", repository: "alibaba/clusterdata", commit: "7a6c496e4f4b6ce6150be8f881cb051bf2abff42", licence: "for research and study", vpaPeaks: time.Hour, warmup: third, convert: convertAlibaba,
		about:  "Memory of 208 containers of an inference service over 22.8 hours, every 57 seconds, as shares of their limits. A limit counts as 16 GiB, and as the request.",
		cannot: "There is no CPU, and no size: floors mean nothing. It is less than a day, of one service. Values below 0 are left out.",
	},
	{
		name: "PlanetLab", repository: "beloglazov/planetlab-workload-traces", commit: "344ffdbf7e528bfa6f276014e889e68a0cb640c2", licence: "none", vpaPeaks: time.Hour, warmup: hundredReadings, convert: convertPlanetLab,
		about:  "CPU of 1,052 virtual machines over 24 hours (3 March 2011), every five minutes, in whole percent. 100% count as one core.",
		cannot: "It has one day, no memory, and steps of 10m.",
	},
}

const (
	third = 1. / 3
	// hundredReadings is the share of 288 readings at which KRR has the 100 that it needs.
	hundredReadings = 0.36

	gibibyte = 1 << 30
	step     = 5 * time.Minute
)

// begin is the time of the first reading of traces without times.
var begin = time.Date(2011, 3, 3, 0, 0, 0, 0, time.UTC)

func convertNAB(folder string) (list []trace.Entity, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "data/realAWSCloudwatch/*_cpu_utilization_*.csv"))
	if err != nil {
		return nil, err
	}
	for _, name := range append(files, filepath.Join(folder, "data/realKnownCause/cpu_utilization_asg_misconfiguration.csv")) {
		var cpu trace.Series
		err := readRows(name, ',', func(row []string) error {
			at, err := time.Parse(time.DateTime, row[0])
			return add(&cpu, at, row[1], 0.01, err)
		})
		if err != nil {
			return nil, err
		}
		list = append(list, trace.Entity{Name: strings.TrimSuffix(filepath.Base(name), ".csv"), Metrics: map[string]trace.Series{"cpu": increasing(cpu)}})
	}
	return list, nil
}

func convertBitbrains(folder string) ([]trace.Entity, error) {
	var cpu, cpuRequest, memory, memoryRequest trace.Series
	const kibibyte, core = 1 << 10, 1. / 2600
	err := readRows(filepath.Join(folder, "opendc-trace/opendc-trace-api/src/test/resources/bitbrains/bitbrains.csv"), ';', func(row []string) error {
		seconds, err := strconv.ParseInt(row[0], 10, 64) // the head says milliseconds
		at := time.Unix(seconds, 0).UTC()
		return cmp.Or(add(&cpuRequest, at, row[2], core, err), add(&cpu, at, row[3], core, nil), add(&memoryRequest, at, row[5], kibibyte, nil), add(&memory, at, row[6], kibibyte, nil))
	})
	return []trace.Entity{{Name: "bitbrains", Metrics: map[string]trace.Series{
		"cpu": increasing(cpu), "cpu_request": increasing(cpuRequest), "memory": increasing(memory), "memory_request": increasing(memoryRequest)}}}, err
}

func convertGoogle(folder string) (list []trace.Entity, err error) {
	err = readTar(filepath.Join(folder, "GCD_VMs.tar.gz"), func(name string, r io.Reader) error {
		var cpu, memory trace.Series
		lines := bufio.NewScanner(r)
		for at := begin; lines.Scan(); at = at.Add(step) {
			row := strings.Fields(lines.Text())
			if len(row) != 2 {
				return fmt.Errorf("%q is not CPU and memory", lines.Text())
			}
			if err := cmp.Or(add(&cpu, at, row[0], 0.01, nil), add(&memory, at, row[1], 0.16*gibibyte, nil)); err != nil {
				return err
			}
		}
		list = append(list, trace.Entity{Name: filepath.Base(name), Metrics: map[string]trace.Series{"cpu": cpu, "memory": memory}})
		return lines.Err()
	})
	slices.SortFunc(list, func(a, b trace.Entity) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

func convertAlibaba(folder string) (list []trace.Entity, err error) {
	found := map[string]trace.Series{}
	err = readTar(filepath.Join(folder, "cluster-trace-v2026-GenAI/pod_memory_util_anon.tar.gz"), func(_ string, r io.Reader) error {
		return rows(r, ',', func(row []string) error {
			if strings.HasPrefix(row[0], "-") {
				return nil
			}
			seconds, err := strconv.ParseFloat(row[1], 64)
			s := found[row[2]]
			err = add(&s, time.Unix(int64(seconds), 0).UTC(), row[0], 16*gibibyte, err)
			found[row[2]] = s
			return err
		})
	})
	for name, s := range found {
		s = increasing(s)
		list = append(list, trace.Entity{Name: name, Metrics: map[string]trace.Series{"memory": s, "memory_request": {{At: s[0].At, Value: 16 * gibibyte}}}})
	}
	slices.SortFunc(list, func(a, b trace.Entity) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

func convertPlanetLab(folder string) (list []trace.Entity, err error) {
	err = fs.WalkDir(os.DirFS(folder), "20110303", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(folder, name))
		var cpu trace.Series
		at := begin
		for _, value := range strings.Fields(string(text)) {
			err = cmp.Or(err, add(&cpu, at, value, 0.01, nil))
			at = at.Add(step)
		}
		list = append(list, trace.Entity{Name: d.Name(), Metrics: map[string]trace.Series{"cpu": cpu}})
		return err
	})
	return list, err
}

// add adds a reading of text × unit.
func add(s *trace.Series, at time.Time, text string, unit float64, err error) error {
	v, parseError := strconv.ParseFloat(text, 64)
	if err := cmp.Or(err, parseError); err != nil {
		return err
	}
	if !(v >= 0) || math.IsInf(v, 0) {
		return fmt.Errorf("%v is not an amount", v)
	}
	*s = append(*s, trace.Reading{At: at, Value: v * unit})
	return nil
}

// increasing sorts the readings by time. Of two at the same time, it keeps the first.
func increasing(s trace.Series) trace.Series {
	slices.SortStableFunc(s, func(a, b trace.Reading) int { return a.At.Compare(b.At) })
	return slices.CompactFunc(s, func(a, b trace.Reading) bool { return a.At.Equal(b.At) })
}

// readRows reads the rows of a file without the first.
func readRows(name string, comma rune, add func(row []string) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := rows(f, comma, add); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func rows(r io.Reader, comma rune, add func(row []string) error) error {
	c := csv.NewReader(r)
	c.Comma, c.ReuseRecord, c.TrimLeadingSpace = comma, true, true
	if _, err := c.Read(); err != nil {
		return err
	}
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = add(row)
		}
		if err != nil {
			return err
		}
	}
}

// readTar reads the files of a .tar.gz.
func readTar(name string, read func(name string, r io.Reader) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for files := tar.NewReader(unzipped); ; {
		head, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && head.Typeflag == tar.TypeReg {
			err = read(head.Name, files)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}
