package resizecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/apply"
	"github.com/weir-metrics/weir/resize/watch"
)

// workloadChange is one change of a workload: its template, and its pods in place.
type workloadChange struct {
	*applyCommand
	out      io.Writer
	client   Pods
	applier  *apply.Applier
	template *apply.Template
	wanted   []resize.ResourceChange // for the template and each pod
	changes  []resize.ResourceChange // those that the template does not have yet
	pods     []*apply.Plan
	ready    map[string]bool // pods that have the values already
	watch    *watch.Watch

	wrote bool // the template was changed
}

// runWorkload changes the workload that a user named.
func (a *applyCommand) runWorkload(cmd *cobra.Command, name string) error {
	if err := a.checkWorkloadFlags(cmd); err != nil {
		return err
	}
	request, err := a.request(cmd.Flags(), []string{name})
	if err != nil {
		return err
	}
	client, err := a.Cluster()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	w := &workloadChange{applyCommand: a, out: cmd.OutOrStdout(), client: client, ready: map[string]bool{}}
	w.applier = apply.New(apply.Options{Client: client, Restart: a.restart, Timeout: a.wait, Cgroups: a.cgroups})
	if w.template, err = withTimeout(ctx, func(ctx context.Context) (*apply.Template, error) {
		return apply.ReadTemplate(ctx, client, workloadRef(request.Workload.Kind, request.Namespace, request.Workload.Name))
	}); err != nil {
		return withHint(err)
	}
	if obstacle := w.template.Obstacle(); obstacle != "" {
		return fmt.Errorf("%s cannot be changed: %s", w.template, obstacle)
	}
	if w.wanted, err = w.wantedChanges(cmd, request); err != nil {
		return err
	}
	if err := w.check(ctx, request); err != nil {
		return err
	}
	if err := w.plan(ctx); err != nil {
		return err
	}
	if err := w.printPlan(ctx); err != nil || !a.yes {
		return err
	}
	return w.run(ctx)
}

func workloadRef(kind, namespace, name string) apply.WorkloadRef {
	k := templateKinds[kind]
	return apply.WorkloadRef{APIVersion: k.group, Kind: kind, Resource: k.resource, Namespace: namespace, Name: name}
}

// checkWorkloadFlags returns an error for flags that make no sense for a workload.
func (a *applyCommand) checkWorkloadFlags(cmd *cobra.Command) error {
	switch {
	case a.pod != "":
		return cli.Usage(errors.New("a workload and --pod exclude each other"))
	case a.output != "text":
		return cli.Usage(errors.New("--output is for --pod: a change of a workload has only text"))
	case a.watchFor != 0 && a.watchFor < minWatch:
		return cli.Usage(fmt.Errorf("--watch cannot be %v: it is at least %v, or 0 to not watch", a.watchFor, minWatch))
	}
	a.recommended = a.recommended || a.cpu+a.memory+a.cpuLimit+a.memoryLimit+a.container == ""
	return a.checkFlags(cmd)
}

// argument returns the workload as commands take it: NAMESPACE/KIND/NAME.
func (w *workloadChange) argument() string {
	return w.template.Namespace + "/" + strings.ToLower(w.template.Kind) + "/" + w.template.Name
}

// wantedChanges returns the changes of the flags, or those that are recommended.
func (w *workloadChange) wantedChanges(cmd *cobra.Command, request resizeapi.Request) ([]resize.ResourceChange, error) {
	if !w.recommended {
		return w.changesOf(w.template.Pod)
	}
	rec, err := w.askChanges(cmd, request, w.template.String(), w.argument())
	if err != nil {
		return nil, err
	}
	return rec.Changes(), nil
}

