package kubeletconfig

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/test/cmptest"
)

func thresholds(list []eviction.Threshold) (s []string) {
	for _, t := range list {
		s = append(s, t.String())
	}
	return s
}

var defaults = []string{"memory.available<100Mi", "nodefs.available<10%", "nodefs.inodesFree<5%", "imagefs.available<15%", "imagefs.inodesFree<5%"}

func TestDefault(t *testing.T) {
	k := Default()
	cmptest.Equal(t, "thresholds", defaults, thresholds(k.Thresholds))
	s := &k.Settings
	if s.TransitionPeriod != 5*time.Minute || s.MaxPodGraceSeconds != 0 || !s.LocalLimits || s.Parity {
		t.Errorf("got %+v", s)
	}
}

func TestParse(t *testing.T) {
	b, err := os.ReadFile("testdata/configz.json")
	if err != nil {
		t.Fatal(err)
	}
	k, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	cmptest.Equal(t, "thresholds", []string{
		"memory.available<100Mi", "nodefs.available<10% reclaim 500Mi", "nodefs.inodesFree<5%", "imagefs.available<15%", "imagefs.inodesFree<5%",
		"memory.available<300Mi for 1m30s", "allocatableMemory.available<100Mi",
	}, thresholds(k.Thresholds))
	cmptest.Equal(t, "transition period", 2*time.Minute, k.TransitionPeriod)
	cmptest.Equal(t, "most grace", int64(60), k.MaxPodGraceSeconds)
	if !k.KernelMemcgNotification || !k.LocalLimits {
		t.Errorf("got %+v", k)
	}
}

func TestParseWhatIsAbsent(t *testing.T) {
	f := func(configz string, want []string) {
		t.Helper()
		k, err := Parse([]byte(configz))
		if err != nil {
			t.Fatal(err)
		}
		cmptest.Equal(t, configz, want, thresholds(k.Thresholds))
	}
	// A kubelet without configuration answers with its defaults. If an answer has no thresholds, the
	// kubelet was configured to have none.
	f(`{"kubeletconfig":{}}`, nil)
	f(`{"kubeletconfig":{"evictionHard":{"memory.available":"1Gi"}}}`, []string{"memory.available<1Gi"})
	f(`{"kubeletconfig":{"evictionHard":{"memory.available":"1Gi"},"mergeDefaultEvictionSettings":true}}`, append([]string{"memory.available<1Gi"}, defaults[1:]...))
	f(`{"kubeletconfig":{"evictionHard":{"imagefs.available":"0%","nodefs.available":"0%"},"pressure":["x"]}}`, nil)
}

func TestParseMistakes(t *testing.T) {
	f := func(configz, want string) {
		t.Helper()
		if _, err := Parse([]byte(configz)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", configz, err, want)
		}
	}
	f(`<html>`, "parse the kubelet's configuration: invalid character")
	f(`{"kind":"Status"}`, "parse the kubelet's configuration: there is no kubeletconfig in it")
	f(`{"kubeletconfig":{"evictionHard":{"memory.free":"1"}}}`, `parse the kubelet's thresholds: "memory.free" is not a signal of the kubelet`)
}

func TestAsk(t *testing.T) {
	status := http.StatusOK
	kubelet := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/configz":
			w.WriteHeader(status)
			fmt.Fprint(w, `{"kubeletconfig":{"evictionHard":{"memory.available":"1Gi"}}}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer kubelet.Close()
	k, err := Fetch(t.Context(), kubelet.Client(), kubelet.URL+"/")
	if err != nil {
		t.Fatal(err)
	}
	cmptest.Equal(t, "thresholds", []string{"memory.available<1Gi"}, thresholds(k.Thresholds))
	status = http.StatusForbidden
	if _, err := Fetch(t.Context(), kubelet.Client(), kubelet.URL+"/"); err == nil || !strings.Contains(err.Error(), "nodes/configz") {
		t.Errorf("forbidden: %v, want the right it needs", err)
	}
}

// TestCheck prints the warnings about the thresholds of a kubelet and of weir. Both have the form
// of a kubelet's configuration.
func TestCheck(t *testing.T) {
	datadriven.RunTest(t, "testdata/check.txt", func(t *testing.T, d *datadriven.TestData) string {
		var both struct {
			Kubelet, Weir eviction.ThresholdConfig
			Woken         bool
			Capacity      map[eviction.Signal]int64
		}
		if err := yaml.UnmarshalStrict([]byte(d.Input), &both); err != nil {
			d.Fatalf(t, "%v", err)
		}
		k, err := newKubelet(&kubeletConfiguration{ThresholdConfig: both.Kubelet, KernelMemcgNotification: both.Woken})
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		own, err := eviction.Parse(&both.Weir)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		list := Check(k, own, execute.Mode(d.Cmd), func(s eviction.Signal) int64 { return both.Capacity[s] })
		if len(list) == 0 {
			return "nothing to say\n"
		}
		return strings.Join(list, "\n") + "\n"
	})
}

// FuzzParse checks that the kubelet would accept every accepted threshold, and that a comparison of
// a configuration with itself always says that both act at once.
func FuzzParse(f *testing.F) {
	b, err := os.ReadFile("testdata/configz.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"kubeletconfig":{"evictionHard":{"nodefs.inodesFree":"1e15","pid.available":"0.5"},"mergeDefaultEvictionSettings":true}}`))
	f.Add([]byte(`{"kubeletconfig":{"evictionSoft":{"memory.available":"99.9%"},"evictionSoftGracePeriod":{"memory.available":"1s"}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := Parse(b)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "parse the kubelet's ") {
				t.Errorf("an error that does not help: %v", err)
			}
			return
		}
		seen := map[eviction.Signal]bool{}
		for _, th := range k.Thresholds {
			seen[th.Signal] = true
		}
		delete(seen, eviction.ContainerFsAvailable)
		delete(seen, eviction.ContainerFsInodesFree)
		if got := len(Check(k, k.Thresholds, execute.Kill, nil)); got < len(seen) {
			t.Errorf("%d warnings about itself, of %v", got, thresholds(k.Thresholds))
		}
	})
}
