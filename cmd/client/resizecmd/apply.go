package resizecmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/apply"
	"github.com/weir-metrics/weir/resize/estimate"
)

// applyCommand is one run of "apply".
type applyCommand struct {
	recommendCommand
	pod, container                     string
	cpu, memory, cpuLimit, memoryLimit string
	recommended                        bool
	dryRun, yes, restart               bool
	wait, watchFor                     time.Duration
	changes                            []resize.ResourceChange // from the flags, for one container
}

func newApply(o Options) *cobra.Command {
	a := &applyCommand{recommendCommand: recommendCommand{Options: o}}
	cmd := &cobra.Command{
		Use:   "apply --pod NAMESPACE/POD | KIND/NAME",
		Short: "Change requests of one pod or of a workload in place, and check that nothing was restarted",
		Long: `Change requests of one pod in place: those that "recommend" proposes (--recommended),
or those that are named. Without --yes nothing is changed: the API server tries the
change, and forgets it.

With --yes the change goes through the pod's resize subresource. The kubelet is
followed until it has done it, defers it, or reports that it cannot. Then it is verified
that all containers are the same and were not restarted and, where weir's agent runs
on the node, that their cgroups have the new values and that the pod has one cgroup
and no second one under another QoS class.

Of a workload such as deployment/web, the pods are changed in place, one at a time, and
then the pod template, without a rollout. Then the pods are watched (--watch). If a
container is restarted, uses more than it now requests, waits or is throttled more than
before, all is undone in the same way. A template that Argo CD, Flux or Helm keeps is
not touched: the command prints the patch for its repository.

The exit status is 0 if the change would be taken (dry run), or was made in place, and 3
if the change of a workload was undone.`,
		Example: fmt.Sprintf(`  %[1]s resize apply --pod shop/cart-0 --recommended
  %[1]s resize apply --pod shop/cart-0 --recommended --yes
  %[1]s resize apply --pod shop/cart-0 --container app --cpu 100m --memory 64Mi --yes
  %[1]s resize apply deployment/web -n shop
  %[1]s resize apply deployment/web -n shop --yes --watch 10m`, o.Program),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if _, _, ok := parseWorkload(args[0]); ok {
					return nil
				}
			}
			return cli.NoArgs("use --pod to name the pod")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.runWorkload(cmd, args[0])
			}
			return a.run(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&a.pod, "pod", "", "`NAMESPACE/POD` to resize; or POD with -n")
	f.StringVarP(&a.namespace, "namespace", "n", "", "the pod's namespace")
	f.BoolVar(&a.recommended, "recommended", false, "ask for what is recommended")
	f.StringVarP(&a.container, "container", "c", "", "container to change; without it the pod's own requests (spec.resources), if it has any, or its only container")
	f.StringVar(&a.cpu, "cpu", "", "CPU to request: 100m")
	f.StringVar(&a.memory, "memory", "", "memory to request: 64Mi")
	f.StringVar(&a.cpuLimit, "cpu-limit", "", "CPU limit to set: 500m")
	f.StringVar(&a.memoryLimit, "memory-limit", "", "memory limit to set: 256Mi")
	f.BoolVar(&a.dryRun, "dry-run", true, "only have the API server try the change")
	f.BoolVarP(&a.yes, "yes", "y", false, "make the change: the same as --dry-run=false")
	f.BoolVar(&a.restart, "allow-restart", false, "make it even if the container's resizePolicy restarts it")
	f.DurationVar(&a.wait, "timeout", 2*time.Minute, "time the kubelet may take; stopping to wait takes nothing back")
	f.DurationVar(&a.watchFor, "watch", 5*time.Minute, "time to watch the pods of a workload afterwards; 0 to not watch")
	addParameters(f)
	a.prometheus.addFlags(f)
	f.StringVarP(&a.output, "output", "o", "text", "text, json, yaml or jsonpath=TEMPLATE")
	cli.CompleteFlag(cmd, "estimator", cli.Fixed(estimate.Names()...))
	cli.CompleteFlag(cmd, "output", cli.Fixed("text", "json", "yaml", "jsonpath="))
	return cmd
}

// requestTimeout limits one request to the API server or to weir.
const requestTimeout = 30 * time.Second

