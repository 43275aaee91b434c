// Package faults has a table of faults of a cluster and of weir itself, and tests that inject each of
// them while the built weir program runs. Kubelets and API server are simulated in the process of the
// test, so the true usage of each container is known at each moment.
//
// Every 500 ms a test asks weir for the CPU usage of all containers. It compares each number with the
// truth, and checks the promise of its row: what is served while the fault lasts, for how long, and how
// it ends. The tests have the build tag e2e and need the commands that make build writes.
// With -long most of them do the same to a metrics-server.
//
//	go test -tags e2e ./test/faults -args -long -write
//
// writes their figures to testdata/results.json as well. make generate makes docs/reliability.md of the
// table and of these figures.
package faults

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// Resolution is the interval between two reads of a node in the tests, in seconds. It is short so that
// the tests are.
const Resolution = 5

// PeerResolution is the same of metrics-server, as in its own manifest.
const PeerResolution = 15

// ResultsFile has the results of the rows, as JSON by test, in the folder of this package.
const ResultsFile = "testdata/results.json"

// Row is a fault and what is promised.
type Row struct {
	Test    string // name of the test, without "Test" and with a slash before a subtest's
	Fault   string // what happens, as text
	Promise string // what the test asserts
}

// Result is what a run of a row's test found, as text with figures.
type Result struct {
	Served string // what was served meanwhile: right, last known, absent, wrong, and for how long
	Lost   string
	Ended  string // how it ended, and when
	Peer   string `json:",omitempty"` // what metrics-server served, and when it had all numbers again
}

// healthy is what is promised of each node and pod that a fault does not concern.
const healthy = "No wrong number. Numbers of other nodes are at most two intervals old. "

// Rows are the faults that this package injects, in the order of the page.
var Rows = []Row{
	{"Nodes/hang", "a third of the nodes accepts connections and never answers", healthy + "The nodes' numbers are absent after the hold, with the reason NodeTimeout, and back six intervals after the end."},
	{"Nodes/refused-connections", "a third of the nodes resets connections", healthy + "As above, NodeUnreachable."},
	{"Nodes/garbage", "a third of the nodes answers with noise", healthy + "As above, NodeBadPayload."},
	{"Nodes/error-page", "a proxy's error page comes from a third of the nodes", healthy + "As above, NodeBadPayload."},
	{"Nodes/refused-credentials", "a third of the kubelets refuses weir's credentials", healthy + "As above, NodeUnauthorized."},
	{"Nodes/runtime", "the container runtime of a third of the nodes does not answer", healthy + "As above, NodeScrapeError."},
	{"Nodes/expired-certificate", "the serving certificates of a third of the nodes expire", healthy + "As above, NodeCertificate."},
	{"Nodes/late", "a third of the nodes answers after 9 s", healthy + "The nodes' numbers are right or absent, and back six intervals after the end."},
	{"Nodes/clock-ahead", "the clocks of a third of the nodes jump 5 minutes ahead, and back", healthy + "The nodes' numbers are right or absent, and back six intervals after the end."},
	{"Nodes/clock-behind", "the clocks of a third of the nodes jump 5 minutes back, and ahead", healthy + "The nodes' numbers are right or absent, and back six intervals after the end."},
	{"Nodes/ten-times", "the answers of a third of the nodes are ten times as long, with pods that the API server does not have", "No wrong number, none is absent or older than two intervals."},
	{"RotatedAuthority", "all kubelets get certificates of another authority, and weir's file of certificates follows 20 s later", "No wrong number, and none is absent. All nodes are read again six intervals after the file was replaced."},
	{"APIServerAway", "the API server is away for 60 s; meanwhile a third of 3,000 pods is replaced, so that weir learns all of it at once (a simulated API server, without etcd)", "No wrong number. Numbers of pods that were not replaced are at most two intervals old. All pods have numbers eight intervals after the API server answers."},
	{"SlowAPIServer", "each request to the API server takes 3 s, for 60 s", "Every LIST to the replica that does not lead is answered with all pods, no number is wrong or older than two intervals. The leader remains the leader."},
	{"Leader/killed", "the leader of two replicas is killed", leader},
	{"Leader/paused", "the leader of two replicas is paused (SIGSTOP)", leader},
	{"Leader/cut-off", "the leader of two replicas cannot reach the API server", leader},
	{"LeaderWithoutNodes", "the leader of two replicas can read no node: its file of kubelets' certificates is replaced with a wrong one", "Every LIST to the other replica is answered with all pods. The other replica leads after at most 45 s, before a number is stale."},
	{"IdleConnections", "3,000 connections are opened to the HTTPS port, and nothing is sent", "Every LIST of another caller is answered with all pods, no number is wrong or older than two intervals."},
	{"Flood", "a caller sends valid LISTs of all pods over 100 connections, without a pause", "Every LIST of another caller is answered with all pods, no number is wrong or older than two intervals."},
	{"Terminated", "SIGTERM while 30 callers ask again and again, until a second after it", "No LIST fails or lacks a pod. weir ends within 10 s, with status 0."},
	{"Killed", "weir is killed (SIGKILL) and started again", "No wrong number. All numbers are there six intervals after the start."},
	{"MemoryLimit", "weir reaches the limit of its memory cgroup, and is started again with a larger one", "The kernel kills weir. With the larger limit no number is wrong, absent or older than two intervals."},
	{"FullDisk", "the disk of a recording is full, and has room again", "No number is wrong, absent or older than two intervals. The recording goes on by itself, and `weir recording info` names the gap."},
}

