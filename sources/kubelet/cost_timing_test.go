package kubelet

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// costServer is an environment variable that makes the test binary the server of BenchmarkCost. A
// separate process keeps the server's CPU time out of the measurement.
const costServer = "WEIR_TEST_COST_SERVER"

// costNodes is the number of nodes that are read in turn, each over its own connection.
const costNodes = 1000

// costPayload is the /metrics/resource payload of a node with 30 pods of 2 containers: 37 kB.
func costPayload() []byte {
	var b strings.Builder
	family := func(name, kind string, lines func(add func(labels string, v float64))) {
		fmt.Fprintf(&b, "# HELP %s [STABLE] What a node reports of it\n# TYPE %s %s\n", name, name, kind)
		lines(func(labels string, v float64) { fmt.Fprintf(&b, "%s%s %.9g 1795234949671\n", name, labels, v) })
	}
	pods := func(container bool, base float64) func(add func(string, float64)) {
		return func(add func(string, float64)) {
			for p := range 30 {
				pod := fmt.Sprintf(`namespace="team-%d",pod="node-0001-store-%d-0"`, p%5, p)
				if !container {
					add("{"+pod+"}", base+float64(p))
					continue
				}
				add(`{container="app",`+pod+"}", base+float64(2*p))
				add(`{container="sidecar",`+pod+"}", base+float64(2*p+1))
			}
		}
	}
	one := func(v float64) func(add func(string, float64)) {
		return func(add func(string, float64)) { add("", v) }
	}
	family("container_cpu_usage_seconds_total", "counter", pods(true, 123.456))
	family("container_memory_working_set_bytes", "gauge", pods(true, 123456789))
	family("container_start_time_seconds", "gauge", pods(true, 1795134949))
	family("container_swap_usage_bytes", "gauge", pods(true, 0))
	family("node_cpu_usage_seconds_total", "counter", one(12345.6))
	family("node_memory_working_set_bytes", "gauge", one(12345678901))
	family("pod_cpu_usage_seconds_total", "counter", pods(false, 234.567))
	family("pod_memory_working_set_bytes", "gauge", pods(false, 223456789))
	family("resource_scrape_error", "gauge", one(0))
	return []byte(b.String())
}

// serveCost serves until its standard input ends. It prints its port.
func serveCost() {
	payload := costPayload()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.Write(payload)
	}))
	srv.Listener.Close()
	var err error
	if srv.Listener, err = net.Listen("tcp4", "0.0.0.0:0"); err != nil {
		panic(err)
	}
	srv.StartTLS()
	fmt.Println(srv.Listener.Addr().(*net.TCPAddr).Port)
	io.Copy(io.Discard, os.Stdin)
}

// startCost starts the server in another process and returns the addresses of its nodes.
func startCost(b *testing.B) []string {
	b.Helper()
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), costServer+"=1")
	server.Stderr = os.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		if err := server.Wait(); err != nil {
			b.Error(err)
		}
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	addresses := make([]string, costNodes)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("127.1.%d.%d:%s", i/250, i%250+1, strings.TrimSpace(port))
	}
	return addresses
}

// BenchmarkCost measures the CPU time that this process, including its part of the kernel, needs to
// read many nodes. "floor" uses net/http to fetch the bytes and discards them; "read" is
// NodeReader.Read. In "turn" one read follows another. In "spread" 66 reads begin in a second, as
// with 1,000 nodes at 15 s, so every read wakes an idle process. heap-kB/conn is the heap that an
// idle connection and its node keep.
//
//	go test -bench=Cost -benchtime=3000x ./sources/kubelet
func BenchmarkCost(b *testing.B) {
	addresses := startCost(b)
	for _, pace := range []string{"turn", "spread"} {
		b.Run("floor/"+pace, func(b *testing.B) {
			client := &http.Client{Transport: &http.Transport{
				TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
				DisableCompression: true,
			}}
			defer client.CloseIdleConnections()
			reads := make([]func(context.Context) error, len(addresses))
			for i, a := range addresses {
				reads[i] = func(ctx context.Context) error {
					req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+a+"/metrics/resource", nil)
					if err != nil {
						return err
					}
					resp, err := client.Do(req)
					if err != nil {
						return err
					}
					defer resp.Body.Close()
					_, err = io.Copy(io.Discard, resp.Body)
					return err
				}
			}
			measureCost(b, pace, reads)
		})
		b.Run("read/"+pace, func(b *testing.B) {
			s, err := New(Options{Insecure: true})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			reads := make([]func(context.Context) error, len(addresses))
			var batch metric.Batch
			for i, a := range addresses {
				src := s.Open(Target{Node: metric.NodeName(a), Address: a, Guessed: true})
				reads[i] = func(ctx context.Context) error {
					batch.Reset()
					return src.Read(ctx, &batch)
				}
			}
			measureCost(b, pace, reads)
		})
	}
}

// measureCost makes b.N reads at a pace. It first reads each node several times, so that the
// connections exist and the server is warm.
func measureCost(b *testing.B, pace string, reads []func(context.Context) error) {
	b.Helper()
	do := func(i int) {
		ctx, cancel := context.WithTimeout(b.Context(), DefaultTimeout)
		defer cancel()
		if err := reads[i%len(reads)](ctx); err != nil {
			b.Fatal(err)
		}
	}
	before := liveHeap()
	for i := range 5 * len(reads) {
		do(i)
	}
	heap := liveHeap() - before
	var tick <-chan time.Time
	if pace == "spread" {
		ticker := time.NewTicker(time.Second / 66)
		defer ticker.Stop()
		tick = ticker.C
	}
	b.ReportAllocs()
	b.ResetTimer()
	began := cpuTime(b)
	for i := range b.N {
		if tick != nil {
			<-tick
		}
		do(i)
	}
	b.ReportMetric(float64((cpuTime(b)-began).Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(heap)/1024/float64(len(reads)), "heap-kB/conn")
}

// liveHeap returns the bytes in use on the heap and on stacks.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// cpuTime returns the CPU time this process has used, in user and system mode.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
