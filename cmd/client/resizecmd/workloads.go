package resizecmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/apply"
)

// parseWorkload parses KIND/NAME or NAMESPACE/KIND/NAME. ok is false for a pod. The namespace may be empty.
func parseWorkload(text string) (namespace, workload string, ok bool) {
	parts := strings.Split(text, "/")
	if len(parts) == 3 {
		namespace, parts = parts[0], parts[1:]
	}
	if len(parts) != 2 {
		return "", "", false
	}
	kind := strings.ToLower(parts[0])
	if slices.Contains([]string{"cronjob", "cronjobs", "cj"}, kind) {
		kind = "cronjob"
	} else if full := cli.WorkloadKinds[kind]; full != "" {
		kind = full
	} else if namespace == "" {
		return "", "", false // NAMESPACE/POD
	}
	return namespace, kind + "/" + parts[1], true
}

// setWorkload sets the workload that args name in the request. It returns its NAME or NAMESPACE/NAME; empty
// if args name none.
func setWorkload(request *resizeapi.Request, args []string) (ref string, err error) {
	if len(args) == 0 {
		return "", nil
	}
	namespace, workload, ok := parseWorkload(args[0])
	switch {
	case request.Workloads:
		return "", errors.New("--workloads is for all workloads: name one as KIND/NAME without the flag")
	case !ok:
		return "", nil
	}
	err = request.Set("workload", workload)
	return strings.TrimPrefix(namespace+"/"+request.Workload.Name, "/"), err
}

// templateKind is how the API server names a kind of workload.
type templateKind struct{ group, resource string }

var templateKinds = map[string]templateKind{
	"Deployment": {"apps/v1", "deployments"}, "StatefulSet": {"apps/v1", "statefulsets"}, "DaemonSet": {"apps/v1", "daemonsets"},
	"ReplicaSet": {"apps/v1", "replicasets"}, "Job": {"batch/v1", "jobs"}, "CronJob": {"batch/v1", "cronjobs"},
}

// workloadKey names a workload.
type workloadKey struct {
	namespace string
	cluster.Owner
}

// clusterState is what the API server has about workloads besides their pods.
type clusterState struct {
	client      Pods
	templates   map[workloadKey]*resize.PodResources
	limitRanges map[string][]corev1.LimitRange // by namespace
	autoscalers map[workloadKey][]resize.UtilizationTarget
}

// readCluster reads the templates of the workloads in a list, and what restricts their requests, with
// the rights of the user.
func readCluster(ctx context.Context, client Pods, r *resizeapi.Request, list *resizeapi.RecommendationList) (*clusterState, error) {
	s := &clusterState{client, map[workloadKey]*resize.PodResources{}, map[string][]corev1.LimitRange{}, map[workloadKey][]resize.UtilizationTarget{}}
	if err := s.readTemplates(ctx, r, list); err != nil {
		return nil, err
	}
	err := eachItem(ctx, client, listPath("v1", r.Namespace, "limitranges"), func(l *corev1.LimitRange) {
		s.limitRanges[l.Namespace] = append(s.limitRanges[l.Namespace], *l)
	})
	if err != nil {
		return nil, fmt.Errorf("list LimitRanges: %w", err)
	}
	if err := eachItem(ctx, client, listPath("autoscaling/v2", r.Namespace, "horizontalpodautoscalers"), s.addAutoscaler); err != nil {
		return nil, fmt.Errorf("list HorizontalPodAutoscalers: %w", err)
	}
	return s, nil
}

func (s *clusterState) readTemplates(ctx context.Context, r *resizeapi.Request, list *resizeapi.RecommendationList) error {
	if kind, ok := templateKinds[r.Workload.Kind]; ok {
		var o apply.WorkloadObject
		err := s.client.Get(ctx, listPath(kind.group, r.Namespace, kind.resource)+"/"+r.Workload.Name, &o)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read %s %s/%s: %w", r.Workload.Kind, r.Namespace, r.Workload.Name, err)
		}
		if err == nil {
			s.templates[workloadKey{r.Namespace, r.Workload}] = o.Pod(r.Workload.Kind)
		}
		return nil
	}
	for _, name := range resizeapi.Kinds {
		kind, ok := templateKinds[name]
		if !ok || !slices.ContainsFunc(list.Items, func(rec *resize.PodRecommendation) bool { return rec.Workload.Kind == name }) {
			continue
		}
		err := eachItem(ctx, s.client, listPath(kind.group, r.Namespace, kind.resource), func(o *apply.WorkloadObject) {
			s.templates[workloadKey{o.Namespace, cluster.Owner{Kind: name, Name: o.Name}}] = o.Pod(name)
		})
		if err != nil {
			return fmt.Errorf("list %s: %w", kind.resource, err)
		}
	}
	return nil
}

