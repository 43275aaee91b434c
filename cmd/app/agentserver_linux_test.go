package app

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/inspect"
	"github.com/weir-metrics/weir/sources/kubelet"
)

const (
	agentPodUID    = "80cd749e-fe99-4226-bfc9-fe1dcb4e4831"
	agentContainer = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00"
)

// agentPod is the pod shop/web on n1 with its running container app.
func agentPod() v1.Pod {
	began := metav1.NewTime(time.Now().Add(-time.Minute))
	return v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: agentPodUID},
		Spec:       v1.PodSpec{NodeName: "n1", Containers: []v1.Container{{Name: "app"}}},
		Status: v1.PodStatus{Phase: v1.PodRunning, QOSClass: v1.PodQOSBurstable, StartTime: &began, ContainerStatuses: []v1.ContainerStatus{{
			Name: "app", ContainerID: "containerd://" + agentContainer, Image: "example.org/app:1",
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: began}},
		}}},
	}
}

// runPod makes the cgroups of agentPod below a new cgroup, which no kubelet watches, and a process
// in the container's cgroup. It returns the new cgroup.
func runPod(t *testing.T) string {
	t.Helper()
	roots := []string{"/sys/fs/cgroup"}
	files := map[string]string{"cpu.weight": "4", "memory.max": "67108864"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
		roots = nil
		for _, c := range []string{"cpuacct", "cpu", "memory", "pids"} {
			roots = append(roots, filepath.Join("/sys/fs/cgroup", c))
		}
		files = map[string]string{"cpu.shares": "102", "memory.limit_in_bytes": "67108864"}
	}
	own := fmt.Sprintf("weir-agent-door-%d", os.Getpid())
	parts := []string{own, "kubepods", "burstable", "pod" + agentPodUID, agentContainer}
	process := exec.CommandContext(t.Context(), "sleep", "600")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill() // it may have ended with the test's context
		_ = process.Wait()
		for _, root := range roots {
			for n := len(parts); n > 0; n-- {
				dir := filepath.Join(append([]string{root}, parts[:n]...)...)
				until(t, 5*time.Second, dir+" is removed", func() bool { err := os.Remove(dir); return err == nil || os.IsNotExist(err) })
			}
		}
	})
	for _, root := range roots {
		dir := filepath.Join(append([]string{root}, parts...)...)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Skipf("making cgroups needs root and a writable hierarchy: %v", err)
		}
		for name, value := range files {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(process.Process.Pid)), 0); err != nil {
			t.Fatal(err)
		}
	}
	return "/" + own
}

