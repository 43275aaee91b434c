//go:build e2e

package local

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/test/commands"
	"github.com/weir-metrics/weir/test/promtest"
)

var outage = flag.Duration("outage", 20*time.Second, "how long the receiver of TestOutage is dead")

var written = regexp.MustCompile(`(?m)^weir_remotewrite_samples_total\{receiver="[^"]*",result="(\w+)"\} (\S+)$`)

// TestOutage kills the Prometheus that weir writes to, and starts it again. It
// must then have every sample, one of each series for each round, and weir must
// not have dropped any.
func TestOutage(t *testing.T) {
	const resolution = 5 * time.Second
	dir, address := t.TempDir(), promtest.Address(t)
	targets, ca := filepath.Join(dir, "targets"), filepath.Join(dir, "ca.pem")
	commands.Start(t, "weir-simulate", "--nodes=20", "--pods=10", "--containers=2", "--fresh", "--listen-port=0", "--targets-file="+targets, "--ca-file="+ca)
	commands.Eventually(t, 30*time.Second, func() error { _, err := os.Stat(targets); return err })
	const config, receiver = "global: {}\n", "--web.enable-remote-write-receiver"
	stop, _ := promtest.StartAt(t, address, dir, config, receiver)
	w := commands.Start(t, "weir", "server", "--listen=127.0.0.1:0", "--metric-resolution="+resolution.String(),
		"--source=kubelet:?targets=@"+targets+"&ca="+ca, "--sink=remotewrite:http://"+address+"/api/v1/write?flush=1s")
	server := w.Address(t)

	client, err := history.New(history.Options{URL: "http://" + address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	ask := func(query string) (float64, error) {
		answer, err := client.Query(t.Context(), query, time.Now().Add(time.Minute))
		if err != nil {
			return 0, err
		}
		if len(answer.Series) != 1 {
			return 0, fmt.Errorf("%s: %d series", query, len(answer.Series))
		}
		return answer.Series[0].Value, nil
	}
	// all returns the number of samples of all metrics. It sends a query for each
	// metric, because a range function drops the name.
	all := func() (total float64, err error) {
		names, err := client.Query(t.Context(), `count by (__name__) ({__name__=~"weir_.+"})`, time.Now())
		if err == nil && len(names.Series) == 0 {
			err = errors.New("there is nothing yet")
		}
		if err != nil {
			return 0, err
		}
		for _, s := range names.Series {
			n, err := ask(`sum(count_over_time(` + s.Labels["__name__"] + `[1h]))`)
			if err != nil {
				return 0, err
			}
			total += n
		}
		return total, nil
	}
	commands.Eventually(t, time.Minute, func() error { _, err := all(); return err })

	stop(syscall.SIGKILL)
	died := time.Now()
	time.Sleep(*outage)
	if n, err := results(server); err != nil || n["sent"] == 0 {
		t.Fatalf("while the receiver is dead: %v, %v", n, err)
	}
	stop, log := promtest.StartAt(t, address, dir, config, receiver)
	defer func() { stop(syscall.SIGTERM) }()
	back := time.Now()

	var sent, stored float64
	commands.Eventually(t, time.Minute, func() error {
		// The samples of the outage have arrived when a newer one has.
		newest, err := ask(`max(timestamp(weir_node_memory_working_set_bytes))`)
		if err != nil {
			return err
		}
		if newest < float64(back.Unix()) {
			return fmt.Errorf("the newest sample is of %v before the receiver was back", back.Sub(time.Unix(int64(newest), 0)))
		}
		n, err := results(server)
		if err != nil {
			return err
		}
		if stored, err = all(); err != nil {
			return err
		}
		if sent = n["sent"]; n["dropped"] != 0 || n["rejected"] != 0 || stored != sent {
			return fmt.Errorf("%v stored of %v sent, %v dropped, %v rejected\n%s", stored, sent, n["dropped"], n["rejected"], log())
		}
		return nil
	})
	// One sample of each node for each round while the receiver was down.
	within := fmt.Sprintf("[%ds] @ %d", int(back.Sub(died).Seconds()), back.Unix())
	for query, want := range map[string]float64{
		`count(count_over_time(weir_node_memory_working_set_bytes` + within + `))`:      20,
		`min(count_over_time(weir_node_memory_working_set_bytes` + within + `))`:        float64(int(*outage/resolution) - 1),
		`count(count_over_time(weir_container_memory_working_set_bytes` + within + `))`: 400,
		`min(count_over_time(weir_container_memory_working_set_bytes` + within + `))`:   float64(int(*outage/resolution) - 1),
	} {
		if got, err := ask(query); err != nil || got < want {
			t.Errorf("%s = %v, %v; want %v at least", query, got, err, want)
		}
	}
	t.Logf("dead for %.0f s: %.0f samples sent, %.0f stored", back.Sub(died).Seconds(), sent, stored)
}

// results returns weir's counters of the samples that it had to write.
func results(server string) (map[string]float64, error) {
	body, err := get(server + "/metrics")
	if err != nil {
		return nil, err
	}
	found := map[string]float64{}
	for _, m := range written.FindAllStringSubmatch(string(body), -1) {
		if found[m[1]], err = strconv.ParseFloat(m[2], 64); err != nil {
			return nil, err
		}
	}
	return found, nil
}
