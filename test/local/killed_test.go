//go:build e2e

package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/commands"
	"github.com/weir-metrics/weir/test/promtest"
)

// reading is the working set of one container at one time.
type reading struct {
	container string // NODE/NAMESPACE/POD/CONTAINER
	time      int64  // in milliseconds since the Unix epoch
}

// TestKilledTwice kills weir twice with SIGKILL while the Prometheus that it writes to is away.
// With a write-ahead log, Prometheus has every sample in the end, with its time and value. Without
// one, samples are missing. Recordings of the same runs say which samples there were.
func TestKilledTwice(t *testing.T) {
	t.Parallel()
	t.Run("with a log", func(t *testing.T) {
		t.Parallel()
		wal := filepath.Join(t.TempDir(), "wal")
		if missing, waited := killTwice(t, "&wal="+wal); missing > 0 || waited == 0 {
			t.Errorf("%d of %d samples are missing", missing, waited)
		}
		left, err := filepath.Glob(filepath.Join(wal, "*.remotewrite"))
		if err != nil || len(left) > 3 { // those of the last moments
			t.Errorf("%d requests are left in the log, %v", len(left), err)
		}
	})
	t.Run("without", func(t *testing.T) {
		t.Parallel()
		if missing, waited := killTwice(t, ""); missing == 0 {
			t.Errorf("none of %d samples is missing: the test shows nothing", waited)
		}
	})
}

// killTwice returns how many samples of the killed runs are not in Prometheus, and how many there
// were.
func killTwice(t *testing.T, option string) (missing, all int) {
	t.Helper()
	const outage, flush = 4 * time.Second, 200 * time.Millisecond
	dir, address := t.TempDir(), promtest.Address(t)
	targets, ca := filepath.Join(dir, "targets"), filepath.Join(dir, "ca.pem")
	commands.Start(t, "weir-simulate", "--nodes=3", "--pods=10", "--containers=2", "--fresh", "--listen-port=0", "--targets-file="+targets, "--ca-file="+ca)
	commands.Eventually(t, 30*time.Second, func() error { _, err := os.Stat(targets); return err })
	const config, receiver = "global: {}\n", "--web.enable-remote-write-receiver"
	stop, log := promtest.StartAt(t, address, dir, config, receiver)
	record := func(run int) string { return filepath.Join(dir, fmt.Sprintf("run%d.weirrec", run)) }
	start := func(run int) *commands.Process {
		return commands.Start(t, "weir", "server", "--listen=127.0.0.1:0", "--metric-resolution=1s",
			"--source=kubelet:?targets=@"+targets+"&ca="+ca, "--sink=recording:"+record(run)+"?flush=100ms",
			"--sink=remotewrite:http://"+address+"/api/v1/write?flush="+flush.String()+option)
	}
	stored := map[reading]float64{}
	read := func() (newest int64, err error) {
		stored, err = readings("http://" + address)
		for r := range stored {
			newest = max(newest, r.time)
		}
		return newest, err
	}

	w := start(1)
	commands.Eventually(t, time.Minute, func() error {
		if newest, err := read(); err != nil || newest == 0 {
			return fmt.Errorf("nothing is written yet: %w", err)
		}
		return nil
	})
	stop(syscall.SIGKILL)
	var killed [2]time.Time
	for run := range killed {
		time.Sleep(outage)
		killed[run] = time.Now()
		w.Kill(t)
		w = start(run + 2)
	}
	time.Sleep(outage)
	stop, log = promtest.StartAt(t, address, dir, config, receiver)
	defer func() { stop(syscall.SIGTERM) }()
	back := time.Now().UnixMilli()
	commands.Eventually(t, time.Minute, func() error {
		// Samples arrive in order.
		if newest, err := read(); err != nil || newest < back {
			return fmt.Errorf("the newest sample is of %d ms before Prometheus was back, %w\n%s", back-newest, err, log())
		}
		return nil
	})
	for run, end := range killed {
		// The last samples before the kill were in no full request yet.
		for r, value := range readingsIn(t, record(run+1), end.Add(-2*flush-time.Second)) {
			all++
			if got, ok := stored[r]; !ok {
				missing++
			} else if got != value {
				t.Errorf("%v: stored %v, measured %v", r, got, value)
			}
		}
	}
	t.Logf("%d samples of two killed runs, %d missing", all, missing)
	return missing, all
}

// readingsIn returns the readings of containers in a recording that were read before a time.
func readingsIn(t *testing.T, path string, before time.Time) map[reading]float64 {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := recording.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	found := map[reading]float64{}
	for {
		f, err := r.Next()
		var cut *recording.TruncatedError
		if errors.Is(err, io.EOF) || errors.As(err, &cut) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.Batch == nil || f.Batch.Ended.After(before) {
			continue
		}
		for i := range f.Batch.Samples {
			s := &f.Batch.Samples[i]
			value, ok := s.Values.Get(metric.MemoryWorkingSet)
			if e := &s.Entity; ok && e.Kind == metric.Container {
				found[reading{fmt.Sprint(e.Node, "/", e.Namespace, "/", e.Pod, "/", e.Name), s.Times[metric.Memory] / 1e6}] = value
			}
		}
	}
}

// readings returns the readings of containers that a Prometheus has, without stale markers.
func readings(prometheus string) (map[reading]float64, error) {
	body, err := get(prometheus + "/api/v1/query?query=" + url.QueryEscape("weir_container_memory_working_set_bytes[1h]"))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct{ Result model.Matrix }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	found := map[reading]float64{}
	for _, s := range answer.Data.Result {
		l := s.Metric
		for _, p := range s.Values {
			found[reading{fmt.Sprint(l["node"], "/", l["namespace"], "/", l["pod"], "/", l["container"]), int64(p.Timestamp)}] = float64(p.Value)
		}
	}
	return found, nil
}
