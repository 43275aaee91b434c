package situations

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sources/kubelet"
	"github.com/weir-metrics/weir/test/simulator"
)

// situation is a fault of a pod with two containers, app and proxy, or of its
// node, and what weir must say after the last round.
type situation struct {
	cause  string // as text
	faults []string
	last   time.Duration // the last round; there is one every 15 s from the start
	want   string

	fleet        simulator.Options // its size; by default two nodes of six pods
	options      kubelet.Options
	memory       memory.Options
	alone        bool     // there is no API server
	noSecondRead bool     // there is no cross-check
	unread       bool     // weir has not read anything yet
	hostnet      bool     // the pod is the one in the host's network
	groups       []string // the metrics that are compared; by default CPU and memory
}

// victim returns the pod of the situation: the StatefulSet's pod on the first
// node, or the DaemonSet's.
func (g *stage) victim() *simulator.Pod {
	if g.s.hostnet {
		return g.fleet.Nodes()[0].Pods()[0]
	}
	return g.fleet.Nodes()[0].Pods()[4]
}

const whole = "pod Measured, app Measured, proxy Measured, node Measured"

// everywhere is the text if the only problem is the node's.
func everywhere(r metric.Reason) string {
	return fmt.Sprintf("pod %[1]v, app %[1]v, proxy %[1]v, node %[1]v", r)
}