const leader = "Every LIST to the other replica is answered with all pods, no number is wrong or older than two intervals. The other replica leads within the Lease (15 s) and 9 s."

// Elsewhere are the faults that tests of other packages inject, and the soak. They have no figures here.
var Elsewhere = []struct{ Fault, Promise, Test string }{
	{"of 5,000 nodes, a third hangs, refuses connections or answers late", "No number of another node is older than two intervals.", "`manager` TestHangingZoneDelaysNobodyElse; figures in [performance.md](performance.md)"},
	{"a node sends 55 MB of made-up names in each round, or as much as is read", "Memory is bounded, and the other nodes keep their numbers.", "`test/situations` TestAFloodOfNames"},
	{"65,000 Nodes are created that no machine has", "Memory is bounded; nodes that are ready are read.", "`cmd/app` TestMadeUpNodes"},
	{"more nodes than fit into the memory for large answers answer without an end", "A node with a smaller answer is read at once.", "`sources/kubelet` TestHugeAnswersLeaveMemoryToOthers"},
	{"a tenth of the pods is replaced each minute for a day, and nodes fail and vanish each hour (in accelerated time, without manager and watches)", "Heap, goroutines and open files do not grow; nothing of pods that are gone is kept.", "`test/situations` TestSoak"},
	{"the same for 45 min in the whole program, at fifteen times the usual pace: each pod is replaced every minute, nodes hang, are down, vanish and answer with noise, and the API server goes away and comes back", "No wrong number. Live heap, resident memory, goroutines and open files do not grow.", "`test/faults` TestSoak"},
	{"every other fault of a pod, container or node that the simulator knows", "Each absence has its reason.", "`test/situations` TestSituations"},
	{"the same in a real cluster: kubelet or container runtime ended or paused, rights withdrawn, nodes without address", "Each absence has its reason.", "`test/apis` TestEveryAbsenceHasItsCause"},
	{"restarts, duplicates, clocks, missing lines, late API servers, at random", "No wrong number that could be known to be wrong; see [exactness.md](exactness.md).", "`test/exact` TestServedRatesAreTheTruth, TestCausesOfWrongNumbers"},
	{"one of two replicas that share their reads is killed", "No LIST lacks a pod or is older than two intervals.", "`test/local` TestSharedReads"},
	{"the leader is killed in an autoscaler's stabilization window, in a real cluster", "The other replica takes over within the Lease and 8 s, and scales when the window is over.", "`test/apis` TestLeaderKilled"},
	{"the receiver of remote write is killed", "It has every sample when it is back.", "`test/local` TestOutage"},
	{"weir is killed twice while the receiver of remote write is away, with the option [`wal`](prometheus.md#if-weir-is-killed)", "When both are back, the receiver has every sample that waited, with its time and value.", "`test/local` TestKilledTwice"},
	{"the disk of the write-ahead log of remote write or OTLP is full, or its files are torn", "Samples wait in memory, and are counted. No other request is lost.", "`sinks/push` TestFullDisk, TestWALThatCannotBeWritten, TestDamagedWAL"},
	{"the API server of two replicas hangs, swallows what is sent, or cuts connections, for one of them or both (shortened Lease)", "A request for the Lease waits at most half of the time in which a leader renews. The other replica leads within twice the Lease and the time in which a leader renews. After the outage one leads within the Lease and that time.", "`api/replicas/leader` TestOutage, `api/replicas` TestRequestsForTheLeaseEnd"},
	{"the API server hangs when weir starts", "weir waits half a minute, and then ends with an error, so that Kubernetes starts it again.", "`api/server` TestAPIServerHangsAtTheStart"},
	{"weir restarts while the readings of a kubelet stand still", "A first reading that is older than the hold is Stale at once, for CPU and memory.", "`processors/rate` TestTranscripts (old_at_start.txt)"},
	{"one namespace is filled with Events of 1.5 MB (component `events`)", "A page has at most 4 MiB, an Event takes at most a few kilobytes, and other namespaces keep theirs.", "`cluster/eventlog` TestLongEventsAreReadInSmallPages, TestMemoryOfLongEvents, TestFloodStaysInItsNamespace"},
	{"an Event has times that cannot be, such as the year 10000", "It gets the time when it arrived, and ages. An answer that cannot be encoded has an error's status.", "`cluster/eventlog` TestImpossibleTimes, `api/weirdev` TestAnswerEncodesBeforeTheStatus"},
	{"the account that reads kubelets is deleted and made again", "When two kubelets refuse its token, weir asks for another, at most every 30 s. One node that refuses every token changes nothing for the others.", "`cluster/accounttoken` TestRefusedTokenIsReplaced, TestOneNodeRefusesEveryToken"},
	{"the API server is away from replicas that send by remote write or OTLP", "The last leader goes on to send, and no replica acts.", "`cmd/app` TestLastLeaderSends"},
	{"weir is ended while a round is on its way to remote write or OTLP", "The round is sent, or in the write-ahead log.", "`cmd/app` TestLastRoundIsKept"},
	{"an account without rights stalls hundreds of requests", "Other callers and health checks are answered.", "`api/server` TestStalledCallers"},
	{"made-up tokens, huge bodies, headers and queries, slow readers and writers", "They are refused or cut off, and others are answered.", "`api/server` TestMadeUpTokens, TestHugeBodies, TestManyHeaderLines, TestHugeQuery, TestSlowReader, TestSlowloris"},
	{"the kernel kills a thousand times a minute on a node, and logs a million lines", "The agent finds and names the kills of quiet pods within two seconds, and reads the log at a bounded rate.", "`sources/host/oomkill` TestFloodOfKills, TestLogFlood, TestEndlessLog"},
	{"a container makes a thousand cgroups and has processes killed in them; pods come, are killed and go", "Reading the counters of kills costs the same, and nothing of pods that are gone is kept.", "`sources/host/oomkill` TestBombInAPod"},
	{"the file of a recording is damaged or ends early", "It is set aside, and nothing in it before the damage is lost.", "`sinks/recorder` TestADamagedFileIsSetAside, TestAPartOfAHeaderIsWrittenOver"},
}

