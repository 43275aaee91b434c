package resizeapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/resize"
)

// The resource and the kinds, in paths and RBAC rules.
const (
	Resource           = "recommendations"
	RecommendationKind = "Recommendation"
	ListKind           = RecommendationKind + "List"
)

// RecommendationList is the answer to a Request.
type RecommendationList struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	At         time.Time `json:"at"`
	// Source is the source of the readings: "weir's memory", "Prometheus".
	Source string `json:"source"`
	// From and To are when the first and the last reading were taken; zero if there is none.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// Items are sorted by namespace and name, workloads by namespace, kind and name.
	Items []*resize.PodRecommendation `json:"items"`
	// Unchanged counts the requests that stay, by reason, also those of pods that are not in Items.
	Unchanged map[resize.AdviceReason]int `json:"unchanged,omitempty"`
	// Notes are sentences about the limits of the answer.
	Notes []string `json:"notes,omitempty"`
}

// NewList returns a list without items.
func NewList(at time.Time, source string) *RecommendationList {
	return &RecommendationList{APIVersion: weirdev.APIVersion, Kind: ListKind, At: at.UTC(), Source: source, Items: []*resize.PodRecommendation{}, Unchanged: map[resize.AdviceReason]int{}}
}

// Add adds a pod's recommendation. Unless all is set, one without a proposal is only counted.
func (l *RecommendationList) Add(rec *resize.PodRecommendation, all bool) {
	for i := range rec.Requests {
		a := &rec.Requests[i]
		if !a.Reason.Changes() {
			l.Unchanged[a.Reason]++
		}
		if f := a.Used; f != nil {
			if l.From.IsZero() || f.From.Before(l.From) {
				l.From = f.From
			}
			if f.To.After(l.To) {
				l.To = f.To
			}
		}
	}
	if all || len(rec.Changes()) > 0 {
		l.Items = append(l.Items, rec)
	}
}

// AddWorkloads adds the recommendations for workloads, or for the one that r names, and notes. usage
// returns a function that returns the usage of a workload's containers.
func (l *RecommendationList) AddWorkloads(groups *resize.Groups, r *Request, usage func(*resize.Workload) func(resize.Member, string, resize.Resource) []resize.UsagePoint) {
	for _, w := range groups.Sorted() {
		if one := r.Workload; one.Name == "" || w.Owner == one {
			rec := resize.RecommendWorkload(w, usage(w), r.Options)
			if one.Name != "" || r.Loads {
				rec.Loads = w.Loads(usage(w), &r.Options)
			}
			l.Add(rec, r.All || one.Name != "")
		}
	}
	l.AddNotes(false)
	if n := groups.Loose; n > 0 && r.Workload.Name == "" {
		l.Notes = append(l.Notes, humanize.Count(n, "pod")+" without a workload left out: nothing creates them again, and `weir resize recommend` without --workloads has them.")
	}
}

// NoPods is the problem that a workload has no pods, and that nothing is known of earlier ones.
func NoPods(r Request) *weirdev.Problem {
	return &weirdev.Problem{Status: http.StatusNotFound, Message: fmt.Sprintf("there is no pod of %s %s/%s, and there are no readings of earlier ones", r.Workload.Kind, r.Namespace, r.Workload.Name),
		Hint: "Is the name right, and the namespace? `weir top workloads` lists what has pods. Of a workload without pods, a Prometheus may have readings: --prometheus=URL."}
}

// day is the shortest history that includes every hour of the day.
const day = 24 * time.Hour

// CoverNote is the note about readings of less than a day.
func CoverNote(covers time.Duration) string {
	return fmt.Sprintf("The readings cover %s: peaks of the day or the week may not be among them. --prometheus=URL --since=7d looks further back.", humanize.Duration(covers))
}

// AddNotes adds notes about the limits of the readings.
func (l *RecommendationList) AddNotes(unseen bool) {
	if covers := l.To.Sub(l.From); covers < day {
		l.Notes = append(l.Notes, CoverNote(covers))
	}
	if unseen {
		l.Notes = append(l.Notes, "Resize policies, resizes under way, and whether a pod's own requests can be resized are not looked at in a list: they are for one pod, and before anything is changed.")
	}
}
