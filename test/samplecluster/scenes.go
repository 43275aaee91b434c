package samplecluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Certificate returns the error of a read from a kubelet with an unknown
// certificate.
func Certificate(time.Time) error {
	return &metric.ReadError{Reason: metric.NodeCertificate, Err: errors.New("tls: failed to verify certificate: x509: certificate signed by unknown authority")}
}

// late returns the error of a read that takes too long.
func late(host string) error {
	return &url.Error{Op: "Get", URL: "https://" + host + ":10250/metrics/cadvisor", Err: context.DeadlineExceeded}
}

// Failing returns a cluster with nearly every kind of failure.
func Failing(t testing.TB) *Cluster {
	w := New(t)
	n1 := w.Node("n1", 4, 16).Itself(1.1, 6)
	n2 := w.Node("n2", 8, 32).Itself(7.4, 21)
	n2.reports[0].swing = 0.03
	n3 := w.Node("n3", 4, 16).Itself(0.8, 4)
	n4 := w.Node("n4", 4, 16)
	n5 := w.Node("arm-1", 4, 8)
	n6 := w.Node("n6", 4, 16).Itself(0.2, 2)

	n1.System("kubelet", 0.04, 90)
	n1.System("runtime", 0.02, 60)
	n1.System("pods", 0.9, 4000)
	n1.Container("shop", "web-1", "app", 0.31, 180)
	n1.Container("shop", "web-1", "proxy", 0.02, 24)
	n1.Container("shop", "cart-0", "cart", 0.12, 90)
	n1.Container("kube-system", "kube-proxy-n1", "kube-proxy", 0.003, 18)
	// Two reports of one container; the older run still has a cgroup.
	old := n1.Container("shop", "web-1", "app", 0, 40)
	old.instance.ID = "01d" + id("shop", "web-1", "old")[3:]
	old.instance.Path = "/kubepods/besteffort/pod" + metric.CgroupPath(old.instance.UID) + "/" + metric.CgroupPath(old.instance.ID)
	// Two that cannot be distinguished.
	for _, cores := range []float64{0.05, 0.03} {
		vault := n1.Container("bank", "vault-0", "vault", cores, 70)
		vault.instance.ID, vault.instance.Path, vault.instance.UID = "", "", ""
		vault.instance.Start, vault.instance.Origin = 0, metric.StartUnknown
	}
	n2.Container("batch", "import-7g2k8", "import", 6.8, 14000).swing = 0.02
	n2.Container("shop", "web-2", "app", 0.28, 171)
	n2.Container("shop", "web-3", "app", 0.02, 150).from = Noon.Add(-8 * time.Second)
	n3.Container("shop", "web-4", "app", 0.2, 160)
	n3.Container("shop", "cart-1", "cart", 0.1, 88)
	n6.Container("shop", "web-5", "app", 0.22, 166)

	n2.Fails = func(at time.Time) error {
		if at.After(Noon.Add(-11*time.Minute)) && at.Before(Noon.Add(-7*time.Minute)) {
			return &metric.ReadError{Reason: metric.NodeTimeout, Err: late("192.0.2.2")}
		}
		return nil
	}
	n3.Fails = func(at time.Time) error {
		if at.After(Noon.Add(-4 * time.Minute)) {
			return &metric.ReadError{Reason: metric.NodeTimeout, Err: late("192.0.2.3")}
		}
		return nil
	}
	n4.Fails = Certificate
	n5.leftOut = &metric.ReadError{Reason: metric.NodeExcluded, Err: errors.New(`its labels do not match the node selector "kubernetes.io/arch=amd64"`)}
	n6.Fails = func(at time.Time) error {
		if at.After(Noon.Add(-20 * time.Second)) {
			return &metric.ReadError{Reason: metric.NodeUnreachable, Err: errors.New("dial tcp 192.0.2.6:10250: connect: connection refused")}
		}
		return nil
	}

	crash := PodFacts("n1", "shop", "mailer-6f9c", "mailer")
	crash.Containers[0].State, crash.Containers[0].Restarts = cluster.StateWaiting, 17
	crash.Containers[0].Previous = cluster.PreviousRun{EndedAt: Noon.Add(-3 * time.Minute), StateReason: "CrashLoopBackOff"}.OrNil()
	partial := PodFacts("n1", "shop", "cart-0", "cart", "feeder")
	partial.Containers[1].State, partial.Containers[1].Restarts = cluster.StateWaiting, 4
	partial.Containers[1].Previous = cluster.PreviousRun{EndedAt: Noon.Add(-time.Minute), StateReason: "CrashLoopBackOff", EndReason: "OOMKilled", ExitCode: 137}.OrNil()
	young := PodFacts("n2", "shop", "web-3", "app")
	young.Started, young.KnownAt = Noon.Add(-9*time.Second), Noon.Add(-10*time.Second)
	young.Containers[0].StartedAt = Noon.Add(-8 * time.Second)
	waiting := PodFacts("", "batch", "import-x9x9x", "import")
	waiting.Phase, waiting.Containers[0].State, waiting.Started = cluster.Pending, cluster.StateUnknown, time.Time{}
	done := PodFacts("n1", "batch", "import-aaaaa", "import")
	done.Phase, done.Containers[0].State = cluster.Succeeded, cluster.StateTerminated
	done.Containers[0].Previous = cluster.PreviousRun{EndedAt: Noon.Add(-time.Hour), StateReason: "Completed"}.OrNil()
	pods := []*cluster.Pod{
		PodFacts("n1", "shop", "web-1", "app", "proxy"), partial, PodFacts("n1", "kube-system", "kube-proxy-n1", "kube-proxy"),
		PodFacts("n1", "bank", "vault-0", "vault"), PodFacts("n2", "batch", "import-7g2k8", "import"), PodFacts("n2", "shop", "web-2", "app"), young, crash,
		PodFacts("n3", "shop", "web-4", "app"), PodFacts("n3", "shop", "cart-1", "cart"), PodFacts("n4", "shop", "web-6", "app"),
		PodFacts("n4", "bank", "ledger-0", "ledger", "backup"), PodFacts("arm-1", "shop", "arm-0", "app"), PodFacts("n6", "shop", "web-5", "app"), waiting, done,
	}
	for _, p := range pods {
		for i := range p.Containers {
			if c := &p.Containers[i]; p.Name == "import-7g2k8" {
				c.Spec.Set(metric.CPULimit, 7e9)
				c.Spec.Set(metric.MemoryLimit, 16<<30)
			}
		}
	}
	w.Knows(cluster.FactsChange{
		Nodes: []*cluster.Node{n1.Facts(true), n2.Facts(true), n3.Facts(true), n4.Facts(true), n5.Facts(true), n6.Facts(false)},
		Pods:  pods,
	})
	w.scaled = map[metric.PodRef][]string{}
	for _, p := range pods {
		if p.Namespace == "shop" && len(p.Name) == 5 {
			w.scaled[p.PodRef] = []string{"shop/web"}
		}
	}
	return w.Run()
}

