package app

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/client/connect"
	"github.com/weir-metrics/weir/client/resizecmd"
	"github.com/weir-metrics/weir/cluster/informer"
)

// newResize returns the commands about requests that fit. Pods are changed with the
// caller's kubeconfig: a weir has no right to.
func newResize(getenv func(string) string, local string) *cobra.Command {
	var server, kubeconfig, inContext string
	cmd := resizecmd.NewCommand(resizecmd.Options{
		Connect: func() (resizecmd.Asker, error) { return connectTo(cmp.Or(server, getenv("WEIR_SERVER")), local) },
		Cluster: func() (kubernetes.Interface, error) {
			config, err := connect.Kubeconfig(kubeconfig, inContext).ClientConfig()
			if err != nil {
				return nil, connect.NoCluster(err, "Name a kubeconfig with --kubeconfig=FILE: pods are read and changed there.")
			}
			config.UserAgent = "weir"
			return kubernetes.NewForConfig(config)
		},
	})
	addServer(cmd, &server, local)
	cmd.PersistentFlags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig `FILE` of the cluster (default: as kubectl's)")
	cmd.PersistentFlags().StringVar(&inContext, "context", "", "context of the kubeconfig")
	return cmd
}

// newRecommendations returns what answers which requests could be smaller.
func newRecommendations(p *plan, f *front) (http.Handler, error) {
	kube, err := informer.RESTConfig(*p.Cluster)
	if err != nil {
		return nil, noCluster(err)
	}
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return nil, fmt.Errorf("create API client: %w", err)
	}
	return resizeapi.NewHandler(resizeapi.Options{
		View: read(f.sinks, func(v view) resizeapi.View { return v }), Facts: f.facts, Now: f.now,
		Pod: func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
			return client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	}), nil
}

// resizeNeeds is what one must be allowed for recommendations: to see the numbers that
// they are made of.
func resizeNeeds(r *http.Request) []server.Review {
	request, err := resizeapi.ParseRequest(r)
	switch {
	case err != nil:
		return everything()
	case request.Pod != "":
		return []server.Review{server.GetPod(request.Namespace, request.Pod)}
	}
	return []server.Review{server.ListPods(request.Namespace)}
}

// resizeResources are what discovery tells of the same.
func resizeResources() []metav1.APIResource {
	return []metav1.APIResource{{Name: resizeapi.Resource, Kind: resizeapi.Kind, Namespaced: true, Verbs: metav1.Verbs{"get", "list"}}}
}
