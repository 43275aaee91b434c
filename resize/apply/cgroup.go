package apply

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/resize"
)

// Cgroup is a cgroup of a pod or of one of its containers, as the node reports it. A value that is
// not known is nil.
type Cgroup struct {
	Path string `json:"path"`
	// Container is the name of the container; empty for the cgroup of the pod itself or of a sandbox.
	Container string `json:"container,omitempty"`
	Pod       bool   `json:"pod,omitempty"` // whether it is the cgroup of the pod itself
	// Shares is cpu.shares of cgroup version 1, Weight is cpu.weight of version 2.
	Shares *int64 `json:"shares,omitempty"`
	Weight *int64 `json:"weight,omitempty"`
	// Quota is the CPU time that is allowed in each Period, in microseconds; negative if there is no
	// limit.
	Quota  *int64 `json:"quotaMicroseconds,omitempty"`
	Period *int64 `json:"periodMicroseconds,omitempty"`
	// MemoryLimit is in bytes; negative if there is no limit.
	MemoryLimit *int64 `json:"memoryLimitBytes,omitempty"`
}

// CgroupCheck is the result of checking the pod's cgroups.
type CgroupCheck struct {
	// Checked reports that the node's answer had values to compare.
	Checked bool     `json:"checked"`
	Found   []Cgroup `json:"found,omitempty"`
	// Problems describe wrong values. UncheckedReason is why nothing was checked.
	Problems        []string `json:"problems,omitempty"`
	UncheckedReason string   `json:"uncheckedReason,omitempty"`
}

// checkCgroups compares the node's cgroups with the expected values of the pod's containers. A
// memory request does not set a value in a cgroup.
func checkCgroups(found []Cgroup, after *resize.PodResources, changes []resize.ResourceChange) *CgroupCheck {
	c := &CgroupCheck{Found: found}
	pods := 0
	for i := range found {
		if found[i].Pod {
			pods++
		}
	}
	switch {
	case pods == 0:
		c.UncheckedReason = "the node's agent knows no cgroup of this pod"
		return c
	case pods > 1:
		c.Problems = append(c.Problems, fmt.Sprintf("the pod has %d cgroups of its own: one of them was left behind (`weir inspect cgroups` on the node shows more)", pods))
	}
	for _, change := range changes {
		c.checkChange(after, change)
	}
	if !c.Checked && c.UncheckedReason == "" {
		c.UncheckedReason = "none of the cgroup values that the agent reports shows this change"
	}
	return c
}

// checkChange compares the cgroup of one change.
func (c *CgroupCheck) checkChange(after *resize.PodResources, change resize.ResourceChange) {
	ofPod := change.Container == ""
	i := slices.IndexFunc(c.Found, func(g Cgroup) bool { return g.Pod == ofPod && g.Container == change.Container })
	container := after.Container(change.Container)
	switch {
	case i < 0 && container != nil && !container.Running:
		c.UncheckedReason = "container " + change.Container + " does not run"
		return
	case i < 0: // the agent may not have found the container yet
		c.UncheckedReason = "the node's agent does not know which cgroup is that of container " + change.Container
		return
	case ofPod:
		container = &resize.ContainerResources{Requests: after.PodLevel.Requests.Plus(after.Overhead), Limits: after.PodLevel.Limits.Plus(after.Overhead)}
	}
	for _, v := range expectedValues(&c.Found[i], container, change) {
		if v.set == nil {
			continue
		}
		c.Checked = true
		if !slices.Contains(v.want, *v.set) {
			var want []string
			for _, n := range slices.Compact(v.want) {
				want = append(want, strconv.FormatInt(n, 10))
			}
			c.Problems = append(c.Problems, fmt.Sprintf("%s of %s is %d, and should be %s", v.name, c.Found[i].Path, *v.set, humanize.Or(want)))
		}
	}
}

type cgroupValue struct {
	name string
	set  *int64
	want []int64 // one of them
}

// expectedValues returns the values that a change sets in the cgroup of a container or pod, computed as
// kubelets and runtimes do.
func expectedValues(g *Cgroup, c *resize.ContainerResources, change resize.ResourceChange) []cgroupValue {
	request, limit := c.Requests.Get(change.Resource), c.Limits.Get(change.Resource)
	if change.Resource == resize.Memory {
		if !limit.Set {
			return nil
		}
		return []cgroupValue{{"the memory limit", g.MemoryLimit, memoryLimits(limit.Value)}}
	}
	shares := max(2, request.Value*1024/1000)
	list := []cgroupValue{{"cpu.shares", g.Shares, []int64{shares}}, {"cpu.weight", g.Weight, weights(shares)}}
	if limit.Set && g.Period != nil && g.Quota != nil && *g.Quota >= 0 {
		// A kubelet sets no quota below 1 ms, no quota for a limit of zero, and none at all with cpuCFSQuota: false.
		list = append(list, cgroupValue{"the CPU quota", g.Quota, []int64{max(1000, limit.Value**g.Period/1000)}})
	}
	return list
}

// memoryLimits returns the values that a memory limit has in a cgroup: the kernel rounds it down to whole
// pages, of 4, 16 or 64 KiB.
func memoryLimits(limit int64) []int64 {
	return []int64{limit, limit &^ (4<<10 - 1), limit &^ (16<<10 - 1), limit &^ (64<<10 - 1)}
}

// weights returns the values of cpu.weight (1 to 10,000) that runtimes set for cpu.shares (2 to 262,144).
// The first formula is linear (runc before 1.3.2, crun before 1.23). The second one is of the form
// 10^(a·l² + b·l + c), with l = log2(shares), and gives 100 for 1,024 shares (opencontainers/cgroups,
// ConvertCPUSharesToCgroupV2Value).
func weights(shares int64) []int64 {
	shares = min(shares, 262144)
	l := math.Log2(float64(shares))
	return []int64{1 + (shares-2)*9999/262142, int64(math.Ceil(math.Pow(10, (l*l+125*l)/612-7.0/34)))}
}
