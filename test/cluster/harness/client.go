//go:build linux

package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// UserConfig returns the client configuration of a user with this name and
// these groups, with a new certificate. RBAC decides what the user may do.
func (c *Cluster) UserConfig(name string, groups ...string) (*rest.Config, error) {
	ca, user, err := c.credentials(name, groups)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: c.url("https", 6443, ""),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: ca, CertData: user.certificate, KeyData: user.key,
		},
		// Tests send bursts of requests. A limit in the client would change what they
		// measure.
		QPS:   -1,
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }, // the cluster is on this machine
	}, nil
}

func (c *Cluster) credentials(name string, groups []string) (ca []byte, user pair, err error) {
	if ca, err = os.ReadFile(c.CA()); err != nil {
		return nil, pair{}, fmt.Errorf("read authority: %w", err)
	}
	user, err = c.pki().pair("ca", subject{name: name, groups: groups})
	return ca, user, err
}

// WriteKubeconfig writes a kubeconfig of a user, as [Cluster.UserConfig]
// describes.
func (c *Cluster) WriteKubeconfig(path, name string, groups ...string) error {
	ca, user, err := c.credentials(name, groups)
	if err != nil {
		return err
	}
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{c.state.Name: {Server: c.url("https", 6443, ""), CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: user.certificate, ClientKeyData: user.key}},
		Contexts:       map[string]*clientcmdapi.Context{c.state.Name: {Cluster: c.state.Name, AuthInfo: name}},
		CurrentContext: c.state.Name,
	}, path)
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

func (c *Cluster) writeKubeconfig(file, name string, groups ...string) error {
	return c.WriteKubeconfig(filepath.Join(c.dir, file), name, groups...)
}

func (c *Cluster) writeAdminKubeconfig() error {
	return c.WriteKubeconfig(c.Kubeconfig(), "kubernetes-admin", "system:masters")
}

// Kubectl runs the cluster's kubectl as its administrator. If kubectl fails,
// the error contains its message.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	return c.kubectl(ctx, c.Binary("kubectl"), nil, args)
}

// KubectlOf is [Cluster.Kubectl] with another kubectl, which is at path.
func (c *Cluster) KubectlOf(ctx context.Context, path string, args ...string) (stdout, stderr string, err error) {
	return c.kubectl(ctx, path, nil, args)
}

// Apply applies manifests, YAML or JSON.
func (c *Cluster) Apply(ctx context.Context, manifests string) error {
	_, _, err := c.kubectl(ctx, c.Binary("kubectl"), strings.NewReader(manifests), []string{"apply", "-f", "-"})
	return err
}

func (c *Cluster) kubectl(ctx context.Context, path string, stdin io.Reader, args []string) (stdout, stderr string, err error) {
	cmd := exec.CommandContext(ctx, path, append([]string{"--kubeconfig", c.Kubeconfig()}, args...)...)
	// A discovery cache of another cluster with the same address must not be used.
	cmd.Env = append(os.Environ(), "KUBECACHEDIR="+filepath.Join(c.dir, "kubectl-cache"), "HOME="+c.dir, "NO_PROXY=*", "no_proxy=*")
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	if err = cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), errs.String(), err
}
