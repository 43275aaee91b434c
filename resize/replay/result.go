package replay

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/internal/trace"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/estimate"
)

// Baseline is the name of the requests that nothing recommends: those in the trace or, of a container
// without one, the highest use of all the trace.
const Baseline = "baseline"

// Result is the scores of a replay.
type Result struct {
	Options Options `json:"-"`
	Rows    []Row   `json:"rows"`
}

// Row is the score of one rule for one resource. Amounts are in cores or bytes. Shares are from 0 to 1.
// The bootstrap draws containers.
type Row struct {
	Resource  resize.Resource `json:"resource"`
	Estimator string          `json:"estimator"`
	// Containers is their number, and Days the time for which they were scored. Requested is the number
	// of containers with a request in the trace.
	Containers int     `json:"containers"`
	Requested  int     `json:"containersWithRequest"`
	Days       float64 `json:"containerDays"`
	// Slack is the share of the requested amount that was not used. SlackMean is the amount, for a
	// container, over time.
	Slack      float64      `json:"slack"`
	SlackRange *trace.Range `json:"slackRange,omitempty"`
	SlackMean  float64      `json:"slackMean"`
	// SlackByDay is the relative slack as Autopilot's paper has it, by container-day: the mean and the
	// percentiles of the shares that were not used, which weigh as long as their day is.
	SlackByDay float64 `json:"slackByDay"`
	SlackP50   float64 `json:"slackP50"`
	SlackP95   float64 `json:"slackP95"`
	// Overrun is the share of the used amount that was above the request, OverrunTime the share of time.
	Overrun      float64      `json:"overrun"`
	OverrunRange *trace.Range `json:"overrunRange,omitempty"`
	OverrunTime  float64      `json:"overrunTime"`
	// Throttled is the share of used CPU above the limit; nil if there is no limit.
	Throttled *float64 `json:"throttled,omitempty"`
	// Kills are OOM kills per container-day, nil for CPU; KilledShare is the share of containers with one.
	Kills       *float64     `json:"oomKillsPerDay,omitempty"`
	KillsRange  *trace.Range `json:"oomKillsPerDayRange,omitempty"`
	KilledShare *float64     `json:"oomKilledContainers,omitempty"`
	// Changes are changes of the request per container-day.
	Changes      float64      `json:"changesPerDay"`
	ChangesRange *trace.Range `json:"changesPerDayRange,omitempty"`
	// Saved is how much less was requested than by the baseline, of all containers, over time.
	Saved      float64 `json:"saved"`
	SavedShare float64 `json:"savedShare"`
}

// add adds the rows of a resource.
func (r *Result) add(resource resize.Resource, scores [][]score, requested int) {
	for n, name := range append([]string{Baseline}, r.Options.Estimators...) {
		if len(scores[n]) == 0 {
			return
		}
		if name == string(estimate.ToolVPA) && resource == resize.Memory && r.Options.VPAPeaks != estimate.VPADefaults().PeakInterval {
			name += " (peaks of " + humanize.Duration(r.Options.VPAPeaks) + ")"
		}
		row := r.row(resource, scores[n])
		row.Estimator, row.Requested = name, requested
		r.Rows = append(r.Rows, row)
	}
}

func (r *Result) row(resource resize.Resource, scores []score) Row {
	all := make([]int, len(scores))
	killed := 0.0
	for i := range all {
		all[i] = i
		if scores[i].kills > 0 {
			killed++
		}
	}
	total := sum(scores, all)
	row := Row{
		Resource: resource, Containers: len(scores), Days: total.containerDays(),
		Slack: share(total.slack, total.requested), SlackMean: share(total.slack, total.seconds),
		Overrun: share(total.overrun, total.used), OverrunTime: share(total.overSeconds, total.seconds),
		Changes: total.perDay(total.changes),
		Saved:   share(total.baseline-total.requested, total.seconds) * float64(len(scores)), SavedShare: share(total.baseline-total.requested, total.baseline),
	}
	row.SlackByDay, row.SlackP50, row.SlackP95 = slackByDay(scores)
	interval := func(statistic func(*score) float64) *trace.Range {
		return trace.Bootstrap(len(scores), r.Options.Resamples, r.Options.Seed, func(drawn []int) float64 {
			s := sum(scores, drawn)
			return statistic(&s)
		})
	}
	row.SlackRange = interval(func(s *score) float64 { return share(s.slack, s.requested) })
	row.OverrunRange = interval(func(s *score) float64 { return share(s.overrun, s.used) })
	row.ChangesRange = interval(func(s *score) float64 { return s.perDay(s.changes) })
	if resource == resize.Memory {
		kills, containers := total.perDay(total.kills), killed/float64(len(scores))
		row.Kills, row.KilledShare = &kills, &containers
		row.KillsRange = interval(func(s *score) float64 { return s.perDay(s.kills) })
	} else if r.Options.CPULimit > 0 {
		throttled := share(total.throttled, total.used)
		row.Throttled = &throttled
	}
	return row
}

