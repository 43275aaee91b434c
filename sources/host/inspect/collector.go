package inspect

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// collectInterval is the maximum age of a report. A CgroupCollector does not inspect the machine
// more often.
const collectInterval = time.Minute

// CgroupCollector is a Prometheus collector of the leftover cgroups on this machine. It inspects
// the machine in Collect, and starts no goroutine.
type CgroupCollector struct {
	inspector *Inspector
	pods      func() *Pods
	now       func() time.Time
	mu        struct {
		sync.Mutex
		at     time.Time // when report was made
		report *Report   // nil if the machine could not be read
	}
}

// NewCollector returns a CgroupCollector. pods returns the pods of this node, or nil if there is no
// list of them. It is called after i has read the cgroups.
func NewCollector(i *Inspector, pods func() *Pods) *CgroupCollector {
	return &CgroupCollector{inspector: i, pods: pods, now: time.Now}
}

var (
	leftoverDesc = prometheus.NewDesc("weir_leftover_cgroups",
		"Cgroups of pods and containers on this node that should no longer be there, by level (pod, container) and judgement.",
		[]string{"level", "judgement"}, nil)
	processesDesc = prometheus.NewDesc("weir_leftover_cgroup_processes",
		"Processes in pods' cgroups on this node that should no longer be there.", nil, nil)
	oldestDesc = prometheus.NewDesc("weir_leftover_cgroup_oldest_seconds",
		"Age of the oldest pod's cgroup on this node that should no longer be there; absent if there is none.", nil, nil)
	podsDesc = prometheus.NewDesc("weir_pod_cgroups",
		"Cgroups of pods on this node, by judgement.", []string{"judgement"}, nil)
	problemsDesc = prometheus.NewDesc("weir_pod_cgroup_problems",
		"Problems of the last inspection of pods' cgroups: what could not be read, or a list of pods that seems to be of another node.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *CgroupCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range [...]*prometheus.Desc{leftoverDesc, processesDesc, oldestDesc, podsDesc, problemsDesc} {
		to <- d
	}
}

// Collect inspects the machine if the last report is too old, and sends the metrics.
func (c *CgroupCollector) Collect(to chan<- prometheus.Metric) {
	r := c.latest()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if r == nil {
		gauge(problemsDesc, 1)
		return
	}
	gauge(problemsDesc, float64(len(r.Problems)))
	pods, containers := map[Judgement]int{}, map[Judgement]int{}
	processes := 0
	var oldest time.Time
	for i := range r.Pods {
		p := &r.Pods[i]
		if p.Driver != "" { // otherwise it is a container's cgroup outside of its pod's
			pods[p.Judgement]++
		}
		for k := range p.Containers {
			containers[p.Containers[k].Judgement]++
		}
		if !p.Judgement.Leftover() {
			continue
		}
		processes += p.Processes
		if oldest.IsZero() || !p.Since.IsZero() && p.Since.Before(oldest) {
			oldest = p.Since
		}
	}
	for _, j := range Judgements() {
		if j != OldContainer { // only containers can be old
			gauge(podsDesc, float64(pods[j]), string(j))
		}
		if j.Leftover() {
			if j != OldContainer {
				gauge(leftoverDesc, float64(pods[j]), "pod", string(j))
			}
			gauge(leftoverDesc, float64(containers[j]), "container", string(j))
		}
	}
	gauge(processesDesc, float64(processes))
	if !oldest.IsZero() {
		gauge(oldestDesc, r.Time.Sub(oldest).Seconds())
	}
}

// latest returns a report no older than collectInterval, or nil if the machine cannot be read.
func (c *CgroupCollector) latest() *Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if !c.mu.at.IsZero() && now.Sub(c.mu.at) < collectInterval {
		return c.mu.report
	}
	c.mu.at, c.mu.report = now, nil
	if tree, err := c.inspector.Read(); err == nil {
		c.mu.report = Judge(tree, c.pods(), now)
	}
	return c.mu.report
}
