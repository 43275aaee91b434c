package doctorcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// testCluster answers as an API server: by path, with an object or with an error.
type testCluster struct {
	answers map[string]any
	denied  map[string]bool // "verb resource/subresource" that a SubjectAccessReview denies
	hangs   string          // a path without an answer
	report  *explain.MissingReport
	failure error // of weir
}

func (c *testCluster) Missing(context.Context, metric.Namespace) (*explain.MissingReport, error) {
	return c.report, c.failure
}

func (c *testCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == c.hangs {
		<-r.Context().Done()
		return
	}
	answer, ok := c.answers[r.URL.RequestURI()]
	if !ok {
		answer, ok = c.answers[r.URL.Path]
	}
	if r.Method == http.MethodPost && r.URL.Path == "/apis/authorization.k8s.io/v1/subjectaccessreviews" {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a := review.Spec.ResourceAttributes
		review.Status.Allowed = !c.denied[a.Verb+" "+a.Resource+"/"+a.Subresource]
		answer, ok = &review, true
	}
	if !ok {
		answer = apierrors.NewNotFound(schema.GroupResource{Resource: "paths"}, r.URL.Path)
	}
	status := http.StatusOK
	var failed *apierrors.StatusError
	if err, isError := answer.(error); isError && errors.As(err, &failed) {
		failed.ErrStatus.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		status, answer = int(failed.ErrStatus.Code), failed.ErrStatus
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// run runs a command line and returns what it prints, and its exit status.
func (c *testCluster) run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	srv := httptest.NewServer(c)
	defer srv.Close()
	root := &cobra.Command{Use: "weir"}
	root.AddCommand(NewCommand(Options{
		Connect: func() (Asker, error) { return c, nil },
		Cluster: func() (*cli.Kube, error) { return cli.NewKube(&rest.Config{Host: srv.URL}) },
	}))
	var out bytes.Buffer
	status := cli.Main(t.Context(), root, append([]string{"doctor"}, args...), &out, &out)
	return out.String(), status
}

func service(name, version, namespace, server string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": version + "." + name},
		"spec":     map[string]any{"service": map[string]any{"namespace": namespace, "name": server}},
		"status":   map[string]any{"conditions": []map[string]any{{"type": "Available", "status": "True"}}},
	}
}

const (
	services     = "/apis/apiregistration.k8s.io/v1/apiservices"
	pods         = "/api/v1/namespaces/weir-system/pods"
	nodes        = "/api/v1/nodes"
	certificates = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	hpas         = "/apis/autoscaling/v2/horizontalpodautoscalers"
	configOfN1   = "/api/v1/nodes/n1/proxy/configz"
)

// healthy returns a cluster in which nothing is wrong.
func healthy() *testCluster {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.NodeInfo.KubeletVersion = "v1.37.2"
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-1"}}
	pod.Spec.ServiceAccountName, pod.Spec.NodeName = "weir", "n1"
	pod.Spec.Containers = []corev1.Container{{Args: []string{"server", "--kubelet-account=$(POD_NAMESPACE)/reader"}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return &testCluster{
		report: &explain.MissingReport{Summary: "1 of 1 node has CPU and memory. 4 of 4 pods have CPU and memory."},
		answers: map[string]any{
			"/version": map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.2"},
			"/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication": &corev1.ConfigMap{Data: map[string]string{"requestheader-client-ca-file": "pem"}},
			services: map[string]any{"items": []any{
				service("metrics.k8s.io", "v1", "weir-system", "weir"), service("metrics.k8s.io", "v1beta1", "weir-system", "weir"),
				service("weir.dev", "v1alpha1", "weir-system", "weir"), map[string]any{"metadata": map[string]any{"name": "v1.apps"}},
			}},
			"/api/v1/namespaces/weir-system/services/weir": &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "weir"}}},
			"/api/v1/pods": &corev1.PodList{}, // of KEDA
			pods:           &corev1.PodList{Items: []corev1.Pod{pod}},
			nodes:          &corev1.NodeList{Items: []corev1.Node{node}},
			certificates:   &certificatesv1.CertificateSigningRequestList{},
			configOfN1:     map[string]any{"kubeletconfig": map[string]any{"cgroupDriver": "systemd"}},
			hpas:           &autoscalingv2.HorizontalPodAutoscalerList{},
		},
	}
}