// WriteTable writes the result as text.
func (r *Result) WriteTable(w io.Writer) error {
	p := &humanize.Page{}
	for _, resource := range resize.Resources() {
		r.addTable(p, resource)
	}
	o := &r.Options
	p.Line(0, humanize.Plain, fmt.Sprintf("Recommended every %s. The first %s of each series is only observed. A request is at least %s and %s, and shrinks by %s or more.",
		humanize.Duration(o.Interval), humanize.Percent(o.Warmup), resize.FormatAmount(resize.CPU, o.Floors.CPU.Value),
		resize.FormatAmount(resize.Memory, o.Floors.Memory.Value), humanize.Percent(max(o.LeastShrink, resize.MinChange))))
	p.Line(0, humanize.Plain, fmt.Sprintf("Limits: CPU %s, memory %s. In brackets: 95%% intervals over containers, bootstrap with seed %d.", ratio(o.CPULimit), ratio(o.MemoryLimit), o.Seed))
	return p.Print(w)
}

func ratio(limit float64) string {
	switch limit {
	case 0:
		return "none"
	case 1:
		return "as requested"
	}
	return humanize.Decimal(limit, 2) + " × the request"
}

func (r *Result) addTable(p *humanize.Page, resource resize.Resource) {
	last := "OOM KILLS/DAY"
	if resource == resize.CPU {
		last = "THROTTLED"
	}
	table := [][]string{{strings.ToUpper(string(resource)), "SLACK", "BY DAY", "P50", "P95", "OVERRUN", "OF TIME", last, "CHANGES/DAY", "SAVED"}}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Resource != resource {
			continue
		}
		if len(table) == 1 {
			p.Line(0, humanize.Plain, fmt.Sprintf("%s over %.4g container-days. The baseline is the request in the trace for %d, and the highest use for the others.",
				humanize.Count(row.Containers, "container"), row.Days, row.Requested))
		}
		harm := "-"
		if row.Throttled != nil {
			harm = humanize.Percent(*row.Throttled)
		} else if row.Kills != nil {
			harm = bracketed(*row.Kills, row.KillsRange, rate)
		}
		table = append(table, []string{row.Estimator, bracketed(row.Slack, row.SlackRange, humanize.Percent), humanize.Percent(row.SlackByDay), humanize.Percent(row.SlackP50),
			humanize.Percent(row.SlackP95), bracketed(row.Overrun, row.OverrunRange, humanize.Percent), humanize.Percent(row.OverrunTime), harm,
			bracketed(row.Changes, row.ChangesRange, rate), amount(resource, row.Saved) + " (" + humanize.Percent(row.SavedShare) + ")"})
	}
	if len(table) > 1 {
		p.Table(table)
		p.Gap()
	}
}

func rate(v float64) string { return humanize.Decimal(v, 3) }

func bracketed(v float64, r *trace.Range, format func(float64) string) string {
	if r == nil {
		return format(v)
	}
	return fmt.Sprintf("%s (%s–%s)", format(v), format(r.Low), format(r.High))
}

// amount formats cores or bytes, which may be negative.
func amount(r resize.Resource, v float64) string {
	if r == resize.CPU {
		return humanize.Decimal(v, 2) + " cores"
	}
	return humanize.Decimal(v/(1<<30), 2) + " GiB"
}

// WriteCSV writes the rows for programs, with six digits. Columns of a range are empty where there is none.
func (r *Result) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"resource", "estimator", "containers", "container_days", "slack", "slack_low", "slack_high", "slack_mean", "slack_by_day", "slack_p50", "slack_p95",
		"overrun", "overrun_low", "overrun_high", "overrun_time", "throttled", "oom_kills_per_day", "oom_kills_per_day_low", "oom_kills_per_day_high", "oom_killed_containers",
		"changes_per_day", "changes_per_day_low", "changes_per_day_high", "saved", "saved_share"}) // errors are those of Flush
	for i := range r.Rows {
		row := &r.Rows[i]
		cells := []string{string(row.Resource), row.Estimator, strconv.Itoa(row.Containers)}
		for _, group := range [][]*float64{
			{&row.Days, &row.Slack}, bounds(row.SlackRange), {&row.SlackMean, &row.SlackByDay, &row.SlackP50, &row.SlackP95, &row.Overrun}, bounds(row.OverrunRange),
			{&row.OverrunTime, row.Throttled, row.Kills}, bounds(row.KillsRange), {row.KilledShare, &row.Changes}, bounds(row.ChangesRange), {&row.Saved, &row.SavedShare},
		} {
			for _, v := range group {
				if v == nil {
					cells = append(cells, "")
				} else {
					cells = append(cells, strconv.FormatFloat(*v, 'g', 6, 64))
				}
			}
		}
		_ = out.Write(cells)
	}
	out.Flush()
	return out.Error()
}

func bounds(r *trace.Range) []*float64 {
	if r == nil {
		return []*float64{nil, nil}
	}
	return []*float64{&r.Low, &r.High}
}