var situations = []situation{
	{cause: "nothing is wrong", last: 60 * time.Second, want: whole},

	// The pod's life.
	{cause: "the image does not come", faults: []string{"pending pod=*-store-0-0 at=20s"}, last: 60 * time.Second,
		want: "pod PodPending, app PodPending, proxy PodPending, node Measured"},
	{cause: "the pod has succeeded", faults: []string{"finish pod=*-store-0-0 at=20s"}, last: 60 * time.Second,
		want: "pod PodFinished, app PodFinished, proxy PodFinished, node Measured"},
	{cause: "the pod has failed", faults: []string{"finish pod=*-store-0-0 at=20s style=failed"}, last: 60 * time.Second,
		want: "pod PodFinished, app PodFinished, proxy PodFinished, node Measured"},
	{cause: "the pod is being deleted, and its node was faster", faults: []string{"terminate pod=*-store-0-0 at=20s"}, last: 120 * time.Second,
		want: "pod PodTerminating, app PodTerminating, proxy PodTerminating, node Measured"},
	{cause: "a container crashes again and again", faults: []string{"restart pod=*-store-0-0 container=app at=20s for=5m"}, last: 60 * time.Second,
		want: "pod Measured, app ContainerNotStarted, proxy Measured, node Measured"},
	{cause: "all containers crash", faults: []string{"restart pod=*-store-0-0 at=20s for=5m"}, last: 60 * time.Second,
		want: "pod ContainerNotStarted, app ContainerNotStarted, proxy ContainerNotStarted, node Measured"},
	{cause: "a container has ended for good", faults: []string{"finish pod=*-store-0-0 container=app at=20s"}, last: 60 * time.Second,
		want: "pod Measured, app ContainerFinished, proxy Measured, node Measured"},

	// The node.
	{cause: "the API server has no such node", faults: []string{"unlisted node=node-0001 at=40s"}, last: 60 * time.Second,
		want: everywhere(metric.NodeUnknown)},
	{cause: "the node is not selected", options: kubelet.Options{Selector: labels.SelectorFromSet(labels.Set{"topology.kubernetes.io/zone": "zone-b"})}, last: 30 * time.Second,
		want: everywhere(metric.NodeExcluded)},
	{cause: "the node has no address", faults: []string{"noaddress node=node-0001"}, last: 30 * time.Second,
		want: everywhere(metric.NodeNoAddress)},
	{cause: "the node is not ready and does not answer", faults: []string{"notready node=node-0001", "down node=node-0001"}, last: 30 * time.Second,
		want: everywhere(metric.NodeNotReady)},
	{cause: "the node is not ready and answers all the same", faults: []string{"notready node=node-0001"}, last: 60 * time.Second, want: whole},
	{cause: "nothing has been read yet", unread: true,
		want: everywhere(metric.NodeNotScrapedYet)},
	{cause: "everything has been read once", last: 0,
		want: "pod WarmingUp, app WarmingUp/Measured, proxy WarmingUp/Measured, node WarmingUp/Measured"},

	// The connection.
	{cause: "the node resets connections", faults: []string{"down node=node-0001"}, last: 30 * time.Second,
		want: everywhere(metric.NodeUnreachable)},
	{cause: "the node accepts and never answers", faults: []string{"hang node=node-0001"}, last: 15 * time.Second,
		options: kubelet.Options{Timeout: 100 * time.Millisecond}, want: everywhere(metric.NodeTimeout)},
	{cause: "the node takes too long", faults: []string{"slow node=node-0001 delay=5s"}, last: 15 * time.Second,
		options: kubelet.Options{Timeout: 100 * time.Millisecond}, want: everywhere(metric.NodeTimeout)},
	{cause: "the certificate is self-signed", faults: []string{"certificate node=node-0001"}, last: 30 * time.Second,
		want: everywhere(metric.NodeCertificate)},
	{cause: "the certificate is for another name", faults: []string{"certificate node=node-0001 style=wrong-name"}, last: 30 * time.Second,
		want: everywhere(metric.NodeCertificate)},
	{cause: "the certificate has expired", faults: []string{"certificate node=node-0001 style=expired"}, last: 30 * time.Second,
		want: everywhere(metric.NodeCertificate)},
	{cause: "the kubelet does not know us", faults: []string{"refuse node=node-0001"}, last: 30 * time.Second,
		want: everywhere(metric.NodeUnauthorized)},
	{cause: "the kubelet will not answer us", faults: []string{"refuse node=node-0001 style=forbidden"}, last: 30 * time.Second,
		want: everywhere(metric.NodeUnauthorized)},
	{cause: "the address has passed to another node", faults: []string{"impostor node=node-0001 as=node-0002"}, last: 30 * time.Second,
		want: everywhere(metric.NodeWrongIdentity)},
	{cause: "the address passes to another node later", faults: []string{"impostor node=node-0001 as=node-0002 at=40s"}, last: 120 * time.Second,
		want: everywhere(metric.NodeWrongIdentity)},
	{cause: "a proxy answers with its error page", faults: []string{"garbage node=node-0001 style=html"}, last: 30 * time.Second,
		want: everywhere(metric.NodeBadPayload)},
	{cause: "the answer is noise", faults: []string{"garbage node=node-0001"}, last: 30 * time.Second,
		want: everywhere(metric.NodeBadPayload)},
	{cause: "the container runtime is away", faults: []string{"scrapeerror node=node-0001"}, last: 30 * time.Second,
		want: everywhere(metric.NodeScrapeError)},
	{cause: "the container runtime is away, by the summary", faults: []string{"scrapeerror node=node-0001"}, last: 30 * time.Second,
		options: kubelet.Options{Endpoint: kubelet.Summary}, want: everywhere(metric.NodeScrapeError)},
	{cause: "one read is missed", faults: []string{"down node=node-0001 at=50s for=20s"}, last: 60 * time.Second,
		want: "pod Measured last known, app Measured last known, proxy Measured last known, node Measured last known"},

	// The report.
	{cause: "the node leaves a container out", faults: []string{"missing pod=*-store-0-0 container=app"}, last: 30 * time.Second,
		want: "pod NotReported, app NotReported, proxy Measured, node Measured"},
	{cause: "the node leaves the pod out", faults: []string{"missing pod=*-store-0-0"}, last: 30 * time.Second,
		want: "pod NotReported, app NotReported, proxy NotReported, node Measured"},
	{cause: "the node leaves a container out once", faults: []string{"missing pod=*-store-0-0 container=app at=50s for=20s"}, last: 60 * time.Second,
		want: "pod Measured last known, app Measured last known, proxy Measured, node Measured"},
	{cause: "the node writes 0 for what it could not read", faults: []string{"zero pod=*-store-0-0 container=app"}, last: 30 * time.Second,
		want: "pod NoData, app NoData, proxy Measured, node Measured"},
	{cause: "a node larger than the bound", options: kubelet.Options{MaxSamples: 1}, last: 30 * time.Second,
		want: "pod OverLimit, app OverLimit, proxy OverLimit, node Measured"},

	// Which sample is the truth.
	{cause: "deleted by force, the old pod burns on", faults: []string{"duplicate pod=*-store-0-0 at=20s"}, last: 90 * time.Second,
		want: "pod Measured (not OldPod by uid), app Measured (not OldPod by uid), proxy Measured (not OldPod by uid), node Measured"},
	{cause: "the same, with UIDs in the report", faults: []string{"duplicate pod=*-store-0-0 at=20s"}, last: 90 * time.Second,
		options: kubelet.Options{Endpoint: kubelet.Summary},
		want:    "pod Measured (not OldPod by uid), app Measured (not OldPod by uid), proxy Measured (not OldPod by uid), node Measured"},
	{cause: "another node reports an old pod of the name", faults: []string{"twonodes pod=*-store-0-0 node=node-0002"}, last: 60 * time.Second,
		want: "pod Measured (not OtherNode by place), app Measured (not OtherNode by place), proxy Measured (not OtherNode by place), node Measured"},
	{cause: "the old run lives on beside the new one", faults: []string{"duplicate pod=*-store-0-0 container=app at=20s style=two-lines"}, last: 90 * time.Second,
		options: kubelet.Options{Endpoint: kubelet.CAdvisor},
		want:    "pod Measured, app Measured (not OldContainer by container id), proxy Measured, node Measured"},
	{cause: "the same, and nobody to ask", faults: []string{"duplicate pod=*-store-0-0 container=app at=20s style=two-lines"}, last: 90 * time.Second,
		alone: true, options: kubelet.Options{Endpoint: kubelet.CAdvisor},
		want: "pod Measured, app Measured (not OlderStart by start), proxy Measured, node Measured"},
	{cause: "one container under two cgroup paths", faults: []string{"duplicate pod=*-store-0-0 container=app at=20s style=two-paths"}, last: 90 * time.Second,
		options: kubelet.Options{Endpoint: kubelet.CAdvisor},
		want:    "pod Measured, app Measured (not Ambiguous by two paths, one container), proxy Measured, node Measured"},
	{cause: "a second, empty cgroup of the pod", faults: []string{"duplicate pod=*-store-0-0 at=20s style=two-qos"}, last: 90 * time.Second,
		options: kubelet.Options{Endpoint: kubelet.CAdvisor},
		want:    "pod Measured (not DeadCgroup by life), app Measured, proxy Measured, node Measured"},
	{cause: "another node reports a pod of the name, and no API server", faults: []string{"twonodes pod=*-store-0-0 node=node-0002"}, last: 60 * time.Second,
		alone: true, want: "pod Measured (not OlderStart by start), app Measured (not OlderStart by start), proxy Measured (not OlderStart by start), node Measured"},
	{cause: "two instances, one start line, nobody to ask", faults: []string{"duplicate pod=*-store-0-0 container=app at=20s style=two-lines"}, last: 90 * time.Second,
		alone: true, noSecondRead: true, want: "pod Ambiguous, app Ambiguous (not Ambiguous by continuity), proxy Measured, node Measured"},
	{cause: "the same, and one of them cannot be read", faults: []string{"duplicate pod=*-store-0-0 container=app at=20s", "zero pod=*-store-0-0 container=app at=80s"}, last: 90 * time.Second,
		alone: true, noSecondRead: true, want: "pod Ambiguous (not Ambiguous by continuity), app Ambiguous (not Ambiguous by , Discontinuous by continuity), proxy Measured, node Measured"},
	{cause: "starts jitter by seconds", faults: []string{"jitter pod=*-store-0-0 start=±3s"}, last: 90 * time.Second, want: whole},

	// From counters to rates.
	{cause: "a container restarts, seconds ago", faults: []string{"restart pod=*-store-0-0 container=app at=55s"}, last: 60 * time.Second,
		want: "pod TooYoung, app TooYoung/Measured, proxy Measured, node Measured"},
	{cause: "a container restarted, half a minute ago", faults: []string{"restart pod=*-store-0-0 container=app at=55s"}, last: 90 * time.Second, want: whole},
	{cause: "the pod was replaced, seconds ago", faults: []string{"replace pod=*-store-0-0 at=52s for=1s"}, last: 60 * time.Second,
		want: "pod TooYoung, app TooYoung/Measured, proxy TooYoung/Measured, node Measured"},
	{cause: "a counter falls", faults: []string{"reset pod=*-store-0-0 container=app at=55s"}, last: 60 * time.Second,
		want: "pod CounterReset, app CounterReset/Measured, proxy Measured, node Measured"},
	{cause: "a counter leaps", faults: []string{"leap pod=*-store-0-0 container=app by=10m at=55s"}, last: 60 * time.Second,
		want: "pod Impossible, app Impossible/Measured, proxy Measured, node Measured"},
	{cause: "the node's clock jumps ahead", faults: []string{"clockstep node=node-0001 by=2m at=5s"}, last: 15 * time.Second,
		want: "pod ClockStep, app ClockStep/Measured, proxy ClockStep/Measured, node ClockStep/Measured"},
	{cause: "the node's clock jumps back", faults: []string{"clockstep node=node-0001 by=-2m at=5s"}, last: 15 * time.Second,
		want: "pod ClockStep, app ClockStep/Measured, proxy ClockStep/Measured, node ClockStep/Measured"},
	{cause: "the node's clock jumps, and the last known value is served", faults: []string{"clockstep node=node-0001 by=-2m at=55s"}, last: 60 * time.Second, want: whole},
	{cause: "the node's numbers stand still", faults: []string{"stale node=node-0001 at=40s"}, last: 180 * time.Second,
		want: "pod Stale, app Stale, proxy Stale, node Stale"},
	{cause: "a container is reported for the first time", faults: []string{"missing pod=*-store-0-0 container=app for=40s"}, last: 45 * time.Second,
		want: "pod FirstSample, app FirstSample/Measured, proxy Measured, node Measured"},
	{cause: "the pod is in the host's network", hostnet: true, last: 60 * time.Second, want: whole},
	{cause: "its network", hostnet: true, last: 60 * time.Second, groups: []string{"network"},
		options: kubelet.Options{Endpoint: kubelet.Summary}, want: "pod NotApplicable, app nothing, proxy nothing, node Measured"},
}

