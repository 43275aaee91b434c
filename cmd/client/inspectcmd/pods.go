package inspectcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/flags/clusterflag"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/sources/host/inspect"
)

const (
	// askTimeout is how long the kubelet or the API server may take to answer.
	askTimeout = 30 * time.Second
	// maxPodList limits the answer, in bytes: a node has about a hundred pods of a few kilobytes
	// each.
	maxPodList = 64 << 20
	// podToken is the file with the pod's credentials for a kubelet.
	podToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"
)

// podFlags show where the pods of this node are read.
type podFlags struct {
	pods              string
	tokenFile, caFile string
	certFile, keyFile string
	insecure          bool
	node              string
	cluster           clusterflag.Flags
}

func (p *podFlags) addFlags(f *pflag.FlagSet) {
	f.StringVar(&p.pods, "pods", "", "`FILE|URL` of this node's pods: a kubelet's /pods, or the output of kubectl get pods --output=json")
	f.StringVar(&p.tokenFile, "token-file", "", "`FILE` with the token for the URL of --pods (default: the service account's, in a pod)")
	f.StringVar(&p.caFile, "ca-file", "", "`FILE` with the CA certificates for the URL of --pods (default: the system's)")
	f.StringVar(&p.certFile, "client-cert", "", "`FILE` with the client certificate for the URL of --pods")
	f.StringVar(&p.keyFile, "client-key", "", "`FILE` with the key of --client-cert")
	f.BoolVar(&p.insecure, "insecure-tls", false, "accept any certificate of the URL of --pods")
	f.StringVar(&p.node, "node-name", "", "name of this node's Node object (default: $NODE_NAME, or else the host name)")
	p.cluster.Add(f)
}

// asks reports whether the flags name a source of pods.
func (p *podFlags) asks() bool { return p.pods != "" || p.cluster.Given() }

// isURL reports whether --pods is a URL and not a file.
func (p *podFlags) isURL() bool {
	return strings.HasPrefix(p.pods, "http://") || strings.HasPrefix(p.pods, "https://")
}

// verifies reports whether the certificate of the server is verified.
func (p *podFlags) verifies() bool { return !p.insecure && !strings.HasPrefix(p.pods, "http://") }

func (p *podFlags) check() error {
	switch {
	case p.pods != "" && p.cluster.Given():
		return cli.Usage(errors.New("--pods excludes --kubeconfig, --master and --in-cluster: choose one source of pods"))
	case !p.isURL() && (p.tokenFile != "" || p.caFile != "" || p.certFile != "" || p.keyFile != "" || p.insecure):
		return cli.Usage(errors.New("--token-file, --ca-file, --client-cert, --client-key and --insecure-tls are for the URL of --pods"))
	case (p.certFile == "") != (p.keyFile == ""):
		return cli.Usage(errors.New("a client certificate is two files: set both --client-cert and --client-key"))
	}
	return p.cluster.Check()
}

// ask returns this node's pods, or nil if the flags name no source of pods.
func (p *podFlags) ask(ctx context.Context) (*inspect.Pods, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	switch {
	case p.isURL():
		return p.askKubelet(ctx)
	case p.pods != "":
		return readPodFile(p.pods)
	case p.cluster.Given():
		return p.askServer(ctx)
	}
	return nil, nil
}

func (p *podFlags) askKubelet(ctx context.Context) (*inspect.Pods, error) {
	address, err := url.Parse(p.pods)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("--pods: %q is not a URL", humanize.URL(p.pods)))
	}
	config := rest.Config{
		BearerTokenFile: p.tokenFile,
		TLSClientConfig: rest.TLSClientConfig{CAFile: p.caFile, CertFile: p.certFile, KeyFile: p.keyFile, Insecure: p.insecure},
	}
	if _, err := os.Stat(podToken); err == nil && address.Scheme == "https" && p.tokenFile == "" && p.certFile == "" {
		config.BearerTokenFile = podToken
	}
	client, err := rest.HTTPClientFor(&config)
	if err != nil {
		return nil, fmt.Errorf("configure the kubelet's client: %w", err)
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.pods, nil)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("--pods: %w", err))
	}
	asked := inspect.Pods{From: "the kubelet at " + address.Host, At: time.Now(), Static: true}
	response, err := client.Do(request)
	if err != nil {
		return nil, cli.Hintf(fmt.Errorf("get the pods of the kubelet: %w", err), "If the kubelet's certificate does not verify, name its CA with --ca-file.")
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxPodList+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the pods of the kubelet: %w", err)
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden:
		return nil, cli.Hintf(fmt.Errorf("get the pods of the kubelet: %s", response.Status),
			"The user of --token-file or --client-cert needs the right to get nodes/pods or nodes/proxy.")
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("get the pods of the kubelet: %s", response.Status)
	}
	list, err := parsePodList(body)
	if err != nil {
		return nil, fmt.Errorf("read the pods of the kubelet: %w", err)
	}
	return podsOf(list, asked)
}

