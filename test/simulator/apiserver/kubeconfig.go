package apiserver

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns a kubeconfig file for the server at a URL. ca is the
// certificate with which clients verify the server, in PEM; it is empty for
// plain HTTP.
func Kubeconfig(url string, ca []byte) ([]byte, error) {
	const name = "simulated"
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{Server: url, CertificateAuthorityData: ca}
	config.AuthInfos[name] = &api.AuthInfo{Token: name}
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	file, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}
	return file, nil
}