func TestHealthyCluster(t *testing.T) {
	got, status := healthy().run(t, "--exit-code")
	const want = `ok       API server     v1.37.2
ok       aggregation    aggregated APIs know the API server by its certificate
ok       metrics APIs   v1.metrics.k8s.io is served by weir-system/weir
ok       metrics APIs   v1alpha1.weir.dev is served by weir-system/weir
ok       metrics APIs   v1beta1.metrics.k8s.io is served by weir-system/weir
ok       weir's pods    weir-system/weir-1 is ready, on node n1
ok       weir's rights  system:serviceaccount:weir-system:weir may list pods and nodes, and system:serviceaccount:weir-system:reader may read kubelets
ok       nodes          1 node: 1 with kubelet v1.37.2
ok       certificates   no kubelet waits for a serving certificate
ok       kubelets       all use the cgroup driver systemd
ok       HPAs           nothing keeps the 0 HPAs of the cluster from deciding
ok       numbers        1 of 1 node has CPU and memory. 4 of 4 pods have CPU and memory

12 ok.
`
	if diff := cmp.Diff(want, got); diff != "" || status != 0 {
		t.Errorf("status %d, want 0 (-want +got):\n%s", status, diff)
	}
}

// Each fault is found, named and has advice; what depends on it is skipped and nothing else.
func TestFaults(t *testing.T) {
	f := func(name string, harm func(*testCluster), status int, want ...string) {
		t.Run(name, func(t *testing.T) {
			t.Helper()
			c := healthy()
			harm(c)
			got, exit := c.run(t, "--exit-code")
			var lines []string
			for line := range strings.Lines(got) {
				if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "ok ") && !strings.HasSuffix(line, " ok.") {
					lines = append(lines, line)
				}
			}
			if diff := cmp.Diff(want, lines); diff != "" || exit != status {
				t.Errorf("status %d, want %d (-want +got):\n%s", exit, status, diff)
			}
		})
	}
	forbidden := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
	}
	f("no aggregation", func(c *testCluster) {
		c.answers["/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"] = &corev1.ConfigMap{}
	}, 2,
		"failure  aggregation    the API server does not publish the certificate by which aggregated APIs recognize it, so they refuse the requests that it forwards",
		"                        do  Start kube-apiserver with --requestheader-client-ca-file, --proxy-client-cert-file and --proxy-client-key-file.")
	f("metrics-server beside weir", func(c *testCluster) {
		c.answers[services] = map[string]any{"items": []any{service("metrics.k8s.io", "v1beta1", "kube-system", "metrics-server"), service("weir.dev", "v1alpha1", "weir-system", "weir")}}
	}, 0,
		"warning  metrics APIs   kube-system/metrics-server serves metrics.k8s.io to kubectl top and HPAs, not weir-system/weir",
		"                        do  To change that: docs/from-metrics-server.md.")
	f("an API that weir and KEDA both claim", func(c *testCluster) {
		items := c.answers[services].(map[string]any)
		items["items"] = append(items["items"].([]any), service("external.metrics.k8s.io", "v1beta1", "keda", "keda-operator-metrics-apiserver"))
		container := &c.answers[pods].(*corev1.PodList).Items[0].Spec.Containers[0]
		container.Args = append(container.Args, "--apis=resource,model,external")
	}, 0,
		"warning  weir's pods    v1beta1.external.metrics.k8s.io leads to keda/keda-operator-metrics-apiserver, so nobody asks weir-system/weir, which serves it, too",
		"                        do  Either run kubectl delete apiservice v1beta1.external.metrics.k8s.io, apply weir's, and let weir pass on what the other one answers (docs/adapters.md), or leave external out of weir's --apis. Two installations that apply theirs take it from each other.")
	keda := func(c *testCluster, args ...string) {
		api := service("external.metrics.k8s.io", "v1beta1", "weir-system", "weir")
		api["metadata"].(map[string]any)["annotations"] = map[string]string{"meta.helm.sh/release-name": "keda", "meta.helm.sh/release-namespace": "keda"}
		items := c.answers[services].(map[string]any)
		items["items"] = append(items["items"].([]any), api)
		container := &c.answers[pods].(*corev1.PodList).Items[0].Spec.Containers[0]
		container.Args = append(container.Args, "--apis=external")
		operator := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "keda", Name: "keda-operator-1"}}
		operator.Spec.Containers = []corev1.Container{{Args: args}}
		c.answers["/api/v1/pods?labelSelector=app%3Dkeda-operator"] = &corev1.PodList{Items: []corev1.Pod{operator}}
	}
	f("KEDA, whose release and operator change the API", func(c *testCluster) { keda(c, "--enable-cert-rotation=true") }, 2,
		"warning  adapters       v1beta1.external.metrics.k8s.io leads to weir-system/weir and is an object of the Helm release keda/keda, whose next upgrade can take it back",
		`                        do  Remove the object from that release: docs/adapters.md, "KEDA".`,
		"failure  adapters       KEDA's operator keda/keda-operator-1 writes its own CA into v1beta1.external.metrics.k8s.io: then the API server does not trust weir, or rejects the change, and KEDA has no metrics",
		`                        do  Start it with --enable-apiservice-patching=false (KEDA 2.20 or newer): docs/adapters.md, "KEDA".`)
	f("KEDA beside weir", func(c *testCluster) {
		keda(c, "--enable-cert-rotation=true", "--enable-apiservice-patching=false")
		owned := c.answers["/api/v1/namespaces/weir-system/services/weir"].(*corev1.Service)
		owned.Annotations = map[string]string{"meta.helm.sh/release-name": "keda", "meta.helm.sh/release-namespace": "keda"} // one chart for both
	}, 0)
	f("adapters that are away", func(c *testCluster) {
		c.report.At = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
		c.report.Adapters = []explain.Adapter{
			{Name: "keda", Message: "adapter keda did not answer within 5s", Since: c.report.At.Add(-5 * time.Minute)},
			{Name: "queues", Message: "adapter queues cannot be reached: connection refused", Since: c.report.At.Add(-5 * time.Second)},
		}
	}, 2,
		"failure  adapters       adapter keda did not answer within 5s (since 11:55:00 UTC, 5m ago)",
		"                        do  "+explain.AdapterAdvice,
		"warning  adapters       adapter queues cannot be reached: connection refused (since 11:59:55 UTC, 5s ago)",
		"                        do  "+explain.AdapterAdvice)
	f("an API that is not available", func(c *testCluster) {
		v1 := service("metrics.k8s.io", "v1", "weir-system", "weir")
		v1["status"] = map[string]any{"conditions": []map[string]any{{"type": "Available", "status": "False", "reason": "FailedDiscoveryCheck", "message": "no route to host"}}}
		c.answers[services] = map[string]any{"items": []any{v1, service("metrics.k8s.io", "v1beta1", "weir-system", "weir"), service("weir.dev", "v1alpha1", "weir-system", "weir")}}
	}, 2,
		"failure  metrics APIs   v1.metrics.k8s.io, of weir-system/weir, is not available: FailedDiscoveryCheck: no route to host",
		"                        do  kubectl describe apiservice v1.metrics.k8s.io")
	f("no weir", func(c *testCluster) {
		c.answers[services] = map[string]any{"items": []any{}}
		c.report, c.failure = nil, cli.Hintf(errors.New("this cluster has no weir"), "Install one.")
	}, 2,
		"failure  metrics APIs   weir is not installed: there is no APIService v1alpha1.weir.dev",
		"                        do  Install it: kubectl apply -k deploy/kustomize/base (docs/install.md).",
		"failure  metrics APIs   nobody serves v1beta1.metrics.k8s.io: kubectl top and HPAs have no numbers",
		"                        do  Install weir with its APIServices: kubectl apply -k deploy/kustomize/base.",
		"skipped  weir's pods    it is not known where weir is",
		"skipped  weir's rights  it is not known which account weir has",
		"skipped  numbers        this cluster has no weir",
		"                        do  Install one.")
	f("an image that is not there", func(c *testCluster) {
		p := &c.answers[pods].(*corev1.PodList).Items[0]
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "weir", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImageNeverPull"},
		}}}}
	}, 2,
		"failure  weir's pods    weir-system/weir-1 is not ready: container weir waits: ErrImageNeverPull",
		"                        do  kubectl -n weir-system describe pod weir-1")
	f("a receiver that rejects everything", func(c *testCluster) {
		c.report.At = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
		c.report.Receivers = []explain.Receiver{
			{Name: "remotewrite https://prometheus/api/v1/write", Message: "the receiver answers 401 Unauthorized: no", Since: c.report.At.Add(-5 * time.Minute)},
			{Name: "otlp http://collector:4318", Message: "connection refused", Since: c.report.At.Add(-5 * time.Second)},
		}
	}, 2,
		"failure  receivers      remotewrite https://prometheus/api/v1/write has accepted nothing since 11:55:00 UTC (5m ago): the receiver answers 401 Unauthorized: no",
		"                        do  "+explain.ReceiverAdvice,
		"warning  receivers      otlp http://collector:4318 has accepted nothing since 11:59:55 UTC (5s ago): connection refused",
		"                        do  "+explain.ReceiverAdvice)
	f("a right that is lost", func(c *testCluster) { c.denied = map[string]bool{"get nodes/stats": true} }, 2,
		"failure  weir's rights  system:serviceaccount:weir-system:reader may not get nodes/stats",
		"                        do  Apply weir's roles and bindings again: docs/install.md.")
	f("a node that is away", func(c *testCluster) {
		n := &c.answers[nodes].(*corev1.NodeList).Items[0]
		n.Status.NodeInfo.KubeletVersion, n.Status.Conditions = "v1.34.1", nil
		c.answers[configOfN1] = apierrors.NewServiceUnavailable("dial tcp: connection refused")
	}, 0,
		"warning  nodes          weir is tested with kubelets from 1.35 on: n1",
		"warning  nodes          not Ready: n1",
		"                        do  kubectl describe node n1",
		"warning  kubelets       the API server cannot read the settings of n1: dial tcp: connection refused")
	f("certificates that nobody approved", func(c *testCluster) {
		c.answers[certificates] = &certificatesv1.CertificateSigningRequestList{Items: []certificatesv1.CertificateSigningRequest{
			{ObjectMeta: metav1.ObjectMeta{Name: "csr-a"}, Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: certificatesv1.KubeletServingSignerName}},
			{ObjectMeta: metav1.ObjectMeta{Name: "csr-b"}, Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: "other"}},
		}}
	}, 2,
		"failure  certificates   1 request for the serving certificate of a kubelet is not approved: weir cannot verify such a kubelet",
		"                        do  Check who asks (`kubectl get csr`), then: kubectl certificate approve csr-a")
	request := func(name, node string, ago time.Duration, types ...certificatesv1.RequestConditionType) certificatesv1.CertificateSigningRequest {
		r := certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Now().Add(-ago))},
			Spec:       certificatesv1.CertificateSigningRequestSpec{SignerName: certificatesv1.KubeletServingSignerName, Username: "system:node:" + node},
		}
		for _, kind := range types {
			r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: kind})
		}
		return r
	}
	f("certificates of which only the last request counts", func(c *testCluster) {
		c.answers[certificates] = &certificatesv1.CertificateSigningRequestList{Items: []certificatesv1.CertificateSigningRequest{
			request("csr-old", "n1", time.Hour), request("csr-new", "n1", time.Minute, certificatesv1.CertificateApproved),
			request("csr-approved", "n2", time.Hour, certificatesv1.CertificateApproved), request("csr-denied", "n2", time.Minute, certificatesv1.CertificateDenied),
		}}
	}, 2,
		"failure  certificates   requests of kubelets for serving certificates were denied, or failed: weir cannot verify such a kubelet: csr-denied",
		"                        do  kubectl describe csr csr-denied")
	f("statistics from the runtime", func(c *testCluster) {
		c.answers[configOfN1] = map[string]any{"kubeletconfig": map[string]any{"cgroupDriver": "systemd", "featureGates": map[string]bool{"PodAndContainerStatsFromCRI": true}}}
	}, 0,
		"warning  kubelets       PodAndContainerStatsFromCRI is on, so /metrics/cadvisor lacks containers: n1",
		"                        do  Where weir reads /metrics/cadvisor, prefer /metrics/resource, or switch the gate off.")
	f("a cgroup driver that is not named", func(c *testCluster) {
		c.answers[configOfN1] = map[string]any{"kubeletconfig": map[string]any{}}
	}, 0,
		"skipped  kubelets       the cgroup driver is unknown: /configz does not name it on n1")
	f("HPAs", func(c *testCluster) {
		hpa := func(name string, conditions ...autoscalingv2.HorizontalPodAutoscalerCondition) autoscalingv2.HorizontalPodAutoscaler {
			h := autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
			h.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "web"}
			h.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType}}
			h.Status.Conditions = conditions
			return h
		}
		c.answers[hpas] = &autoscalingv2.HorizontalPodAutoscalerList{Items: []autoscalingv2.HorizontalPodAutoscaler{
			hpa("a", autoscalingv2.HorizontalPodAutoscalerCondition{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "FailedGetResourceMetric", Message: "missing request for cpu"}),
			hpa("b", autoscalingv2.HorizontalPodAutoscalerCondition{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "ScalingDisabled"}),
		}}
	}, 2,
		"failure  HPAs           shop/a: FailedGetResourceMetric: missing request for cpu",
		"                        do  weir explain hpa shop/a",
		"failure  HPAs           shop/a needs external.metrics.k8s.io, which nobody serves",
		"                        do  weir serves it with a component: docs/install.md, \"Custom and external metrics\".",
		"failure  HPAs           shop/a and shop/b scale the same Deployment web",
		"                        do  Delete one of them, or put its metrics into the other.",
		"failure  HPAs           shop/b needs external.metrics.k8s.io, which nobody serves",
		"                        do  weir serves it with a component: docs/install.md, \"Custom and external metrics\".")
	f("an HPA that no controller has looked at", func(c *testCluster) {
		list := make([]autoscalingv2.HorizontalPodAutoscaler, 2)
		for i, age := range []time.Duration{time.Hour, time.Second} {
			list[i].Namespace, list[i].Name = "shop", fmt.Sprint("h", i)
			list[i].Spec.ScaleTargetRef.Name = list[i].Name
			list[i].CreationTimestamp = metav1.NewTime(time.Now().Add(-age))
		}
		c.answers[hpas] = &autoscalingv2.HorizontalPodAutoscalerList{Items: list}
	}, 2,
		"failure  HPAs           shop/h0 has existed for more than 2m, and no controller has looked at it: its status has no conditions",
		"                        do  Look whether kube-controller-manager runs: kubectl -n kube-system get pods,leases")
	f("numbers that are missing", func(c *testCluster) {
		c.report = &explain.MissingReport{Summary: "0 of 1 node has CPU and memory.", Causes: []explain.MissingCause{
			{Reason: "NodeTimeout", Severity: metric.Broken.String(), Node: "n1", Message: "the node did not answer in time", Advice: "`weir explain node n1` shows more."},
			{Reason: "FirstSample", Severity: metric.Temporary.String()},
		}}
	}, 2,
		"failure  numbers        0 of 1 node has CPU and memory",
		"                        do  weir explain missing",
		"failure  numbers        NodeTimeout on n1: the node did not answer in time",
		"                        do  `weir explain node n1` shows more.")
	f("few rights", func(c *testCluster) {
		c.answers[certificates], c.answers[configOfN1] = forbidden("certificatesigningrequests"), forbidden("nodes/proxy")
	}, 0,
		`skipped  certificates   you may not read this: certificatesigningrequests is forbidden: no`,
		`skipped  kubelets       you may not read this: nodes/proxy is forbidden: no`)
	f("no API server", func(c *testCluster) { c.answers["/version"] = apierrors.NewUnauthorized("who are you") }, 2,
		"failure  API server  it does not answer: who are you",
		"                     do  Check the address and the credentials of your kubeconfig: `kubectl version` must answer.",
		"1 failure.")
}

