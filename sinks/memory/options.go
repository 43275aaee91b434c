package memory

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Options say how much is stored. The zero Options means the defaults.
type Options struct {
	// History is how far back the history reaches. Default 15 minutes; negative means no
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
	}
}

// maxHistoryMetrics is the number of bits in the mask of a history row.
const maxHistoryMetrics = 64

func (o Options) withDefaults() Options {
	if o.History == 0 {
		o.History = 15 * time.Minute
	}
	if o.HistoryMetrics == nil {
		o.HistoryMetrics = DefaultHistoryMetrics()
	}
	// In the catalogue's order, which is by group: values with the same time are then adjacent.
	o.HistoryMetrics = slices.Compact(slices.Sorted(slices.Values(o.HistoryMetrics)))
	o.HistoryMetrics = o.HistoryMetrics[:min(len(o.HistoryMetrics), maxHistoryMetrics)]
	if o.History < 0 {
		o.HistoryMetrics = nil
	}
	if o.MaxEntities <= 0 {
		o.MaxEntities = 1 << 20
	}
	return o
}

// optionNames are the options of ParseOptions.
var optionNames = []string{"entities", "history", "metrics", "prefer"}

// ParseOptions parses the text after "memory:" in --sink=memory:[?OPTIONS], for instance
// "?history=15m&metrics=cpu/usage_rate,memory/rss". Lists are separated by commas.
// Metrics have Heapster's names, or Prometheus' without the prefix. history=0 keeps no history.
func ParseOptions(spec string) (Options, error) {
	var o Options
	config, query, _ := strings.Cut(spec, "?")
	if config != "" {
		return o, fmt.Errorf("sink memory takes no configuration, got %q: write memory:?history=15m", config)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return o, fmt.Errorf("parse options of sink memory: %w", err)
	}
	for name, given := range values {
		value := given[len(given)-1]
		switch name {
		case "history":
			switch o.History, err = time.ParseDuration(value); {
			case err == nil && o.History < 0:
				err = errors.New("must not be negative; 0 keeps none")
			case o.History == 0:
				o.History = -1
			}
		case "entities":
			o.MaxEntities, err = parsePositive(value)
		case "prefer":
			o.Preference = strings.Split(value, ",")
		case "metrics":
			o.HistoryMetrics, err = parseMetrics(value)
		default:
			return o, fmt.Errorf("sink memory has no option %q: it has %s", name, strings.Join(optionNames, ", "))
		}
		if err != nil {
			return o, fmt.Errorf("parse option %s of sink memory: %w", name, err)
		}
	}
	return o, nil
}

func parsePositive(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%d is not above 0", n)
	}
	return n, err
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

// OptionsHelp describes the options of ParseOptions.
func OptionsHelp() string {
	return `  entities              most to remember (default 1048576)
  history               how far back, such as 15m (default); 0 keeps none
  metrics               that have a history, separated by commas
  prefer                sources whose values go first, separated by commas`
}
