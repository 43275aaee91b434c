package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/resize"
)

// ObjectClient reads and patches objects of the API server by their paths. Its errors are those of
// Kubernetes.
type ObjectClient interface {
	Get(ctx context.Context, path string, into any) error
	List(ctx context.Context, path string, o metav1.ListOptions, into any) error
	// Patch sends a strategic merge patch.
	Patch(ctx context.Context, path string, patch []byte, o metav1.PatchOptions, into any) error
}

// WorkloadRef names a workload. APIVersion is that of its kind: "apps/v1".
type WorkloadRef struct{ APIVersion, Kind, Resource, Namespace, Name string }

// String returns the kind and the name: "Deployment shop/web".
func (r WorkloadRef) String() string { return fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name) }

func (r WorkloadRef) path(resource, name string) string {
	return "/apis/" + r.APIVersion + "/namespaces/" + r.Namespace + strings.TrimSuffix("/"+resource+"/"+name, "/")
}

// Template is a workload with its pod template, as it was read.
type Template struct {
	WorkloadRef
	// Pod has the requests and limits of the template.
	Pod *resize.PodResources

	client ObjectClient
	object WorkloadObject
	set    *appsv1.ReplicaSet // the one of a Deployment's pods; nil before it is read
}

// WorkloadObject is the part of a workload that a change of its template needs, as the API server has it.
type WorkloadObject struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Paused         bool                   `json:"paused"`
		Selector       *metav1.LabelSelector  `json:"selector"`
		UpdateStrategy map[string]any         `json:"updateStrategy"`
		Template       corev1.PodTemplateSpec `json:"template"`
		JobTemplate    struct {
			Spec struct {
				Template corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
		} `json:"jobTemplate"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration     int64  `json:"observedGeneration"`
		Replicas               int32  `json:"replicas"`
		UpdatedReplicas        int32  `json:"updatedReplicas"`
		UpdateRevision         string `json:"updateRevision"`
		DesiredNumberScheduled int32  `json:"desiredNumberScheduled"`
		UpdatedNumberScheduled int32  `json:"updatedNumberScheduled"`
	} `json:"status"`
}

// ReadTemplate reads a workload and its pod template.
func ReadTemplate(ctx context.Context, client ObjectClient, ref WorkloadRef) (*Template, error) {
	t := &Template{WorkloadRef: ref, client: client}
	if err := client.Get(ctx, ref.path(ref.Resource, ref.Name), &t.object); err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	t.Pod = t.object.Pod(ref.Kind)
	return t, nil
}

// Pod returns what a new pod of the workload, which is of a kind, requests.
func (o *WorkloadObject) Pod(kind string) *resize.PodResources {
	return resize.FromPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace}, Spec: o.template(kind).Spec})
}

func (o *WorkloadObject) template(kind string) *corev1.PodTemplateSpec {
	if kind == "CronJob" {
		return &o.Spec.JobTemplate.Spec.Template
	}
	return &o.Spec.Template
}

// Obstacle returns the reason why the template cannot be changed now; empty if it can.
func (t *Template) Obstacle() string {
	if owner := metav1.GetControllerOf(&t.object); owner != nil {
		return fmt.Sprintf("it is made by %s %s, which would undo the change: change that", owner.Kind, owner.Name)
	}
	updated, all := t.updated(&t.object)
	switch {
	case t.Kind == "Job":
		return "the template of a Job cannot be changed: change what creates the Job"
	case t.Kind == "Deployment" && t.object.Spec.Paused:
		return "it is paused: `kubectl rollout resume` first"
	case t.rolls() && (t.object.Status.ObservedGeneration < t.object.Generation || updated != all):
		return "a rollout is under way: wait for it with `kubectl rollout status`"
	}
	return ""
}

// rolls reports whether a controller replaces the workload's pods if the template changes.
func (t *Template) rolls() bool {
	return t.Kind == "Deployment" || t.Kind == "StatefulSet" || t.Kind == "DaemonSet"
}

// updated returns how many pods have the present template, and how many there are, by the status.
func (t *Template) updated(o *WorkloadObject) (updated, all int32) {
	if t.Kind == "DaemonSet" {
		return o.Status.UpdatedNumberScheduled, o.Status.DesiredNumberScheduled
	}
	return o.Status.UpdatedReplicas, o.Status.Replicas
}

// Pods returns the pods of the workload, without those that are being deleted. Those of a CronJob are not
// among them: they end.
func (t *Template) Pods(ctx context.Context) (pods []*corev1.Pod, err error) {
	if t.Kind == "CronJob" {
		return nil, nil
	}
	owner := t.object.UID
	if t.Kind == "Deployment" {
		set, err := t.replicaSet(ctx)
		if err != nil {
			return nil, err
		}
		owner = set.UID
	}
	var list corev1.PodList
	if err := t.client.List(ctx, "/api/v1/namespaces/"+t.Namespace+"/pods", t.Selected(), &list); err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", t, err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		if c := metav1.GetControllerOf(p); c != nil && c.UID == owner && p.DeletionTimestamp == nil {
			pods = append(pods, p)
		}
	}
	return pods, nil
}

// Selected returns the selector of the pods.
func (t *Template) Selected() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(t.object.Spec.Selector)}
}

// replicaSets returns the ReplicaSets of a Deployment.
func (t *Template) replicaSets(ctx context.Context) ([]appsv1.ReplicaSet, error) {
	var list appsv1.ReplicaSetList
	if err := t.client.List(ctx, t.path("replicasets", ""), t.Selected(), &list); err != nil {
		return nil, fmt.Errorf("list the ReplicaSets of %s: %w", t, err)
	}
	return slices.DeleteFunc(list.Items, func(s appsv1.ReplicaSet) bool {
		c := metav1.GetControllerOf(&s)
		return c == nil || c.UID != t.object.UID
	}), nil
}

// replicaSet returns the ReplicaSet whose template is that of the Deployment.
func (t *Template) replicaSet(ctx context.Context) (*appsv1.ReplicaSet, error) {
	if t.set != nil {
		return t.set, nil
	}
	sets, err := t.replicaSets(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(sets, func(s appsv1.ReplicaSet) bool { return sameTemplate(&s.Spec.Template, t.object.template(t.Kind)) })
	if i < 0 {
		return nil, fmt.Errorf("no ReplicaSet of %s has its template: wait until its rollout has begun", t)
	}
	t.set = &sets[i]
	return t.set, nil
}

// sameTemplate compares templates as the Deployment controller does (EqualIgnoreHash in
// k8s.io/kubernetes/pkg/controller/deployment/util).
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	delete(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(a, b)
}

// Patch returns the strategic merge patch of the workload for changes of its template. It names its object,
// as kustomize requires.
func (r WorkloadRef) Patch(template *resize.PodResources, changes []resize.ResourceChange) map[string]any {
	type object = map[string]any
	spec := object{"template": object{"spec": specPatchOf(template, changes)}}
	if r.Kind == "CronJob" {
		spec = object{"jobTemplate": object{"spec": spec}}
	}
	return object{"apiVersion": r.APIVersion, "kind": r.Kind, "metadata": object{"name": r.Name, "namespace": r.Namespace}, "spec": spec}
}

// Changes returns those of changes that the template does not have yet, and their values.
func (t *Template) Changes(changes []resize.ResourceChange) ([]resize.ResourceChange, []ValueChange) {
	var p Plan
	for _, c := range changes {
		p.addChange(t.Pod, c)
	}
	return p.changes, p.Steps
}

// Undo returns the changes that take changes of the template back. ok is false if a value was not set
// before, which cannot be restored in running pods.
func (t *Template) Undo(changes []resize.ResourceChange) (back []resize.ResourceChange, ok bool) {
	return earlier(t.Pod, changes)
}

// Try has the API server try the change of the template.
func (t *Template) Try(ctx context.Context, changes []resize.ResourceChange) error {
	var after WorkloadObject
	if err := t.patch(ctx, t.path(t.Resource, t.Name), t.Patch(t.Pod, changes), &after, metav1.DryRunAll); err != nil {
		return fmt.Errorf("try the change of the template: %w", err)
	}
	if t.Kind != "Deployment" {
		return nil
	}
	sets, err := t.replicaSets(ctx)
	if err != nil {
		return err
	}
	for i := range sets {
		if sameTemplate(&sets[i].Spec.Template, after.template(t.Kind)) { // the controller would roll out to the older one of two
			return fmt.Errorf("ReplicaSet %s, of an earlier revision, has this template already: `kubectl delete replicaset %[1]s -n %s` first, or roll out to it with `kubectl rollout undo`", sets[i].Name, t.Namespace)
		}
	}
	return nil
}

func (t *Template) patch(ctx context.Context, path string, body, into any, dryRun ...string) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	return t.client.Patch(ctx, path, text, metav1.PatchOptions{DryRun: dryRun, FieldManager: fieldManager}, into)
}

// writeTimeout limits one change of a template. It goes on when its caller is interrupted.
const writeTimeout = time.Minute

// Write changes the template without a rollout, where its running pods have the new values already. The
// workload is held meanwhile: a Deployment is paused, a StatefulSet or DaemonSet has the update strategy
// OnDelete. Then what a controller knows the pods' template by is changed with it: the template of the
// Deployment's ReplicaSet, or the pods' label of the revision. The workload is released when its controller
// reports that all pods have the new template; by then its cache has all of these changes.
func (t *Template) Write(ctx context.Context, changes []resize.ResourceChange) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	_, running := t.updated(&t.object)
	if !t.rolls() || running == 0 {
		return t.patch(ctx, t.path(t.Resource, t.Name), t.Patch(t.Pod, changes), &WorkloadObject{})
	}
	var set *appsv1.ReplicaSet
	if t.Kind == "Deployment" {
		var err error
		if set, err = t.replicaSet(ctx); err != nil {
			return err
		}
	}
	hold, release := t.holds()
	if err := t.patchSpec(ctx, hold); err != nil {
		return fmt.Errorf("hold %s: %w", t, err)
	}
	err := t.exchange(ctx, set, changes)
	if err != nil {
		back, _ := t.Undo(changes)
		if undo := t.exchange(ctx, set, back); undo != nil {
			return fmt.Errorf("%w; %s is held back from rollouts (%s) because its template could not be restored: %w", err, t, heldText(hold), undo)
		}
	}
	if released := t.patchSpec(ctx, release); released != nil {
		return errors.Join(err, fmt.Errorf("release %s, which is held back from rollouts (%s): %w", t, heldText(hold), released))
	}
	return err
}

// holds returns the patches of the workload's spec that hold its controller back and release it.
func (t *Template) holds() (hold, release map[string]any) {
	if t.Kind == "Deployment" {
		return map[string]any{"paused": true}, map[string]any{"paused": nil}
	}
	return map[string]any{"updateStrategy": map[string]any{"type": "OnDelete", "rollingUpdate": nil}}, map[string]any{"updateStrategy": t.object.Spec.UpdateStrategy}
}

func heldText(hold map[string]any) string {
	text, _ := json.Marshal(hold)
	return string(text)
}

func (t *Template) patchSpec(ctx context.Context, spec map[string]any) error {
	return t.patch(ctx, t.path(t.Resource, t.Name), map[string]any{"spec": spec}, &WorkloadObject{})
}

// exchange changes the template and what its controller compares with it, and waits until the controller
// takes the running pods for pods of the new template. set is the ReplicaSet of a Deployment.
func (t *Template) exchange(ctx context.Context, set *appsv1.ReplicaSet, changes []resize.ResourceChange) error {
	var after WorkloadObject
	if err := t.patch(ctx, t.path(t.Resource, t.Name), t.Patch(t.Pod, changes), &after); err != nil {
		return fmt.Errorf("change the template: %w", err)
	}
	if set != nil {
		if err := t.patch(ctx, t.path("replicasets", set.Name), WorkloadRef{Kind: "ReplicaSet", Name: set.Name, Namespace: t.Namespace, APIVersion: t.APIVersion}.Patch(t.Pod, changes), &appsv1.ReplicaSet{}); err != nil {
			return fmt.Errorf("change the template of ReplicaSet %s: %w", set.Name, err)
		}
	}
	generation := after.Generation
	for {
		if after.Status.ObservedGeneration >= generation {
			if set == nil {
				if err := t.relabel(ctx, &after); err != nil {
					return err
				}
			}
			if updated, all := t.updated(&after); updated >= all {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until the controller of %s has seen the change: %w", t, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
		after = WorkloadObject{} // an answer leaves out what is zero
		if err := t.client.Get(ctx, t.path(t.Resource, t.Name), &after); err != nil {
			return fmt.Errorf("read %s: %w", t, err)
		}
	}
}

// relabel gives the pods of a StatefulSet or DaemonSet the label of its newest revision.
func (t *Template) relabel(ctx context.Context, o *WorkloadObject) error {
	revision := o.Status.UpdateRevision
	if t.Kind == "DaemonSet" {
		var err error
		if revision, err = t.daemonRevision(ctx); err != nil {
			return err
		}
	}
	pods, err := t.Pods(ctx)
	if err != nil {
		return err
	}
	for _, p := range pods {
		if revision == "" || p.Labels[appsv1.ControllerRevisionHashLabelKey] == revision {
			continue
		}
		body := map[string]any{"metadata": map[string]any{"uid": p.UID, "labels": map[string]any{appsv1.ControllerRevisionHashLabelKey: revision}}}
		if err := t.patch(ctx, "/api/v1/namespaces/"+p.Namespace+"/pods/"+p.Name, body, &corev1.Pod{}); err != nil {
			return fmt.Errorf("label pod %s with its revision: %w", p.Name, err)
		}
	}
	return nil
}

// daemonRevision returns the label of the newest revision of a DaemonSet.
func (t *Template) daemonRevision(ctx context.Context) (label string, err error) {
	var list struct {
		Items []struct {
			metav1.ObjectMeta `json:"metadata"`
			Revision          int64 `json:"revision"`
		} `json:"items"`
	}
	if err := t.client.List(ctx, t.path("controllerrevisions", ""), t.Selected(), &list); err != nil {
		return "", fmt.Errorf("list the revisions of %s: %w", t, err)
	}
	newest := int64(-1)
	for i := range list.Items {
		r := &list.Items[i]
		if c := metav1.GetControllerOf(r); c != nil && c.UID == t.object.UID && r.Revision > newest {
			newest, label = r.Revision, r.Labels[appsv1.ControllerRevisionHashLabelKey]
		}
	}
	return label, nil
}