// Healthy returns a cluster without failures.
func Healthy(t testing.TB) *Cluster {
	w := New(t)
	var c cluster.FactsChange
	for i := range 3 {
		name := fmt.Sprintf("n%d", i+1)
		n := w.Node(name, 4, 16).Itself(0.6+float64(i)/2, 3+2*float64(i))
		c.Nodes = append(c.Nodes, n.Facts(true))
		for _, pod := range []string{"web", "cart", "mail"} {
			pod = fmt.Sprintf("%s-%d", pod, i)
			n.Container("shop", pod, "app", 0.1+float64(i)/10, 80)
			c.Pods = append(c.Pods, PodFacts(name, "shop", pod, "app"))
		}
	}
	w.Knows(c)
	return w.Run()
}

// SingleMachine returns one machine without a cluster, as weir run measures it.
func SingleMachine(t testing.TB) *Cluster {
	w := New(t)
	n := w.Node("workbench", 8, 32)
	n.source, n.interval, n.Alone, n.exhausts = "host", 5*time.Second, true, true
	n.Itself(1.9, 7)
	n.System("/", 1.9, 7000)
	for path, use := range map[string][2]float64{
		"/system.slice": {0.7, 900}, "/system.slice/postgresql.service": {0.5, 610}, "/system.slice/sshd.service": {0.001, 7},
		"/system.slice/cron.service": {0, 2}, "/user.slice": {1.1, 5800}, "/user.slice/user-1000.slice": {1.1, 5800},
		"/user.slice/user-1000.slice/user@1000.service": {0.2, 900}, "/user.slice/user-1000.slice/session-3.scope": {0.9, 4900},
		"/init.scope": {0.002, 9}, "/batch": {0.1, 300}, "/batch/import": {0.1, 300},
	} {
		n.System(path, use[0], use[1])
	}
	n.System("/batch/blind", 0, 12).noCPU = true
	return w.Run()
}

// Large returns a cluster of many nodes with thirty pods each, in twenty
// namespaces. One node in fifty fails. Only the last three rounds are measured.
func Large(t testing.TB, nodes int) *Cluster {
	w := New(t)
	w.began = Noon.Add(-3 * round)
	var c cluster.FactsChange
	for i := range nodes {
		name := fmt.Sprintf("node-%04d", i)
		n := w.Node(name, 16, 64).Itself(4+float64(i%10), 30)
		c.Nodes = append(c.Nodes, n.Facts(true))
		if i%50 == 7 {
			n.Fails = Certificate
		}
		for j := range 30 {
			namespace, pod := fmt.Sprintf("team-%02d", j%20), fmt.Sprintf("app-%04d-%02d-7c5ddbdf54-x2x4z", i, j)
			n.Container(namespace, pod, "app", 0.1, 80)
			n.Container(namespace, pod, "proxy", 0.01, 20)
			c.Pods = append(c.Pods, PodFacts(name, namespace, pod, "app", "proxy"))
		}
	}
	w.Knows(c)
	return w.Run()
}
