package app

import (
	"net/http"
	"time"

	"github.com/spf13/cobra"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/autoscaling"
	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/autoscaler/manifest"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
	"github.com/weir-metrics/weir/client/cli"
)

// newAutoscaler returns the commands that ask what an autoscaler's manifest would do.
func newAutoscaler(getenv func(string) string, local string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "autoscaler",
		Short: "Say what an autoscaler's manifest would do, now or over time",
		Long: `Say what the manifest of a HorizontalPodAutoscaler or an Autoscaler would do:
"evaluate" on the live metrics of a running weir, "replay" over a recording or a
Prometheus. What an autoscaler of the cluster decides and why, "weir explain
autoscaler" and "weir explain hpa" say. None of them changes anything.`,
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newEvaluate(getenv, local), newAutoscalerReplay())
	return cmd
}

// autoscalingNeeds is what one must be allowed for the explanation of an autoscaler,
// or for an evaluation: to read that autoscaler, or to ask for evaluations, and in
// both cases to list the numbers of the namespace's pods, which the answer tells.
func autoscalingNeeds(r *http.Request) []server.Review {
	request, err := autoscaling.ParseRequest(r, time.Now())
	if err != nil {
		return everything()
	}
	if request.Evaluate {
		return []server.Review{
			{Verb: "create", Group: weirdev.Group, Resource: autoscaling.Evaluations, Namespace: request.Namespace},
			server.ListPods(request.Namespace),
		}
	}
	return scalerNeeds(request.Kind, request.Namespace, request.Name)
}

// scalerNeeds is what one must be allowed for all there is to say of an autoscaler.
func scalerNeeds(kind, namespace, name string) []server.Review {
	own := server.Review{Verb: "get", Group: autoscalingv2.GroupName, Resource: autoscaling.HPAs, Namespace: namespace, Name: name}
	if kind == manifest.Autoscaler {
		own.Group, own.Resource = v1alpha1.Group, autoscaling.Autoscalers
	}
	return []server.Review{own, server.ListPods(namespace)}
}

// autoscalingResources are what discovery tells of the same.
func autoscalingResources() []metav1.APIResource {
	return []metav1.APIResource{
		{Name: autoscaling.HPAs + "/explanation", Kind: autoscaling.ExplanationKind, Namespaced: true, Verbs: metav1.Verbs{"get"}},
		{Name: autoscaling.Autoscalers + "/explanation", Kind: autoscaling.ExplanationKind, Namespaced: true, Verbs: metav1.Verbs{"get"}},
		{Name: autoscaling.Evaluations, Kind: autoscaling.EvaluationKind, Namespaced: true, Verbs: metav1.Verbs{"create"}},
	}
}