func (a *applyCommand) run(cmd *cobra.Command) error {
	namespace, pod, err := a.checkPodFlags(cmd)
	if err != nil {
		return err
	}
	client, err := a.Cluster()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	request, err := a.resizeRequest(ctx, cmd, client, namespace, pod)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	machine := a.output != "text"
	applier := apply.New(apply.Options{
		Client: client, Restart: a.restart, Timeout: a.wait, Cgroups: a.cgroups,
		Progress: func(s apply.ResizeState) { // to stderr if programs read stdout
			messages := out
			if machine {
				messages = cmd.ErrOrStderr()
			}
			fmt.Fprintln(messages, humanize.Printable(stateText(s)))
		},
	})
	plan, err := withTimeout(ctx, func(ctx context.Context) (*apply.Plan, error) { return applier.Plan(ctx, request) })
	if err != nil {
		return withHint(err)
	}
	if !machine {
		page := &humanize.Page{}
		writePlan(page, plan)
		if !a.yes {
			page.Line(0, humanize.Plain, "The API server would take it. Nothing was changed: --yes does it.")
		}
		if err := page.Print(out); err != nil {
			return err
		}
	}
	switch {
	case !a.yes && machine:
		return cli.WriteDocument(out, a.output, resizeResult{APIVersion: weirdev.APIVersion, Kind: resultKind, DryRun: true, Result: &apply.Result{Plan: plan}})
	case !a.yes:
		return nil
	}
	result, err := applier.Apply(ctx, plan)
	if err != nil {
		return withHint(err)
	}
	if machine {
		err = cli.WriteDocument(out, a.output, resizeResult{APIVersion: weirdev.APIVersion, Kind: resultKind, InPlace: result.InPlace(), Result: result})
	} else {
		page := &humanize.Page{}
		writeResult(page, result)
		err = page.Print(out)
	}
	return cmp.Or(err, resultError(result))
}

// withTimeout limits the time of a call.
func withTimeout[T any](ctx context.Context, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return do(ctx)
}

// checkPodFlags returns an error for flags that make no sense for a pod. It returns the pod.
func (a *applyCommand) checkPodFlags(cmd *cobra.Command) (namespace, pod string, err error) {
	if a.pod == "" {
		return "", "", cli.Usage(errors.New("which pod or workload? Name it: --pod NAMESPACE/POD, or KIND/NAME"))
	}
	if err := a.checkFlags(cmd); err != nil {
		return "", "", err
	}
	return cli.ParseRef(a.pod, a.namespace, a.Namespace)
}

// checkFlags returns an error for flags that make no sense together.
func (a *applyCommand) checkFlags(cmd *cobra.Command) error {
	f := cmd.Flags()
	if err := cli.Output(a.output, "text"); err != nil {
		return err
	}
	named := a.cpu + a.memory + a.cpuLimit + a.memoryLimit
	switch {
	case a.recommended && named+a.container != "":
		return cli.Usage(errors.New("--recommended excludes --container, --cpu, --memory and limits: one or the other sets the wanted values"))
	case !a.recommended && named == "":
		return cli.Usage(errors.New("what is to change? Give --recommended, or --cpu, --memory, --cpu-limit or --memory-limit"))
	case a.wait <= 0:
		return cli.Usage(fmt.Errorf("--timeout cannot be %v", a.wait))
	case a.yes && f.Changed("dry-run") && a.dryRun:
		return cli.Usage(errors.New("--yes and --dry-run exclude each other"))
	}
	a.yes = a.yes || !a.dryRun
	return a.readChanges()
}

// resizeRequest returns the request: the values of the flags, or the recommendation.
func (a *applyCommand) resizeRequest(ctx context.Context, cmd *cobra.Command, client Pods, namespace, pod string) (apply.Request, error) {
	request := apply.Request{Namespace: namespace, Pod: pod}
	if !a.recommended {
		changes, err := a.namedChanges(ctx, client, namespace, pod)
		request.Changes = changes
		return request, err
	}
	name := namespace + "/" + pod
	question, err := a.request(cmd.Flags(), []string{name})
	if err != nil {
		return request, err
	}
	rec, err := a.askChanges(cmd, question, "pod "+name, name)
	if err != nil {
		return request, err
	}
	request.UID, request.Changes = rec.UID, rec.Changes()
	return request, nil
}

// askChanges asks for the recommendation for a pod, or for the template of a workload. It returns an error if
// that changes nothing. subject describes the pod or the workload, and name is its name for "recommend".
func (a *applyCommand) askChanges(cmd *cobra.Command, question resizeapi.Request, subject, name string) (*resize.PodRecommendation, error) {
	line := cli.StartProgress(cmd.ErrOrStderr())
	defer line.Stop()
	list, err := withTimeout(cmd.Context(), func(ctx context.Context) (*resizeapi.RecommendationList, error) {
		return a.recommend(ctx, question, line)
	})
	switch {
	case err != nil:
		return nil, err
	case question.Workload.Name != "" && (len(list.Items) != 1 || !list.Items[0].Workload.FromTemplate):
		return nil, fmt.Errorf("nothing is recommended for the template of %s", subject)
	case len(list.Items) != 1:
		return nil, fmt.Errorf("nothing is recommended for %s", subject)
	case len(list.Items[0].Changes()) == 0:
		return nil, cli.Hintf(fmt.Errorf("no request of %s is to change: %s", subject, unchangedText(list.Unchanged)),
			"%s resize recommend %s shows why.", a.Program, name)
	}
	return list.Items[0], nil
}

