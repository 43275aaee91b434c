package beside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
)

// mostConfigz is more than any kubelet's configuration.
const mostConfigz = 4 << 20

// Ask asks a kubelet itself, at an address like https://192.0.2.7:10250: whoever asks needs
// the right to get nodes/configz (Kubernetes 1.32; before that, nodes/proxy).
func Ask(ctx context.Context, client *http.Client, address string) (*Kubelet, error) {
	const doing = "ask the kubelet for its configuration: %w"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/configz", nil)
	if err != nil {
		return nil, fmt.Errorf(doing, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf(doing, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostConfigz))
	switch {
	case err != nil:
		return nil, fmt.Errorf(doing, err)
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf(doing, errors.New(response.Status+": allow get on nodes/configz to this agent's service account"))
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf(doing, errors.New(response.Status))
	}
	return Parse(body)
}

// Read asks a node's kubelet by way of the API server, for which the right to get
// nodes/proxy is needed. That right lets one run commands in every container of the node:
// where the kubelet can be reached, Ask needs less.
func Read(ctx context.Context, client kubernetes.Interface, node string) (*Kubelet, error) {
	body, err := client.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("configz").DoRaw(ctx)
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("ask for the kubelet's configuration: %w: allow get on nodes/proxy, or better ask the kubelet itself, for which nodes/configz suffices", err)
	case err != nil:
		return nil, fmt.Errorf("ask for the kubelet's configuration: %w", err)
	}
	return Parse(body)
}
