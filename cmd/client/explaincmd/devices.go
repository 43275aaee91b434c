package explaincmd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/humanize"
)

func (a *asking) devices() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "devices [--node NODE]",
		Aliases: []string{"device"},
		Short:   "Show the devices of a node, and to which containers they are allocated",
		Long: `Show the devices of a node, such as GPUs, and to which containers its kubelet has
allocated them: devices of device plugins, and devices of DRA drivers, which pods get by
a ResourceClaim. --node may be left out if the weir that is asked knows only one node.

A device that is allocated may be idle: only its driver knows how much it is used. The
free devices of a DRA driver are in its ResourceSlices.`,
		Example: a.examples("devices", "devices --node n1", "devices --node n1 -o json"),
	}
	return nodeReport(a, cmd, Asker.Devices, onPage(a.Program, writeDevices), func(d *cluster.NodeDevices) any { return nodeapi.NewNodeDevices(d) })
}

// writeDevices writes the devices: how many there are of each resource, and which of them each container
// has.
func writeDevices(p *page, d *cluster.NodeDevices) {
	allocated, claimed := map[string]map[string]bool{}, map[string]map[string]bool{}
	add := func(set map[string]map[string]bool, name, device string) {
		if set[name] == nil {
			set[name] = map[string]bool{}
		}
		set[name][device] = true
	}
	rows := [][]string{{"POD", "CONTAINER", "RESOURCE OR DRIVER", "CLAIM", "DEVICES"}}
	for _, c := range d.Containers {
		pod := fmt.Sprintf("%s/%s", c.Namespace, c.Pod)
		for _, r := range c.Devices {
			rows = append(rows, []string{pod, c.Container, r.Resource, "-", strings.Join(r.Devices, ",")})
			for _, id := range r.Devices {
				add(allocated, r.Resource, id)
			}
		}
		for _, r := range c.Claimed {
			device := r.Pool + "/" + r.Device
			rows = append(rows, []string{pod, c.Container, r.Driver, r.Claim, device})
			add(claimed, r.Driver, device)
		}
	}
	p.Line(0, humanize.Bold, fmt.Sprintf("%s: %s with devices", d.Node, humanize.Count(len(d.Containers), "container")))
	resources := map[string]int{}
	for _, r := range d.Allocatable {
		resources[r.Resource] = len(r.Devices)
	}
	for resource := range allocated {
		if _, ok := resources[resource]; !ok {
			resources[resource] = 0 // none of its devices is healthy now
		}
	}
	totals := [][]string{{"RESOURCE OR DRIVER", "ALLOCATED", "ALLOCATABLE"}}
	for _, resource := range slices.Sorted(maps.Keys(resources)) {
		totals = append(totals, []string{resource, fmt.Sprint(len(allocated[resource])), fmt.Sprint(resources[resource])})
	}
	for _, driver := range slices.Sorted(maps.Keys(claimed)) {
		totals = append(totals, []string{driver, fmt.Sprint(len(claimed[driver])), "-"})
	}
	for _, table := range [][][]string{totals, rows} {
		if len(table) > 1 {
			p.Gap()
			p.Table(table)
		}
	}
}
