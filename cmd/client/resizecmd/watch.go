package resizecmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/explain/slow"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/apply"
	"github.com/weir-metrics/weir/resize/watch"
)

// How a change is watched.
const (
	minWatch      = 30 * time.Second
	watchInterval = 5 * time.Second
	watchReport   = time.Minute // between two lines of progress
	// maxAskedPods is how many pods weir is asked about: each is a request.
	maxAskedPods = 20
)

// errLeft ends a watch that the user interrupts.
var errLeft = errors.New("the watch was interrupted")

// beginWatch reads the pods as they are before the change, and describes what will be watched. It fails if
// a container uses more memory than a smaller request that it is to have.
func (w *workloadChange) beginWatch(ctx context.Context, page *humanize.Page) error {
	if w.watchFor == 0 {
		page.Line(0, humanize.Plain, "Nothing will be watched afterwards (--watch 0).")
		w.watch = watch.New(nil, nil)
		return nil
	}
	pods, unread, err := w.readPods(ctx)
	if err != nil {
		return err
	}
	waits, unknown := w.readWaits(ctx, pods, slow.DefaultWindow)
	if h := watch.AboveMemory(pods); h != nil {
		return fmt.Errorf("%s stays as it is: %s, so the change would be undone at once (--watch 0 makes it all the same)", w.template, h.Message)
	}
	w.watch = watch.New(pods, waits)
	page.Line(0, humanize.Plain, fmt.Sprintf("Watched for %s afterwards, and undone if it hurts: restarts and OOM kills, pods that are no longer ready, use above the new requests, waits and throttling.", humanize.Duration(w.watchFor)))
	for _, missing := range []string{unread, unknown} {
		if missing != "" {
			page.Line(0, humanize.Plain, "Not watched: "+missing+".")
		}
	}
	return nil
}

// observe watches the pods until the time is up or something hurts.
func (w *workloadChange) observe(ctx context.Context) error {
	w.say("Watching for %s. An interrupt leaves the change as it is.", humanize.Duration(w.watchFor))
	for elapsed := time.Duration(0); ; elapsed += watchInterval {
		if err := w.look(ctx, elapsed); err != nil {
			return err
		}
		if elapsed >= w.watchFor {
			return nil
		}
		if elapsed > 0 && elapsed%watchReport == 0 {
			w.say("%s: nothing hurts.", humanize.Duration(elapsed))
		}
		if w.Wait(ctx, watchInterval) != nil {
			return errLeft
		}
	}
}

// sleep waits for d.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// look returns an error if something hurts. What cannot be read does not hurt.
func (w *workloadChange) look(ctx context.Context, elapsed time.Duration) error {
	if w.watchFor == 0 {
		return nil
	}
	pods, _, err := w.readPods(ctx)
	if err != nil {
		return nil //nolint:nilerr // the next look reads them again
	}
	var waits map[string]watch.Waits
	if elapsed >= slow.LeastWindow { // no earlier time is in the window
		waits, _ = w.readWaits(ctx, pods, slow.LeastWindow)
	}
	h := w.watch.Look(time.Now(), pods, waits)
	if h == nil {
		return nil
	}
	return errors.New("it hurts: " + h.Message + w.deathOf(ctx, h))
}

// deathOf returns what `weir explain death` knows about the restart of a container.
func (w *workloadChange) deathOf(ctx context.Context, h *watch.Harm) string {
	weir, err := w.Connect()
	if err != nil || !h.Restart {
		return ""
	}
	report, err := withTimeout(ctx, func(ctx context.Context) (*death.Report, error) {
		return weir.Deaths(ctx, death.Query{Namespace: metric.Namespace(w.template.Namespace), Pod: metric.PodName(h.Pod)})
	})
	if err != nil || len(report.Deaths) == 0 {
		return ""
	}
	return " (" + report.Deaths[0].Message + ")"
}

// podUse is an item of metrics.k8s.io.
type podUse struct {
	metav1.ObjectMeta `json:"metadata"`
	Timestamp         metav1.Time `json:"timestamp"`
	Containers        []struct {
		Name  string              `json:"name"`
		Usage corev1.ResourceList `json:"usage"`
	} `json:"containers"`
}

// readPods returns the states of the pods, with the smaller requests that they are to have. unread is what could not
// be read.
func (w *workloadChange) readPods(ctx context.Context) (states []watch.Pod, unread string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	pods, err := w.template.Pods(ctx)
	if err != nil {
		return nil, "", err
	}
	var used struct {
		Items []podUse `json:"items"`
	}
	if err := w.client.List(ctx, "/apis/metrics.k8s.io/v1beta1/namespaces/"+w.template.Namespace+"/pods", w.template.Selected(), &used); err != nil {
		unread = fmt.Sprintf("use above the requests, because metrics.k8s.io does not answer (%v)", err)
	}
	for _, p := range pods {
		states = append(states, w.stateOf(p, used.Items))
	}
	return states, unread, nil
}

