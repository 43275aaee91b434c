package captures

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Patterns of lines in golden pages.
const (
	oldPod    = `turned away: OldPod, rule uid`
	allServed = `^\d\d: \d+ pods served; \d+ containers served, [1-9]\d* judged$`
	noRateYet = `no cpu: (TooYoung|FirstSample)`
	lastKnown = `last number stands`
)

// happened has what the captures' README says about each scenario, and the
// patterns that the golden page must therefore contain for resource, summary
// and cadvisor: each pattern must match a line. An endpoint has no patterns if
// the kubelet did not report the event there.
var happened = []struct {
	scenario, what              string
	resource, summary, cadvisor []string
}{
	{"01-steady", "nothing happens: all is served, and agrees with the kernel",
		[]string{allServed}, []string{allServed}, []string{allServed}},
	{"01b-steady-runtime-only", "the same with statistics from the runtime, whose cadvisor names no containers",
		[]string{allServed}, []string{allServed}, []string{`missing: NotReported`}},
	{"02a-container-restarts", "containers crash and restart: young runs wait",
		[]string{noRateYet}, []string{noRateYet}, []string{noRateYet}},
	{"02b-same-name-new-uid", "a pod that is created again under its name begins without history",
		[]string{noRateYet}, []string{noRateYet}, []string{noRateYet}},
	{"03a-forced-delete-old-still-burning", "deleted by force, the old pod burns on beside the new one",
		[]string{oldPod}, []string{oldPod}, []string{oldPod}},
	{"03b-old-process-stuck", "a stuck process keeps the old pod's cgroup alive",
		[]string{oldPod}, []string{oldPod}, []string{oldPod}},
	{"03c-old-process-stuck-and-burning", "the same, and it burns",
		[]string{oldPod}, []string{oldPod}, []string{oldPod}},
	{"03d-two-instances-one-pod", "a second container of the name runs in one pod, then is stopped",
		[]string{`main .*OlderStart, rule start`}, []string{`main .*OlderStart, rule start`}, []string{`main .*OldContainer, rule container id`}},
	{"03e-cgroup-left-behind", "a process keeps the old run's cgroup alive, which the kubelet reports nowhere",
		nil, nil, nil},
	{"03f-one-container-two-paths", "one container under two cgroup paths, which only cadvisor names",
		nil, nil, []string{`Ambiguous, rule two paths, one container`}},
	{"03g-old-process-stuck-runtime-only", "03c with statistics from the runtime",
		[]string{oldPod}, []string{oldPod}, []string{`missing: NotReported`}},
	{"03h-old-process-stuck-stats-from-cri", "03c with statistics from the CRI, which forgot the old pod",
		nil, nil, nil},
	{"04-two-qos-dirs", "a second and a third cgroup of one pod UID, empty, then with processes",
		nil, nil, []string{`parcel .*DeadCgroup, rule life`, `parcel .*Ambiguous, rule two paths, one container`}},
	{"08-kubelet-restart", "the kubelet is away for half a minute: last numbers stand",
		[]string{`NodeUnreachable`, lastKnown}, []string{`NodeUnreachable`, lastKnown}, []string{`NodeUnreachable`, lastKnown}},
	{"09-runtime-down", "the runtime is away: the kubelet says so, each endpoint in its way",
		[]string{`missing: NodeScrapeError`}, []string{`missing: NodeScrapeError`}, []string{`missing: NotReported`}},
	{"10-version-2", "version 2, systemd and Kubernetes 1.37: containers restart, and a frozen pod stays beside the new one of its name",
		[]string{allServed, noRateYet, oldPod}, []string{allServed, noRateYet, oldPod}, []string{allServed, noRateYet, oldPod}},
}

// silent are the scenarios that show nothing about identity. Their golden pages
// only have numbers.
var silent = []string{
	"02c-ends-and-starts-finely", "03a-fine", "05-resize", "06-memory-pressure", "06b-memory-pressure-evicted",
	"06c-memory-pressure-kernel-notification", "07-startup",
}

// TestGoldensShowWhatHappened checks that the golden pages show what the
// captures' README says. TestReplay checks that all numbers are right, that no
// decision alternates, and that the verdicts on rejected samples name the rule.
func TestGoldensShowWhatHappened(t *testing.T) {
	expected := slices.Clone(silent)
	for _, h := range happened {
		expected = append(expected, h.scenario)
		t.Logf("%s: %s", h.scenario, h.what)
		page, err := os.ReadFile(filepath.Join("testdata", h.scenario+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		sections := strings.Split("\n"+string(page), "\n== ")[1:]
		for i, patterns := range [...][]string{h.resource, h.summary, h.cadvisor} {
			lines := strings.Split(sections[i], "\n")
			for _, pattern := range patterns {
				if !slices.ContainsFunc(lines, regexp.MustCompile(pattern).MatchString) {
					t.Errorf("%s, %s: no line shows %q, and yet: %s", h.scenario, endpoints[i].name, pattern, h.what)
				}
			}
		}
	}
	for _, scenario := range scenarios(t) {
		if !slices.Contains(expected, scenario) {
			t.Errorf("scenario %s was captured, and nobody says what happened", scenario)
		}
	}
}
