package ui

import (
	"fmt"
	"math"

	"github.com/weir-metrics/weir/explain/slow"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// slowBody is the section of what a pod waited for.
type slowBody struct {
	Summary, Advice string
	Waits           []wait
	NotKnown        []string
	// All is the command that has the evidence.
	All string
}

// wait is a resource that the pod waited for, as a bar of the whole time.
type wait struct {
	Name, Share, Title string
	Parts              []waitPart
}

// waitPart is a part of the bar. X and Width are in percent of the time. Class is the class of the cause.
type waitPart struct {
	Class, Text string
	X, Width    float64
}

// leastPart is the smallest share of the time that is shown.
const leastPart = 0.005

// slow returns the section of what a pod waited for; nil if it waited for nothing, or that is not known. It names
// neighbours of the pod's own namespace only, because the reader may not be allowed to list others.
func (p *page) slow(pod metric.PodRef) *slowBody {
	if p.opts.Slow == nil {
		return nil
	}
	r, ok := p.opts.Slow(slow.Query{
		Namespace: pod.Namespace, Pod: pod.Name, MayName: func(namespace string) bool { return namespace == string(pod.Namespace) },
	})
	if !ok || len(r.Pods) == 0 || r.Pods[0].Resource == "" {
		return nil
	}
	s := &r.Pods[0]
	body := &slowBody{Summary: printable(s.Summary), Advice: printable(s.Advice), All: "weir explain slow " + pod.String()}
	for _, text := range s.NotKnown {
		body.NotKnown = append(body.NotKnown, printable(text))
	}
	for i := range s.Stalls {
		if stall := &s.Stalls[i]; stall.Some != nil && *stall.Some >= leastPart {
			body.Waits = append(body.Waits, newWait(stall))
		}
	}
	return body
}

func newWait(s *slow.Stall) wait {
	w := wait{Name: s.Resource.Words(), Share: humanize.Percent(*s.Some)}
	w.Title = fmt.Sprintf("waited for %s %s of the time", w.Name, w.Share)
	x := 0.0
	for _, part := range s.Parts {
		if part.Share < leastPart {
			continue
		}
		width := math.Round(1000*part.Share) / 10
		text := fmt.Sprintf("%s %s", part.Cause, humanize.Percent(part.Share))
		w.Parts = append(w.Parts, waitPart{Class: string(part.Cause), Text: text, X: math.Round(10*x) / 10, Width: width})
		w.Title += ", " + text
		x += width
	}
	return w
}
