//go:build e2e

package apis

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/test/cluster/harness"
)

// TestKubectlOfEachRelease runs kubectl top of two Kubernetes releases. Each must ask for v1beta1 of
// metrics.k8s.io, although one knows v1 and weir serves it, and show the known usage.
func TestKubectlOfEachRelease(t *testing.T) {
	w := sharedCluster
	namespace := w.namespace(t, "releases")
	w.create(t, namespace, pod("web", container("app", "use", "--millicores=20", "--bytes=33554432"), container("helper", "pause")))
	w.create(t, namespace, pod("db", container("app", "use", "--millicores=10", "--bytes=67108864")))
	w.resourceMetricsFrom(t, ours)
	serves(t, "the cluster", w.aggregated, namespace, "web/app", "web/helper", "db/app")
	node := regexp.QuoteMeta(w.Node())
	for _, release := range []string{"1.36", "1.37"} {
		t.Run(release, func(t *testing.T) {
			kubectl, err := harness.BuildKubectl(t.Context(), release, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			if out, _, err := w.KubectlOf(t.Context(), kubectl, "version", "--client"); err != nil || !strings.Contains(out, "v"+release+".") {
				t.Fatalf("the kubectl of %s says %q, %v", release, out, err)
			}
			top := func(args ...string) string {
				t.Helper()
				args = append([]string{"top"}, args...)
				out, log, err := w.KubectlOf(t.Context(), kubectl, append(args, "-v=6")...)
				if err != nil {
					t.Fatal(err)
				}
				asked := regexp.MustCompile(`/apis/metrics\.k8s\.io/(\w+)/(nodes|pods|namespaces)`).FindAllStringSubmatch(log, -1)
				if len(asked) != 1 || asked[0][1] != "v1beta1" {
					t.Errorf("kubectl %s: it asked for %v, want one request of v1beta1", strings.Join(args, " "), asked)
				}
				return out
			}
			shows := func(pattern string, args ...string) {
				t.Helper()
				if out := top(args...); !regexp.MustCompile(`(?m)` + pattern).MatchString(out) {
					t.Errorf("kubectl top %s: no line matches %s in\n%s", strings.Join(args, " "), pattern, out)
				}
			}
			shows(`^`+node+`\s+\d+m\s+\d+%\s+\d+Mi\s+\d+%\s*$`, "nodes")
			shows(`^`+node+`\s+\d+m\s+\d+%\s+\d+Mi\s+\d+%\s*$`, "node", w.Node())
			shows(`^db\s+\d+m\s+6[4-9]Mi\s*$`, "pods", "-n", namespace)
			shows(`^releases\s+web\s+helper\s+\d+m\s+\d+Mi\s*$`, "pods", "--containers", "-A")
			shows(`^web\s+app\s+\d+m\s+3[2-7]Mi\s*$`, "pod", "web", "--containers", "-n", namespace)
			shows(`\Adb\s+\d+m\s+6[4-9]Mi\s*\z`, "pods", "-l", "app=db", "--no-headers", "-n", namespace)
			checkSum(t, top("pods", "--sum", "--no-headers", "-n", namespace))
		})
	}
}

// checkSum checks the last line of kubectl top pods --sum. kubectl rounds memory of each line down
// to MiB and CPU up to millicores, and the sum likewise.
func checkSum(t *testing.T, out string) {
	t.Helper()
	var rows [][2]int
	for _, line := range regexp.MustCompile(`(\d+)m\s+(\d+)Mi`).FindAllStringSubmatch(out, -1) {
		cpu, _ := strconv.Atoi(line[1])
		memory, _ := strconv.Atoi(line[2])
		rows = append(rows, [2]int{cpu, memory})
	}
	if len(rows) != 3 {
		t.Fatalf("kubectl top pods --sum: want two pods and their sum, got\n%s", out)
	}
	cpu, memory := rows[0][0]+rows[1][0], rows[0][1]+rows[1][1]
	if sum := rows[2]; sum[0] > cpu || sum[0] < cpu-1 || sum[1] < memory || sum[1] > memory+1 {
		t.Errorf("kubectl top pods --sum: got %dm and %dMi, want %dm and %dMi in\n%s", sum[0], sum[1], cpu, memory, out)
	}
}
