package kubeletconfig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// mostConfigz is more than any kubelet's configuration.
const mostConfigz = 4 << 20

// AskOrDefault asks as Ask does. A kubelet that does not answer is assumed to have its
// defaults; the warning then says why, and is empty otherwise.
func AskOrDefault(ctx context.Context, client *http.Client, address string) (k *Kubelet, warning string) {
	k, err := Ask(ctx, client, address)
	if err == nil {
		return k, ""
	}
	return Default(), fmt.Sprintf("the kubelet at %s does not tell its thresholds, so its defaults are assumed: %v. "+
		"--kubelet-url, --kubelet-certificate-authority and --kubelet-insecure-tls say where it is and how to trust it; start the agent again then", address, err)
}

// Ask asks a kubelet itself, at an address like https://192.0.2.7:10250: whoever asks needs
// the right to get nodes/configz. Kubelets before 1.33 want nodes/proxy instead, with which one can run
// commands in every container of the node: no agent has it.
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