// lowered returns the changes that make a request of a pod smaller.
func (w *workloadChange) lowered(p *corev1.Pod) []resize.ResourceChange {
	before, _ := w.template.Undo(w.wanted)
	if i := slices.IndexFunc(w.pods, func(plan *apply.Plan) bool { return plan.UID == string(p.UID) }); i >= 0 {
		undo, _ := w.pods[i].Undo()
		before = undo.Changes
	}
	return slices.DeleteFunc(slices.Clone(w.wanted), func(c resize.ResourceChange) bool {
		return !slices.ContainsFunc(before, func(b resize.ResourceChange) bool {
			return b.Container == c.Container && b.Resource == c.Resource && c.Request.Value < b.Request.Value
		})
	})
}

// stateOf returns the state of a pod, with the requests that the change makes smaller.
func (w *workloadChange) stateOf(p *corev1.Pod, used []podUse) watch.Pod {
	state, lowered := watch.Pod{Name: p.Name}, w.lowered(p)
	for _, c := range p.Status.Conditions {
		state.Ready = state.Ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	if ended(p) {
		state.Ended = strings.TrimSpace(string(p.Status.Phase) + " " + p.Status.Reason)
	}
	for i := range p.Status.ContainerStatuses {
		s := &p.Status.ContainerStatuses[i]
		c := watch.Container{Name: s.Name, Restarts: s.RestartCount}
		if t := s.LastTerminationState.Terminated; t != nil {
			c.LastEnd = fmt.Sprintf("%s, exit code %d", t.Reason, t.ExitCode)
		}
		for _, change := range lowered {
			if change.Container == c.Name && change.Resource == resize.Memory {
				c.Requests.Memory = change.Request
			} else if change.Container == c.Name {
				c.Requests.CPU = change.Request
			}
		}
		for i := range used {
			if used[i].Name != p.Name {
				continue
			}
			for _, u := range used[i].Containers {
				if u.Name == c.Name {
					c.At = used[i].Timestamp.Time
					c.Used = resize.Amounts{CPU: resize.Of(u.Usage.Cpu().MilliValue()), Memory: resize.Of(u.Usage.Memory().Value())}
				}
			}
		}
		state.Containers = append(state.Containers, c)
	}
	return state
}

// readWaits asks weir what pods wait for. unknown is what it does not know.
func (w *workloadChange) readWaits(ctx context.Context, pods []watch.Pod, window time.Duration) (waits map[string]watch.Waits, unknown string) {
	weir, err := w.Connect()
	if err != nil {
		return nil, fmt.Sprintf("waits and throttling, because weir cannot be asked (%v)", err)
	}
	waits = map[string]watch.Waits{}
	for i := range pods[:min(len(pods), maxAskedPods)] {
		report, err := withTimeout(ctx, func(ctx context.Context) (*slow.Report, error) {
			return weir.Slow(ctx, slow.Query{Namespace: metric.Namespace(w.template.Namespace), Pod: metric.PodName(pods[i].Name), Window: window})
		})
		switch {
		case err != nil:
			unknown = fmt.Sprintf("waits and throttling of pod %s (%v)", pods[i].Name, err)
		case len(report.Pods) == 1:
			found, missing := waitsOf(&report.Pods[0])
			waits[pods[i].Name] = found
			if missing != "" {
				unknown = missing
			}
		}
	}
	if n := len(pods) - maxAskedPods; n > 0 {
		unknown = strings.TrimPrefix(fmt.Sprintf("%s; waits and throttling of %s", unknown, humanize.Count(n, "more pod")), "; ")
	}
	return waits, unknown
}

// waitsOf returns the waits of a pod that are not due to its own use, and what is not known of them.
func waitsOf(s *slow.Slow) (waits watch.Waits, missing string) {
	for i := range s.Stalls {
		stall := &s.Stalls[i]
		share := stall.Some
		if share != nil {
			rest := *share
			for _, part := range stall.Parts {
				if part.Cause == slow.OwnUse {
					rest -= part.Share
				}
			}
			share = &rest
		}
		switch stall.Resource {
		case slow.CPU:
			waits.CPU, waits.Throttled = share, stall.Throttled
		case slow.Memory:
			waits.Memory = share
		}
	}
	switch {
	case waits.CPU == nil && waits.Throttled == nil:
		missing = "waits and throttling"
	case waits.CPU == nil:
		missing = "waits"
	case waits.Throttled == nil:
		missing = "throttling"
	}
	if missing != "" && len(s.NotKnown) > 0 {
		missing += ": " + strings.TrimSuffix(strings.Join(s.NotKnown, " "), ".")
	}
	return waits, missing
}
