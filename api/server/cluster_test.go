package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fakeCluster is the API server of a cluster for tests: it reviews tokens and access, and it has
// the ConfigMap with the CAs.
type fakeCluster struct {
	kubeconfig string
	clientCA   *authority // signs the certificates of the cluster's users
	proxyCA    *authority // signs the certificate of the aggregating API server

	mu           sync.Mutex
	tokens       map[string]string // token to user. A JSON Web Token is only for its audiences
	tokenReviews int
	rights       []string // "user verb what", in the form of the function asked
	reviews      []string // every access review, in order
}

func newCluster(t testing.TB) *fakeCluster {
	t.Helper()
	c := &fakeCluster{clientCA: newAuthority(t, "client-ca"), proxyCA: newAuthority(t, "proxy-ca"), tokens: map[string]string{}}
	srv := httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	c.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	write(t, c.kubeconfig, fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: weirs-own}}]
current-context: c
`, srv.URL))
	return c
}

// user adds a token and gives its user rights.
func (c *fakeCluster) user(name string, rights ...string) (token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens["token-of-"+name] = name
	for _, right := range rights {
		c.rights = append(c.rights, name+" "+right)
	}
	return "token-of-" + name
}

// tokenFor adds a token of a user that is only for these audiences.
func (c *fakeCluster) tokenFor(name string, audiences ...string) (token string) {
	claims, _ := json.Marshal(map[string]any{"sub": name, "aud": audiences})
	token = "e30." + base64.RawURLEncoding.EncodeToString(claims) + ".c2ln"
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens[token] = name
	return token
}

// audiencesOf returns the audiences of a token of tokenFor. Other tokens are for the API server.
func audiencesOf(token string) []string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return []string{"api-server"}
	}
	var claims struct{ Aud []string }
	text, _ := base64.RawURLEncoding.DecodeString(parts[1])
	_ = json.Unmarshal(text, &claims) // a made-up token has no audience
	return claims.Aud
}

func (c *fakeCluster) asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.reviews)
}

func (c *fakeCluster) serve(w http.ResponseWriter, r *http.Request) {
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(v)
	}
	switch r.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		user, ok := c.tokens[review.Spec.Token]
		c.tokenReviews++
		c.mu.Unlock()
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: ok, User: authenticationv1.UserInfo{Username: user}}
		audiences := audiencesOf(review.Spec.Token)
		if len(review.Spec.Audiences) == 0 {
			review.Spec.Audiences = []string{"api-server"}
		}
		audiences = slices.DeleteFunc(audiences, func(a string) bool { return !slices.Contains(review.Spec.Audiences, a) })
		if review.Status.Audiences = audiences; !ok || len(audiences) == 0 {
			review.Status = authenticationv1.TokenReviewStatus{Error: "invalid bearer token"}
		}
		answer(review)
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		asked := review.Spec.User + " "
		if a := review.Spec.ResourceAttributes; a != nil {
			resource := a.Resource + "." + a.Group
			if a.Subresource != "" {
				resource += "/" + a.Subresource
			}
			asked += a.Verb + " " + resource + " " + a.Namespace
			if a.Name != "" {
				asked += "/" + a.Name
			}
		} else {
			asked += review.Spec.NonResourceAttributes.Verb + " " + review.Spec.NonResourceAttributes.Path
		}
		asked = strings.TrimSpace(asked)
		c.mu.Lock()
		c.reviews = append(c.reviews, asked)
		review.Status.Allowed = slices.Contains(c.rights, asked)
		c.mu.Unlock()
		answer(review)
	case "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication":
		answer(c.configMap())
	case "/api/v1/namespaces/kube-system/configmaps":
		switch q := r.URL.Query(); {
		case q.Get("watch") == "true":
			w.Header().Set("Content-Type", "application/json")
			if q.Get("sendInitialEvents") == "true" {
				event(w, "ADDED", c.configMap())
				event(w, "BOOKMARK", corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					ResourceVersion: "1", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
				}})
			}
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			answer(corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.ConfigMap{c.configMap()}})
		}
	default:
		http.NotFound(w, r)
	}
}

// event writes an event of a watch.
func event(w http.ResponseWriter, what string, m corev1.ConfigMap) {
	m.TypeMeta = metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}
	json.NewEncoder(w).Encode(map[string]any{"type": what, "object": m})
}

func (c *fakeCluster) configMap() corev1.ConfigMap {
	return corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication", ResourceVersion: "1"},
		Data: map[string]string{
			"client-ca-file":                     c.clientCA.pem,
			"requestheader-client-ca-file":       c.proxyCA.pem,
			"requestheader-allowed-names":        `["front-proxy-client"]`,
			"requestheader-username-headers":     `["X-Remote-User"]`,
			"requestheader-group-headers":        `["X-Remote-Group"]`,
			"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		},
	}
}

// authority is a CA that signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

// sign returns a certificate and key as PEM, valid for clients and for a server on localhost.
func (a *authority) sign(t testing.TB, name string, serial int64) (cert, key string) {
	t.Helper()
	private := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
}

// client returns a client certificate.
func (a *authority) client(t testing.TB, name string) tls.Certificate {
	t.Helper()
	cert, key := a.sign(t, name, 7)
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