// Page returns docs/reliability.md. results is the content of testdata/results.json.
func Page(results []byte) (string, error) {
	found := map[string]Result{}
	if err := json.Unmarshal(results, &found); err != nil {
		return "", fmt.Errorf("read the results of test/faults: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# What happens when something breaks

Written by `+"`make generate`"+` from `+"`test/faults`"+`; do not edit. Each row is a test that injects the fault and checks the promise. The other columns have the figures
of its last recorded run: the real weir program reads simulated kubelets every %d s, and all its numbers of CPU usage are compared with the simulator's truth twice a second.
The machine had two cores and other work, which makes numbers older and answers slower.

- right: the number is the container's true rate over the window that weir names;
- last known: right, and of an earlier read, with the time of that read;
- absent: weir serves no number, and says why;
- wrong: a number that is not the true rate.

weir serves the last known value of a node that cannot be read for three intervals and at least a minute (`+"`test/faults`"+` TestNodes). This is the hold.

The last column has the same figures of metrics-server v0.9.0, to which the same is done. It reads the same kubelets through the same API server, with the flags of its
own manifest, so every %d s. It serves times in whole seconds: a number of it counts as wrong only if it is not the true rate of any window that these times allow. A dash: not recorded.
It is asked over HTTPS, so its requests fail while the API server cannot authenticate the caller. weir is asked at its local port, which needs no API server.

| fault | promised and checked | served meanwhile | lost | how it ended | metrics-server |
| --- | --- | --- | --- | --- | --- |
`, Resolution, PeerResolution)
	for _, r := range Rows {
		f, ok := found[r.Test]
		if !ok {
			return "", fmt.Errorf("there is no result of %s: run go test -tags e2e ./test/faults -args -long -write", r.Test)
		}
		delete(found, r.Test)
		fmt.Fprintf(&b, "| %s | %s (`test/faults` Test%s) | %s | %s | %s | %s |\n", r.Fault, r.Promise, r.Test, f.Served, f.Lost, f.Ended, cmp.Or(f.Peer, "–"))
	}
	for test := range found {
		return "", fmt.Errorf("testdata/results.json has a result of %s, which no row names: delete it", test)
	}
	b.WriteString("\n## Shown by other tests\n\n| fault | promised and checked | test |\n| --- | --- | --- |\n")
	for _, e := range Elsewhere {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", e.Fault, e.Promise, e.Test)
	}
	return b.String(), nil
}