// addAutoscaler adds the targets of an autoscaler that are shares of requests.
func (s *clusterState) addAutoscaler(hpa *autoscalingv2.HorizontalPodAutoscaler) {
	key := workloadKey{hpa.Namespace, cluster.Owner{Kind: hpa.Spec.ScaleTargetRef.Kind, Name: hpa.Spec.ScaleTargetRef.Name}}
	autoscaler.Default(&hpa.Spec) // as an API server does
	for i := range hpa.Spec.Metrics {
		m := &hpa.Spec.Metrics[i]
		t := resize.UtilizationTarget{Autoscaler: hpa.Name, Spec: &hpa.Spec, Metric: i}
		var target *int32
		switch {
		case m.Resource != nil:
			t.Resource, target = resize.Resource(m.Resource.Name), m.Resource.Target.AverageUtilization
		case m.ContainerResource != nil:
			t.Resource, t.Container, target = resize.Resource(m.ContainerResource.Name), m.ContainerResource.Container, m.ContainerResource.Target.AverageUtilization
		}
		if target != nil {
			t.Percent = *target
			s.autoscalers[key] = append(s.autoscalers[key], t)
		}
	}
}

// listPath returns the path of a resource, in a namespace unless it is empty.
func listPath(group, namespace, resource string) string {
	path := "/apis/" + group
	if group == "v1" {
		path = "/api/v1"
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + resource
}

// eachItem lists what is at a path, by pages.
func eachItem[T any](ctx context.Context, client Pods, path string, do func(*T)) error {
	for next := ""; ; {
		var page struct {
			metav1.ListMeta `json:"metadata"`
			Items           []T `json:"items"`
		}
		if err := client.List(ctx, path, metav1.ListOptions{Limit: 500, Continue: next}, &page); err != nil {
			return err
		}
		for i := range page.Items {
			do(&page.Items[i])
		}
		if next = page.Continue; next == "" {
			return nil
		}
	}
}

// reconsider returns a list of the recommendations for the workloads' templates.
func (s *clusterState) reconsider(list *resizeapi.RecommendationList, r *resizeapi.Request) *resizeapi.RecommendationList {
	again := resizeapi.NewList(list.At, list.Source)
	again.Notes = list.Notes
	unread := 0
	for _, rec := range list.Items {
		key := workloadKey{rec.Namespace, cluster.Owner{Kind: rec.Workload.Kind, Name: rec.Workload.Name}}
		if template := s.templates[key]; template != nil {
			w := &resize.Workload{Namespace: rec.Namespace, Owner: key.Owner, Template: template, LimitRanges: s.limitRanges[rec.Namespace], Autoscalers: s.autoscalers[key]}
			rec = w.Reconsider(rec, r.Options)
		} else if s.client != nil {
			unread++
		}
		rec.Loads = nil // they were for pairs
		again.Add(rec, r.All || r.Workload.Name != "" || isAutoscaled(rec))
	}
	if unread > 0 {
		again.Notes = append(again.Notes, fmt.Sprintf("The API server has no template of %s: requests are those of the newest pods, and autoscalers and LimitRanges are not considered.", humanize.Count(unread, "workload")))
	}
	return again
}

// isAutoscaled reports whether a request of a workload stays because of its autoscaler.
func isAutoscaled(rec *resize.PodRecommendation) bool {
	return slices.ContainsFunc(rec.Requests, func(a resize.Advice) bool { return a.Reason == resize.Autoscaled })
}

// recommendWorkloads returns the recommendations for workloads. ask returns those by the requests of pods,
// of weir or from a Prometheus.
func (r *recommendCommand) recommendWorkloads(ctx context.Context, request resizeapi.Request, line *cli.Progress) (*resizeapi.RecommendationList, error) {
	ask := request.Clone()
	// Text has pairs of one workload only.
	ask.Loads = request.Workload.Name == "" && (r.withHPA || !slices.Contains([]string{"", "wide", patchFormat}, r.output))
	if err := ask.Set("all", "true"); err != nil { // a template may request what pods do not
		return nil, err
	}
	list, err := r.readUsage(ctx, ask, line)
	if err != nil {
		return nil, err
	}
	line.Set("reading templates, autoscalers and LimitRanges", 0, 0)
	client, err := r.Cluster()
	var state *clusterState
	if err == nil {
		state, err = readCluster(ctx, client, &request, list)
	}
	if err == nil && ask.Loads {
		r.readLoads(ctx, request, state, list)
	}
	if err != nil {
		if r.writesManifests() {
			return nil, cli.Hintf(err, "A patch is only made of a workload's template, its autoscalers and the LimitRanges of its namespace: you need the right to read them.")
		}
		state = &clusterState{}
		list.Notes = append(list.Notes, fmt.Sprintf("Requests are those of the newest pods, and autoscalers and LimitRanges are not considered, because the cluster could not be read: %v.", err))
	}
	return state.reconsider(list, &request), nil
}