func (p *podFlags) askServer(ctx context.Context) (*inspect.Pods, error) {
	node, err := clusterflag.NodeName(p.node)
	if err != nil {
		return nil, err
	}
	config, err := informer.RESTConfig(p.cluster.Options())
	if err != nil {
		return nil, fmt.Errorf("configure API client: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create API client: %w", err)
	}
	asked := inspect.Pods{From: "the API server for node " + node, At: time.Now()}
	// Without a resource version the API server returns the newest list, not that of a cache.
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	return podsOf(list, asked)
}

// readPodFile reads pods from a file. Their age is that of the file.
func readPodFile(name string) (*inspect.Pods, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read pods: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read pods: %s is not a regular file, so the age of its pods is unknown: write them to a file first", name)
	}
	if info.Size() > maxPodList {
		return nil, fmt.Errorf("read pods: %s has %d bytes: the pods of one node have at most %d", name, info.Size(), maxPodList)
	}
	body, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read pods: %w", err)
	}
	list, err := parsePodList(body)
	if err != nil {
		return nil, fmt.Errorf("read pods: %s: %w", name, err)
	}
	return podsOf(list, inspect.Pods{From: name, At: info.ModTime(), Static: ofKubelet(list)})
}

// parsePodList parses a list of pods as JSON. An incomplete list is an error: cgroups of pods that
// are not in the list would look like leftovers.
func parsePodList(body []byte) (*v1.PodList, error) {
	if len(body) > maxPodList {
		return nil, fmt.Errorf("it has more than %d bytes, too many for the pods of one node", maxPodList)
	}
	list := new(v1.PodList)
	if err := json.Unmarshal(body, list); err != nil {
		return nil, fmt.Errorf("decode pod list: %w", err)
	}
	if list.Kind != "PodList" && list.Kind != "List" {
		return nil, fmt.Errorf("it is of kind %q, not PodList: use a kubelet's /pods, or the output of kubectl get pods --output=json", list.Kind)
	}
	return list, nil
}

// podsOf converts the pods in a list to facts. Each pod keeps its own UID, also if two pods have
// the same name, because only the UID is in the name of a cgroup.
func podsOf(list *v1.PodList, pods inspect.Pods) (*inspect.Pods, error) {
	if list.Continue != "" {
		return nil, fmt.Errorf("%s is only the first part of a list: request it without a limit", pods.From)
	}
	for i := range list.Items {
		item := &list.Items[i]
		if item.UID == "" || item.Kind != "" && item.Kind != "Pod" {
			return nil, fmt.Errorf("%s has an item that is not a pod with a UID: %s %s/%s", pods.From, item.Kind, item.Namespace, item.Name)
		}
		one := informer.FactsFromList(nil, &v1.PodList{Items: list.Items[i : i+1]}, pods.At)
		one.EachPod(func(p *cluster.Pod) bool {
			pods.List = append(pods.List, p)
			return true
		})
	}
	return &pods, nil
}

// ofKubelet reports whether a list comes from a kubelet. Such a list has the static pods
// themselves; the API server has only their mirror pods.
func ofKubelet(list *v1.PodList) bool {
	for i := range list.Items {
		a := list.Items[i].Annotations
		_, mirror := a[v1.MirrorPodAnnotationKey]
		if a["kubernetes.io/config.source"] != "" && !mirror {
			return true
		}
	}
	return false
}
