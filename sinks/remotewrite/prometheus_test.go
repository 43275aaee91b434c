package remotewrite

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/push"
	"github.com/weir-metrics/weir/test/promtest"
)

// A real Prometheus stops in the middle and starts again. Afterwards it has every sample and
// the end of the series. Versions before 3 support only remote write 1.0.
func TestPrometheus(t *testing.T) {
	dir, address := t.TempDir(), promtest.Address(t)
	const flags = "--web.enable-remote-write-receiver"
	stop, log := promtest.StartAt(t, address, dir, "global: {}\n", flags)
	s, finish := open(t, Options{Options: push.Options{URL: "http://" + address + "/api/v1/write", MaxSamples: 10, MaxBackoff: 300 * time.Millisecond, Grace: 30 * time.Second}})
	const rounds = 40
	began := time.Now().Add(-rounds * 15 * time.Second).UnixMilli()
	shift := func(round int) *metric.Batch {
		b := batch("n1", round)
		by := (began - start) * 1e6
		b.Ended = b.Ended.Add(time.Duration(by))
		sample := &b.Samples[0]
		sample.Times[metric.CPU] += by
		sample.Times[metric.Memory] += by
		sample.Rates[metric.CPU].End += by
		return b
	}
	client, err := history.New(history.Options{URL: "http://" + address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	query := func(q string) (float64, error) {
		a, err := client.Query(ctx, q, time.Now())
		if err != nil {
			return 0, err
		}
		if len(a.Series) != 1 {
			return 0, fmt.Errorf("%d series", len(a.Series))
		}
		return a.Series[0].Value, nil
	}
	await := func(q string, want float64) {
		t.Helper()
		for {
			got, err := query(q)
			if err == nil && got == want {
				return
			}
			select {
			case <-ctx.Done():
				t.Fatalf("%s = %v, %v; want %v\n%s", q, got, err, want, log())
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	for i := 1; i <= 10; i++ {
		write(t, s, shift(i))
	}
	s.Flush(0)
	await(`count_over_time(weir_container_memory_working_set_bytes[1h])`, 10)
	stop(syscall.SIGKILL)
	for i := 11; i <= 30; i++ {
		write(t, s, shift(i))
	}
	stop, log = promtest.StartAt(t, address, dir, "global: {}\n", flags)
	defer func() { stop(syscall.SIGTERM) }()
	for i := 31; i <= rounds; i++ {
		write(t, s, shift(i))
	}
	s.Flush(0)
	await(`count_over_time(weir_container_memory_working_set_bytes[1h])`, rounds)
	await(`sum_over_time(weir_container_memory_working_set_bytes[1h])`, rounds*1000+rounds*(rounds+1)/2)
	await(`count_over_time(weir_container_cpu_usage_cores{container="app",namespace="shop",node="n1",pod="web"}[1h])`, rounds)
	await(`count(weir_container_memory_working_set_bytes)`, 1)
	s.Forget("kubelet:resource", "n1")
	finish()
	await(`count(weir_container_memory_working_set_bytes) or vector(0)`, 0)
	if !s.old && !s.modern {
		t.Error("nothing is known of the receiver's version")
	}
}
