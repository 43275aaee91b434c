package simulator

import (
	"fmt"
	"time"
)

// Options describe a Fleet.
type Options struct {
	// Nodes, Pods and Containers are the numbers of nodes, of pods on each node
	// and of containers in each pod. Default 1, 30 and 2.
	Nodes, Pods, Containers int
	// Cores is the number of cores of each node. Default 8. All containers together
	// never use more than four fifths of them, whatever Pods and Containers are.
	Cores int
	// Seed chooses names, IDs and every counter.
	Seed uint64
	// Start is the moment that the faults' times are relative to. Pods are
	// older: they started in the three days before. Required.
	Start time.Time
	// Fresh makes every sample as old as the request, as a kubelet with statistics
	// from the container runtime does. Otherwise samples are up to 15 s old.
	Fresh bool
	// NamesAreAddresses names each node by its address, 127.1.0.1, instead of
	// node-0001.
	NamesAreAddresses bool
	// Churn is the fraction of the pods that is replaced each minute, from 0 to 1.
	Churn float64
	// Faults are applied at their times. See Parse.
	Faults []Fault
}

// maxNodes is the number of addresses between 127.1.0.1 and 127.255.255.254.
const maxNodes = 0xfe_ffff - 1

func (o Options) withDefaults() (Options, error) {
	for _, d := range []struct {
		name  string
		value *int
		std   int
		most  int
	}{
		{"nodes", &o.Nodes, 1, maxNodes},
		{"pods", &o.Pods, 30, 10_000},
		{"containers", &o.Containers, 2, 1000},
		{"cores", &o.Cores, 8, 1024},
	} {
		if *d.value == 0 {
			*d.value = d.std
		}
		if *d.value < 0 || *d.value > d.most {
			return o, fmt.Errorf("%s is %d: want 1 to %d", d.name, *d.value, d.most)
		}
	}
	if !(o.Churn >= 0 && o.Churn <= 1) {
		return o, fmt.Errorf("churn is %g: want 0 to 1, the share of pods that is replaced in a minute", o.Churn)
	}
	if o.Start.IsZero() {
		return o, fmt.Errorf("start is not set: faults and truth are relative to it")
	}
	return o, nil
}