// An agent serves the endpoints of its node's kubelet: it requires the same rights, and a weir
// server reads it as it reads a kubelet.
func TestAgentServesTheKubeletAPI(t *testing.T) {
	cgroup := runPod(t)
	list := metav1.ListMeta{ResourceVersion: "1"}
	api := httptest.NewTLSServer(&reviewing{
		apiServer: apiServer{
			nodes: v1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: list,
				Items: []v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}}},
			pods: v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: list, Items: []v1.Pod{agentPod()}},
		},
		rights: map[string][]string{
			"weir": {"get nodes/stats n1", "get nodes/metrics n1", "get nodes/podcgroups n1"},
			"prom": {"get nodes/metrics n1", "get /metrics"},
			"eve":  {"get nodes/stats n2", "get nodes/metrics n2", "get nodes/podcgroups n2"},
		},
	})
	t.Cleanup(api.Close)
	_, port, err := net.SplitHostPort(free(t))
	if err != nil {
		t.Fatal(err)
	}
	w := begin(t, "agent", "--kubeconfig="+kubeconfig(t, api, "secret"), "--node-name=n1", "--eviction=off",
		"--source=host:?prefix="+cgroup, "--bind-address=127.0.0.1", "--secure-port="+port, "--authentication-skip-lookup", "--listen=127.0.0.1:0")
	local, listener, _ := strings.Cut(w.url, " and ")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	ask := func(url, token string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	until(t, 30*time.Second, "the pod is served by name", func() bool {
		status, body := ask(listener+"/metrics/cadvisor", "prom")
		return status == http.StatusOK && strings.Contains(body, `image="example.org/app:1"`)
	})

	t.Run("rights", func(t *testing.T) {
		for _, c := range []struct {
			path                  string
			weir, prom, eve, none int
		}{
			{"/stats/summary", 200, 403, 403, 401},
			{"/stats/summary?only_cpu_and_memory=true", 200, 403, 403, 401},
			{"/metrics/resource", 200, 200, 403, 401},
			{"/metrics/cadvisor", 200, 200, 403, 401},
			{"/metrics", 403, 200, 403, 401},
			{weirdev.Path + "nodes/n1/podcgroups", 200, 403, 403, 401},
			{weirdev.Path + "nodes/n2/podcgroups", 403, 403, 404, 401},
			{weirdev.Path + "pods", 403, 403, 403, 401},
			{"/livez", 200, 200, 200, 200},
		} {
			for token, want := range map[string]int{"weir": c.weir, "prom": c.prom, "eve": c.eve, "": c.none} {
				if status, body := ask(listener+c.path, token); status != want {
					t.Errorf("GET %s as %q: %d, want %d\n%.300s", c.path, token, status, want, body)
				}
			}
		}
		for _, path := range []string{"/stats/summary", "/metrics/resource", "/metrics/cadvisor", weirdev.Path + "nodes/n1/podcgroups"} {
			if status, body := ask(local+path, ""); status != http.StatusOK {
				t.Errorf("GET %s on the node: %d, want 200\n%.300s", path, status, body)
			}
		}
	})

	t.Run("scraped", func(t *testing.T) {
		token := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(token, []byte("weir"), 0o600); err != nil {
			t.Fatal(err)
		}
		said := map[string]map[string]string{}
		same := func() bool {
			for _, endpoint := range []string{"resource", "summary", "cadvisor"} {
				said[endpoint] = scrape(t, url.Values{"endpoint": {endpoint}, "targets": {"n1=127.0.0.1:" + port}, "insecure-tls": {"true"}, "token-file": {token}})
			}
			// The agent may have read its node between two requests.
			return said["summary"]["node/n1"] == said["resource"]["node/n1"]
		}
		until(t, 30*time.Second, "two endpoints tell of one round", same)
		for _, entity := range []string{"node/n1", "shop/web", "shop/web/app"} {
			of := said["resource"][entity]
			if of == "" {
				t.Errorf("/metrics/resource has no %s in %v", entity, said["resource"])
			}
			if said["cadvisor"][entity] == "" { // of a read of its own
				t.Errorf("/metrics/cadvisor has no %s in %v", entity, said["cadvisor"])
			}
			if got := said["summary"][entity]; got != of {
				t.Errorf("/stats/summary of %s: %s, and of /metrics/resource: %s", entity, got, of)
			}
		}
	})

	t.Run("pod cgroups", func(t *testing.T) {
		_, body := ask(listener+weirdev.Path+"nodes/n1/podcgroups", "weir")
		var r inspect.Report
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		for i := range r.Pods {
			p := &r.Pods[i]
			if !strings.HasPrefix(string(p.Path), cgroup+"/") || len(p.Containers) != 1 {
				continue
			}
			c := &p.Containers[0]
			if p.Judgement != inspect.Live || p.PodName() != "shop/web" || c.Name != "app" {
				t.Errorf("the pod is %s %s, its container %q, want live shop/web with app", p.Judgement, p.PodName(), c.Name)
			}
			if c.Limits == nil || c.Limits.Memory == nil || *c.Limits.Memory != 64<<20 || c.Limits.Shares == nil && c.Limits.Weight == nil {
				t.Errorf("limits of the container are %+v, want 64Mi and CPU shares", c.Limits)
			}
			return
		}
		t.Errorf("the test's pod is not in %s", body)
	})
}

// scrape reads a target as a weir server does. It returns CPU time and working set of each entity,
// with the time of the read in whole seconds, the resolution of a summary.
func scrape(t *testing.T, options url.Values) map[string]string {
	t.Helper()
	o, err := kubelet.ParseOptions("", options)
	if err != nil {
		t.Fatal(err)
	}
	scraper, err := kubelet.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer scraper.Close()
	targets := scraper.Targets(nil)
	if len(targets) != 1 {
		t.Fatalf("targets are %v, want one", targets)
	}
	source := scraper.Open(targets[0])
	defer source.Close()
	b := metric.Batch{Node: targets[0].Node}
	if err := source.Read(context.Background(), &b); err != nil {
		t.Fatalf("read %s: %v", o.Endpoint, err)
	}
	said := map[string]string{}
	for i := range b.Samples {
		s := &b.Samples[i]
		if s.Entity.Part != "" {
			continue
		}
		cpu, _ := s.Values.Get(metric.CPUUsage)
		memory, _ := s.Values.Get(metric.MemoryWorkingSet)
		said[s.Entity.String()] = fmt.Sprintf("%.0f ns, %.0f bytes at %d", cpu, memory, s.Times[metric.CPU]/1e9)
	}
	return said
}