// A kubelet that hangs costs neither the settings of others nor the checks that follow.
func TestKubeletHangs(t *testing.T) {
	c := healthy()
	list := c.answers[nodes].(*corev1.NodeList)
	other := list.Items[0]
	other.Name = "n0"
	list.Items = []corev1.Node{other, list.Items[0]}
	c.hangs = "/api/v1/nodes/n0/proxy/configz"
	got, status := c.run(t, "--timeout=3s")
	for _, want := range []string{"the API server cannot read the settings of n0:", "all others use the cgroup driver systemd", "ok       HPAs           nothing keeps"} {
		if !strings.Contains(got, want) || status != 0 {
			t.Errorf("status %d, want 0, and %q in\n%s", status, want, got)
		}
	}
}

func TestDocument(t *testing.T) {
	got, status := healthy().run(t, "-o", "jsonpath={.kind} {.findings[0].check}: {.findings[0].message}")
	if want := "DoctorReport API server: v1.37.2"; got != want || status != 0 {
		t.Errorf("got %q and status %d, want %q", got, status, want)
	}
	if got, status := healthy().run(t, "--timeout=0s"); status != 1 || !strings.Contains(got, "--timeout cannot be 0s") {
		t.Errorf("--timeout=0s: got %q and status %d", got, status)
	}
}