// check returns an error if the namespace or an autoscaler of the workload forbids the change, if it has
// no undo, or if a tool would overwrite it.
func (w *workloadChange) check(ctx context.Context, request resizeapi.Request) error {
	state, err := withTimeout(ctx, func(ctx context.Context) (*clusterState, error) {
		return readCluster(ctx, w.client, &request, &resizeapi.RecommendationList{})
	})
	if err != nil {
		return withHint(err)
	}
	owner := cluster.Owner{Kind: w.template.Kind, Name: w.template.Name}
	workload := &resize.Workload{Namespace: w.template.Namespace, Owner: owner, Template: w.template.Pod,
		LimitRanges: state.limitRanges[w.template.Namespace], Autoscalers: state.autoscalers[workloadKey{w.template.Namespace, owner}]}
	refusals, err := workload.Check(w.wanted)
	if err != nil {
		return err
	}
	if len(refusals) > 0 {
		return fmt.Errorf("%s stays as it is: %w", w.template, &apply.RefusedError{Refusals: refusals})
	}
	if _, ok := w.template.Undo(w.wanted); !ok {
		return fmt.Errorf("%s has no such request or limit yet, and Kubernetes removes none in place: the change could not be undone", w.template)
	}
	w.changes, _ = w.template.Changes(w.wanted)
	for _, o := range w.template.Owners(w.changes) {
		if o.Tool == "" {
			continue
		}
		patch, err := yaml.Marshal(w.template.Patch(w.template.Pod, w.changes))
		if err == nil {
			_, err = w.out.Write(patch)
		}
		if err != nil {
			return fmt.Errorf("write the patch of %s: %w", w.template, err)
		}
		return cli.Hintf(fmt.Errorf("%s is kept by %s, which would undo the change: its field manager %s has set the %s. Nothing was changed", w.template, o.Tool, o.Manager, strings.Join(o.Fields, ", ")),
			"Put the patch above into the repository of %s.", o.Tool)
	}
	return nil
}

// plan has the API server try the change of the template and of each pod.
func (w *workloadChange) plan(ctx context.Context) error {
	if len(w.changes) > 0 {
		if err := w.template.Try(ctx, w.changes); err != nil {
			return withHint(err)
		}
	}
	plans, err := w.planPods(ctx)
	if err != nil {
		return err
	}
	if w.pods = plans; len(w.changes)+len(w.pods) == 0 {
		return apply.ErrNoChange
	}
	return nil
}