// untold are the reasons that no simulated kubelet can cause.
var untold = map[metric.Reason]bool{
	metric.Unjudged:    true,
	metric.Unsupported: true, // a kernel lacks something
	metric.Incomplete:  true, // an answer has the container's reason instead
}

// TestSituations prints the table of faults and of what weir says, and fails
// for every wrong line.
func TestSituations(t *testing.T) {
	authority, err := simulator.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	right, explained := 0, map[string]bool{} // reasons by name
	var table strings.Builder
	for i := range situations {
		s := &situations[i]
		t.Run(strings.ReplaceAll(s.cause, " ", "-"), func(t *testing.T) {
			got := raise(t, s, authority).play()
			fmt.Fprintf(&table, "%s [%s]\n    → %s\n", s.cause, strings.Join(s.faults, "; "), got)
			if got != s.want {
				t.Errorf("%s: %s\n got %s\nwant %s", s.cause, strings.Join(s.faults, "; "), got, s.want)
				return
			}
			right++
		})
		for _, word := range strings.FieldsFunc(s.want, func(r rune) bool { return strings.ContainsRune(" ,/()", r) }) {
			explained[word] = true
		}
	}
	for r := range metric.NumReasons {
		if name := metric.Reason(r).String(); !explained[name] && !untold[metric.Reason(r)] {
			t.Errorf("no situation ends in %s", name)
		}
	}
	t.Logf("injected cause → reported reason, %d of %d right:\n%s", right, len(situations), table.String())
}
