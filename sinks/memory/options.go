package memory

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/internal/options"
	"github.com/weir-metrics/weir/metric"
)

// Options describe how much is stored. The zero Options means the defaults.
type Options struct {
	// History is how far back the history reaches. Default metric.DefaultHistory; negative means no
	// history.
	History time.Duration
	// HistoryMetrics are the metrics that have a history, at most 64. Default:
	// DefaultHistoryMetrics.
	HistoryMetrics []metric.ID
	// MaxEntities is the largest number of entities (parts included) that are kept, over all
	// sources. Surplus ones are dropped, counted and named in an OverLimit verdict of their
	// node. Default 1,048,576.
	MaxEntities int
	// Preference lists sources ("kubelet:resource"), best first, for entities that several of
	// them report. Sources that are not listed come after those that are: first the one with
	// the finer clock, then the shorter interval, then by name.
	Preference []string
}

// DefaultHistoryMetrics returns the metrics that have a history by default.
func DefaultHistoryMetrics() []metric.ID {
	return []metric.ID{
		metric.CPUUsageRate,
		metric.MemoryUsage, metric.MemoryWorkingSet, metric.MemoryRSS,
		metric.NetworkRxRate, metric.NetworkTxRate,
		metric.FilesystemUsage, metric.EphemeralStorageUsage,
		// What shows why a pod is slow, where the source reports it.
		metric.CPUThrottledRate, metric.CPUPressureSomeRate, metric.CPUPressureFullRate,
		metric.MemoryMajorPageFaultsRate, metric.MemoryPressureSomeRate, metric.MemoryPressureFullRate,
		metric.DiskReadBytesRate, metric.DiskWriteBytesRate, metric.IOPressureSomeRate, metric.IOPressureFullRate,
	}
}

// maxHistoryMetrics is the number of bits in the mask of a history row.
const maxHistoryMetrics = 64

func (o Options) withDefaults() Options {
	o.History = cmp.Or(o.History, metric.DefaultHistory)
	if o.HistoryMetrics == nil {
		o.HistoryMetrics = DefaultHistoryMetrics()
	}
	// In the catalogue's order, which is by group: values with the same time are then adjacent.
	o.HistoryMetrics = slices.Compact(slices.Sorted(slices.Values(o.HistoryMetrics)))
	o.HistoryMetrics = o.HistoryMetrics[:min(len(o.HistoryMetrics), maxHistoryMetrics)]
	if o.History < 0 {
		o.HistoryMetrics = nil
	}
	o.MaxEntities = cmp.Or(max(o.MaxEntities, 0), 1<<20)
	return o
}

// Remembered returns how far back the history reaches, which is negative for none, and its metrics.
func (o Options) Remembered() (time.Duration, []metric.ID) {
	o = o.withDefaults()
	return o.History, o.HistoryMetrics
}

// Table has the options of --sink=memory.
var Table = options.Table[Options]{
	options.Field("entities", "most to remember (default 1048576)", func(o *Options) *int { return &o.MaxEntities }, options.Positive),
	{Name: "history", Help: "how far back, such as 15m (default); 0 keeps none", Set: func(o *Options, v string) (err error) {
		switch o.History, err = time.ParseDuration(v); {
		case err == nil && o.History < 0:
			err = errors.New("must not be negative; 0 keeps none")
		case o.History == 0:
			o.History = -1
		}
		return err
	}},
	options.Field("metrics", "that have a history, separated by commas", func(o *Options) *[]metric.ID { return &o.HistoryMetrics }, parseMetrics),
	{Name: "prefer", Help: "sources whose values go first, separated by commas", Set: func(o *Options, v string) error {
		o.Preference = strings.Split(v, ",")
		return nil
	}},
}

// ParseOptions parses --sink=memory:[?OPTIONS]. Metrics have Heapster's names, or Prometheus' without
// the prefix. history=0 keeps no history.
func ParseOptions(config string, query url.Values) (o Options, err error) {
	if err := options.NoConfig(config, "memory:?history=15m"); err != nil {
		return o, err
	}
	return o, Table.Parse(&o, query)
}

func parseMetrics(list string) ([]metric.ID, error) {
	ids := []metric.ID{}
	for name := range strings.SplitSeq(list, ",") {
		id, ok := metric.ByName(name)
		if !ok {
			return nil, fmt.Errorf("no metric is called %q: docs/metrics.md lists them", name)
		}
		ids = append(ids, id)
	}
	if len(ids) > maxHistoryMetrics {
		return nil, fmt.Errorf("%d metrics, at most %d can have a history", len(ids), maxHistoryMetrics)
	}
	return ids, nil
}