// planPods returns the plans of the pods that do not have the values.
func (w *workloadChange) planPods(ctx context.Context) (plans []*apply.Plan, err error) {
	pods, err := w.template.Pods(ctx)
	if err != nil {
		return nil, withHint(err)
	}
	for _, p := range pods {
		if ended(p) {
			continue
		}
		plan, err := w.applier.Plan(ctx, apply.Request{Namespace: p.Namespace, Pod: p.Name, UID: string(p.UID), Changes: w.wanted})
		switch {
		case errors.Is(err, apply.ErrNoChange):
			w.ready[p.Name] = true
		case err != nil:
			return nil, fmt.Errorf("pod %s: %w", p.Name, withHint(err))
		default:
			if _, ok := plan.Undo(); !ok {
				return nil, fmt.Errorf("pod %s has no such request or limit yet, and Kubernetes removes none in place: the change could not be undone", p.Name)
			}
			plans = append(plans, plan)
		}
	}
	return plans, nil
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// printPlan prints what is to change, and begins to watch.
func (w *workloadChange) printPlan(ctx context.Context) error {
	page := &humanize.Page{}
	_, steps := w.template.Changes(w.changes)
	page.Line(0, humanize.Plain, fmt.Sprintf("%s, and %s in place, one at a time:", w.template, humanize.Count(len(w.pods), "pod")))
	writeSteps(page, "template: ", steps)
	for _, p := range w.pods {
		writeSteps(page, "pod "+p.Pod+": ", p.Steps)
	}
	for _, o := range w.template.Owners(w.changes) {
		page.Line(0, humanize.Plain, fmt.Sprintf("%s has set the %s in the template: if it applies its old manifest again, that starts a rollout back.", o.Manager, strings.Join(o.Fields, ", ")))
	}
	if err := w.beginWatch(ctx, page); err != nil {
		return err
	}
	if !w.yes {
		page.Line(0, humanize.Plain, "The API server would take it. Nothing was changed: --yes does it.")
	}
	return page.Print(w.out)
}

func (w *workloadChange) say(format string, args ...any) {
	fmt.Fprintln(w.out, humanize.Printable(fmt.Sprintf(format, args...)))
}

// run makes the change and watches it. It takes everything back if something hurts or fails.
func (w *workloadChange) run(ctx context.Context) error {
	err := w.change(ctx)
	if err == nil && w.watchFor > 0 {
		err = w.observe(ctx)
	}
	if errors.Is(err, errLeft) {
		w.say("The watch was interrupted; the change stays. To undo it:")
		w.sayUndo()
		return nil
	}
	if err == nil {
		w.say("Done. To undo it:")
		w.sayUndo()
		return nil
	}
	if ctx.Err() != nil {
		err = errors.New("it was interrupted")
	}
	w.say("%s", sentence(err.Error()))
	if undo := w.undo(context.WithoutCancel(ctx)); undo != nil {
		return cli.Hintf(fmt.Errorf("%w; not everything could be undone: %w", err, undo), "`kubectl get %s %s -n %s -o yaml` shows the template, and `%s resize apply %s` with the earlier values sets it.",
			strings.ToLower(w.template.Kind), w.template.Name, w.template.Namespace, w.Program, w.argument())
	}
	return cli.Hintf(fmt.Errorf("%w, because %w", cli.ErrUndone, err), "The pods and the template have their earlier values again.")
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}

// change changes the pods, then the template, then pods that came meanwhile with the old template.
func (w *workloadChange) change(ctx context.Context) error {
	if err := w.resizePods(ctx, w.pods); err != nil {
		return err
	}
	if len(w.changes) == 0 {
		return nil
	}
	w.wrote = true
	if err := w.template.Write(ctx, w.changes); err != nil {
		w.wrote = false // Write takes back what it did
		return err
	}
	w.say("The template is changed, and no rollout was started.")
	late, err := w.planPods(ctx)
	if err != nil {
		return err
	}
	w.pods = slices.Concat(w.pods, late)
	return w.resizePods(ctx, late)
}

func (w *workloadChange) resizePods(ctx context.Context, plans []*apply.Plan) error {
	for _, p := range plans {
		result, err := w.applier.Apply(ctx, p)
		if result != nil {
			w.ready[p.Pod] = true
		}
		if err != nil {
			return fmt.Errorf("pod %s: %w", p.Pod, withHint(err))
		}
		if err := resultError(result); err != nil {
			return fmt.Errorf("pod %s: %w", p.Pod, err)
		}
		w.say("Pod %s: done in %s, and nothing was restarted.", p.Pod, humanize.Seconds(result.TookSeconds))
		if err := w.look(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

// undo sets the earlier values in the pods that were changed, and those of the template in the pods that
// were made of it since, and then in the template.
func (w *workloadChange) undo(ctx context.Context) error {
	pods, err := w.template.Pods(ctx)
	if err != nil {
		return err
	}
	planned := map[string]*apply.Plan{}
	for _, p := range w.pods {
		planned[p.UID] = p
	}
	back, _ := w.template.Undo(w.changes)
	var failed error
	for _, p := range pods {
		r := apply.Request{Namespace: p.Namespace, Pod: p.Name, UID: string(p.UID), Changes: back}
		if plan := planned[r.UID]; plan != nil {
			r, _ = plan.Undo()
		} else if w.ready[p.Name] || !w.wrote {
			continue // it had the values before
		}
		if err := w.undoPod(ctx, r); err != nil && !ended(p) {
			failed = errors.Join(failed, fmt.Errorf("pod %s: %w", p.Name, err))
		}
	}
	if !w.wrote {
		return failed
	}
	if err := w.template.Write(ctx, back); err != nil {
		return errors.Join(failed, err)
	}
	w.say("The template has its earlier values again, and no rollout was started.")
	return failed
}

func (w *workloadChange) undoPod(ctx context.Context, r apply.Request) error {
	plan, err := w.applier.Plan(ctx, r)
	if errors.Is(err, apply.ErrNoChange) {
		return nil
	}
	if err != nil {
		return err
	}
	result, err := w.applier.Apply(ctx, plan)
	if err != nil {
		return err
	}
	if result.Stage != apply.Done {
		return resultError(result)
	}
	for _, s := range plan.Steps {
		w.say("Pod %s: %s again.", r.Pod, stepText(s))
	}
	return nil
}

// sayUndo prints the commands that take the change back.
func (w *workloadChange) sayUndo() {
	back, _ := w.template.Undo(w.wanted)
	commands := map[string]string{}
	for _, c := range back {
		line := commands[c.Container]
		if line == "" {
			line = "  " + w.Program + " resize apply " + w.argument()
			if c.Container != "" {
				line += " --container " + c.Container
			}
		}
		if c.Request.Set {
			line += fmt.Sprintf(" --%s %s", c.Resource, resize.Quantity(c.Resource, c.Request.Value))
		}
		if c.Limit.Set {
			line += fmt.Sprintf(" --%s-limit %s", c.Resource, resize.Quantity(c.Resource, c.Limit.Value))
		}
		commands[c.Container] = line
	}
	for _, c := range back {
		if line := commands[c.Container]; line != "" {
			w.say("%s --yes", line)
			delete(commands, c.Container)
		}
	}
}