// readChanges parses the values of the flags.
func (a *applyCommand) readChanges() error {
	for _, r := range []struct {
		resource       resize.Resource
		request, limit string
	}{{resize.CPU, a.cpu, a.cpuLimit}, {resize.Memory, a.memory, a.memoryLimit}} {
		change := resize.ResourceChange{Resource: r.resource}
		for _, v := range []struct {
			flag, text string
			to         *resize.Amount
		}{{string(r.resource), r.request, &change.Request}, {string(r.resource) + "-limit", r.limit, &change.Limit}} {
			if v.text == "" {
				continue
			}
			n, err := resizeapi.ParseAmount(r.resource, v.text)
			if err != nil {
				return cli.Usage(fmt.Errorf("--%s: %w", v.flag, err))
			}
			*v.to = resize.Of(n)
		}
		if change.Request.Set || change.Limit.Set {
			a.changes = append(a.changes, change)
		}
	}
	return nil
}

// namedChanges returns the changes of the flags. Without --container they are for the pod itself if
// it has requests or limits of its own, and otherwise for its only container.
func (a *applyCommand) namedChanges(ctx context.Context, client Pods, namespace, pod string) ([]resize.ResourceChange, error) {
	if a.container == "" {
		p, err := withTimeout(ctx, func(ctx context.Context) (*corev1.Pod, error) {
			return client.GetPod(ctx, namespace, pod)
		})
		if err != nil {
			return nil, withHint(fmt.Errorf("read pod: %w", err))
		}
		return a.changesOf(resize.FromPod(p))
	}
	return a.changesOf(nil)
}

// changesOf returns the changes of the flags for a pod or a template. With --container, spec is not needed.
func (a *applyCommand) changesOf(spec *resize.PodResources) ([]resize.ResourceChange, error) {
	switch {
	case a.container != "" && spec != nil && spec.Name == "" && spec.Container(a.container) == nil:
		return nil, cli.Usage(fmt.Errorf("the template has no container %s", a.container))
	case a.container != "" || spec.PodLevel.Set:
	case len(spec.Containers) == 1:
		a.container = spec.Containers[0].Name
	case spec.Name == "":
		return nil, cli.Usage(fmt.Errorf("the template has %d containers: name one with --container", len(spec.Containers)))
	default:
		return nil, cli.Usage(fmt.Errorf("pod %s has %d containers: name one with --container", spec, len(spec.Containers)))
	}
	for i := range a.changes {
		a.changes[i].Container = a.container
	}
	return a.changes, nil
}

// cgroups asks weir for the cgroups of a pod.
func (a *applyCommand) cgroups(ctx context.Context, node, uid string) ([]apply.Cgroup, error) {
	w, err := a.Connect()
	if err != nil {
		return nil, err
	}
	report, err := withTimeout(ctx, func(ctx context.Context) (json.RawMessage, error) { return w.PodCgroups(ctx, node) })
	if err != nil {
		return nil, err
	}
	return readCgroups(report, uid)
}

// resultKind is the kind of the answer in JSON and YAML.
const resultKind = "ResizeResult"

// resizeResult is the answer in JSON and YAML.
type resizeResult struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	DryRun     bool   `json:"dryRun,omitempty"`
	// InPlace reports that the resize is done, no container was restarted, and the cgroups are right.
	InPlace bool `json:"inPlace"`
	*apply.Result
}

// withHint adds to an error of the API server what the user can do about it.
func withHint(err error) error {
	refused := (*apply.RefusedError)(nil)
	switch {
	case errors.As(err, &refused):
		return cli.Hintf(fmt.Errorf("it cannot be resized in place: %w", err), "%s", refusalHint(refused))
	case errors.Is(err, apply.ErrNoChange):
		return err
	case apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, "NodeCapacity"), apierrors.IsInvalid(err):
		return err
	case apierrors.IsForbidden(err):
		return cli.Hintf(err, "It takes get on pods and patch on pods/resize in that namespace (the ClusterRole weir:resizer), room in its ResourceQuota, and requests within its LimitRange.")
	case apierrors.IsNotFound(err):
		return cli.Hintf(err, "Is the name right, and the namespace? `kubectl get pods` lists them.")
	case apierrors.IsConflict(err):
		return cli.Hintf(err, "The pod changes faster than it can be looked at. Try again.")
	}
	return err
}

// refusalHint describes what the user can do about refusals.
func refusalHint(r *apply.RefusedError) string {
	for _, refusal := range r.Refusals {
		switch refusal.Reason {
		case resize.Invalid:
			return "Change the limit, too: --cpu-limit, --memory-limit."
		case resize.Restarts:
			return "--allow-restart makes the change all the same."
		case resize.QoSClass:
			return "Change requests and limits together (--cpu-limit, --memory-limit, or --recommended --limits), so that the class stays; or change the workload, which makes new pods."
		}
	}
	return "Change what makes the pod: its Deployment, StatefulSet or DaemonSet."
}
