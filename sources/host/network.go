//go:build linux

package host

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/container/libcontainer"
	"github.com/google/cadvisor/lib/model"
	"github.com/opencontainers/cgroups"

	"github.com/weir-metrics/weir/metric"
)

// traffic has the counters of the interfaces in a network namespace.
type traffic struct {
	at         time.Time
	interfaces []model.InterfaceStats
	// route is the interface of the default route; empty if there is none.
	route string
}

// noCgroup is a cgroup manager without a cgroup. With it, cAdvisor's handler reads only the network
// of a process.
type noCgroup struct{ cgroups.Manager }

func (noCgroup) GetStats() (*cgroups.Stats, error) { return cgroups.NewStats(), nil }
func (noCgroup) Path(string) string                { return "" }

// readTraffic reads the network namespace of a process through cAdvisor, which omits loopback,
// veth, docker and nerdctl interfaces.
func readTraffic(rootFS string, pid int) (traffic, error) {
	handler := libcontainer.NewHandler(noCgroup{}, rootFS, pid, container.MetricSet{container.NetworkUsageMetrics: {}})
	before := time.Now()
	st, err := handler.GetStats()
	t := traffic{at: before.Add(time.Since(before) / 2)}
	if err != nil {
		return t, fmt.Errorf("read network of process %d: %w", pid, err)
	}
	net := path.Join(rootFS, "proc", strconv.Itoa(pid), "net")
	if t.interfaces = st.Network.Interfaces; len(t.interfaces) == 0 {
		// cAdvisor only logs this error, so it is found with another read.
		if _, err := os.ReadFile(path.Join(net, "dev")); err != nil {
			return t, fmt.Errorf("read network of process %d: %w", pid, err)
		}
	}
	for _, f := range routeFiles {
		if data, err := os.ReadFile(path.Join(net, f.name)); err == nil && t.route == "" {
			t.route = f.defaultRoute(data)
		}
	}
	return t, nil
}

// routeFile is a file with the routes of a network namespace, one on each line.
type routeFile struct {
	name string
	// device, flags and metric are the indexes of these fields. last is the highest index in use.
	device, flags, metric, last int
	metricBase                  int
	isDefault                   func(fields []string) bool
}

var routeFiles = [...]routeFile{
	// Iface Destination Gateway Flags RefCnt Use Metric Mask ...
	{"route", 0, 3, 6, 7, 10, func(f []string) bool { return f[1] == "00000000" && f[7] == "00000000" }},
	// destination length source length next-hop metric refcnt use flags iface
	{"ipv6_route", 9, 8, 5, 9, 16, func(f []string) bool { return strings.Trim(f[0], "0") == "" && f[1] == "00" && f[9] != "lo" }},
}

// defaultRoute returns the interface of the default route with the smallest metric; empty if
// there is none.
func (r *routeFile) defaultRoute(data []byte) string {
	name, best := "", uint64(0)
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) <= r.last || !r.isDefault(f) {
			continue
		}
		flags, err := strconv.ParseUint(f[r.flags], 16, 32)
		m, err2 := strconv.ParseUint(f[r.metric], r.metricBase, 32)
		if err != nil || err2 != nil || flags&routeUp == 0 {
			continue
		}
		if name == "" || m < best {
			name, best = f[r.device], m
		}
	}
	return name
}

const routeUp = 1 // RTF_UP

// total returns the traffic of the whole entity: that of the interface of the default route, or
// else the sum of the physical interfaces. It returns false if there is neither.
func (t *traffic) total(physical func(name string) bool) (model.InterfaceStats, bool) {
	for _, i := range t.interfaces {
		if i.Name == t.route {
			return i, true
		}
	}
	var sum model.InterfaceStats
	found := false
	for _, i := range t.interfaces {
		if physical(i.Name) {
			found = true
			sum.RxBytes += i.RxBytes
			sum.RxErrors += i.RxErrors
			sum.TxBytes += i.TxBytes
			sum.TxErrors += i.TxErrors
		}
	}
	return sum, found
}

// isPhysical reports whether an interface is a device of the hardware or of the hypervisor.
func isPhysical(name string) bool {
	_, err := os.Stat(path.Join("/sys/class/net", path.Base(name), "device"))
	return err == nil
}

// addTraffic sets the network of the sample at index i of b, and adds a part for each
// interface.
func addTraffic(b *metric.Batch, i int, t *traffic, physical func(string) bool) {
	if whole, ok := t.total(physical); ok {
		fillTraffic(&b.Samples[i], &whole, t.at)
	}
	slices.SortFunc(t.interfaces, func(x, y model.InterfaceStats) int { return strings.Compare(x.Name, y.Name) })
	for n := range t.interfaces {
		fillTraffic(addPart(b, i, "interface:"+t.interfaces[n].Name), &t.interfaces[n], t.at)
	}
}

func fillTraffic(s *metric.Sample, i *model.InterfaceStats, at time.Time) {
	setValue(s, metric.NetworkRx, i.RxBytes)
	setValue(s, metric.NetworkRxErrors, i.RxErrors)
	setValue(s, metric.NetworkTx, i.TxBytes)
	setValue(s, metric.NetworkTxErrors, i.TxErrors)
	s.Times[metric.Network] = at.UnixNano()
}

// addPart adds a sample for a part of the entity at index i. The part has the same instance.
func addPart(b *metric.Batch, i int, part string) *metric.Sample {
	e := b.Samples[i].Entity
	e.Part = part
	s := b.Add(e)
	s.Instance = b.Samples[i].Instance
	return s
}
