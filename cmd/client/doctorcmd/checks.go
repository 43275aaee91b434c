package doctorcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/version"
	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// The versions of Kubernetes that weir is tested with, as minor versions of 1.
const oldestTested, newestTested = 35, 37

// shownNodes is how many nodes a message names.
const shownNodes = 5

// kubeletsAtOnce is how many kubelets are asked at the same time.
const kubeletsAtOnce = 20

// undecided is how long an HPA may be without a condition. The controller looks at each every 15 s by
// default.
const undecided = 2 * time.Minute

// passing is how long a receiver may accept nothing, and an adapter not answer, as while it restarts.
const passing = time.Minute

// examination is one run of all checks. Later checks use what earlier ones found.
type examination struct {
	cluster *cli.Kube
	connect func() (Asker, error)
	program string
	line    *cli.Progress // the check that runs

	findings []Finding
	check    string                 // the check that runs
	services map[string]*apiService // of the metrics APIs, by their names
	weirPods []corev1.Pod           // of the Service that serves weir.dev
	release  string                 // the Helm release of that Service; empty if none has it
	nodes    *corev1.NodeList       // nil until listNodes
}

// run runs the checks in their order. If the API server does not answer, there is only the first.
func (e *examination) run(ctx context.Context) []Finding {
	checks := []struct {
		name string
		run  func(context.Context) error
	}{
		{"API server", e.checkAPIServer},
		{"aggregation", e.checkAggregation},
		{"metrics APIs", e.checkAPIServices},
		{"weir's pods", e.checkPods},
		{"weir's rights", e.checkRights},
		{"adapters", e.checkAdapters},
		{"nodes", e.checkNodes},
		{"certificates", e.checkCertificates},
		{"kubelets", e.checkKubelets},
		{"HPAs", e.checkHPAs},
		{"numbers", e.checkNumbers},
	}
	for i, c := range checks {
		e.check = c.name
		e.line.Set(fmt.Sprintf("check %d of %d: %s", i+1, len(checks), c.name), 0, 0)
		before := len(e.findings)
		if err := c.run(ctx); err != nil {
			e.skip(err)
		}
		if c.name == "API server" && e.findings[before].Result == Failure {
			break
		}
	}
	return e.findings
}

func (e *examination) add(r Result, advice, format string, args ...any) {
	e.findings = append(e.findings, Finding{Check: e.check, Result: r, Message: fmt.Sprintf(format, args...), Advice: advice})
}

// skip reports a check that could not be made.
func (e *examination) skip(err error) {
	if apierrors.IsForbidden(err) {
		e.add(Skipped, "", "you may not read this: %v", err)
		return
	}
	advice := ""
	if hint, ok := errors.AsType[*cli.Hint](err); ok {
		advice = hint.Try
	}
	e.add(Skipped, advice, "%v", err)
}

// checkAPIServer reports the version. It skips nothing: without an API server there is no cluster.
func (e *examination) checkAPIServer(ctx context.Context) error {
	var v version.Info
	if err := e.cluster.Get(ctx, "/version", &v); err != nil {
		e.add(Failure, "Check the address and the credentials of your kubeconfig: `kubectl version` must answer.", "it does not answer: %v", err)
		return nil
	}
	minor, err := strconv.Atoi(strings.TrimRight(v.Minor, "+"))
	switch {
	case err != nil || v.Major != "1":
		e.add(Warning, "", "%s is not a version that weir knows", v.GitVersion)
	case minor < oldestTested || minor > newestTested:
		e.add(Warning, "", "%s: weir is tested with 1.%d to 1.%d", v.GitVersion, oldestTested, newestTested)
	default:
		e.add(OK, "", "%s", v.GitVersion)
	}
	return nil
}

// checkAggregation looks for what aggregated APIs need to identify a caller.
func (e *examination) checkAggregation(ctx context.Context) error {
	var m corev1.ConfigMap
	err := e.cluster.Get(ctx, "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", &m)
	switch {
	case err != nil:
		return err
	case m.Data["requestheader-client-ca-file"] == "":
		e.add(Failure, "Start kube-apiserver with --requestheader-client-ca-file, --proxy-client-cert-file and --proxy-client-key-file.",
			"the API server does not publish the certificate by which aggregated APIs recognize it, so they refuse the requests that it forwards")
	default:
		e.add(OK, "", "aggregated APIs know the API server by its certificate")
	}
	return nil
}

// apiService is what is needed of an APIService (apiregistration.k8s.io/v1).
type apiService struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Service *struct{ Namespace, Name string }
	}
	Status struct {
		Conditions []metav1.Condition
	}
}

// server returns namespace/name of the Service, or "" if the API server itself serves the API.
func (a *apiService) server() string {
	if a == nil || a.Spec.Service == nil {
		return ""
	}
	return a.Spec.Service.Namespace + "/" + a.Spec.Service.Name
}

// The names of APIServices.
const (
	resourceMetricsV1      = "v1.metrics.k8s.io"
	resourceMetricsV1beta1 = "v1beta1.metrics.k8s.io"
	externalMetrics        = "v1beta1.external.metrics.k8s.io"
	weirAPI                = "v1alpha1.weir.dev"
)

// checkAPIServices checks which Services serve the metrics APIs, and whether they are available.
func (e *examination) checkAPIServices(ctx context.Context) error {
	var list struct{ Items []apiService }
	if err := e.cluster.Get(ctx, "/apis/apiregistration.k8s.io/v1/apiservices", &list); err != nil {
		return err
	}
	e.services = map[string]*apiService{}
	for i := range list.Items {
		a := &list.Items[i]
		if _, group, _ := strings.Cut(a.Name, "."); group == "weir.dev" || group == "metrics.k8s.io" || strings.HasSuffix(group, ".metrics.k8s.io") {
			e.services[a.Name] = a
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.services)) {
		e.reportAPIService(e.services[name])
	}
	v1, v1beta1, weir := e.services[resourceMetricsV1].server(), e.services[resourceMetricsV1beta1].server(), e.services[weirAPI].server()
	const apply = "kubectl apply -k deploy/kustomize/base"
	if weir == "" {
		e.add(Failure, "Install it: "+apply+" (docs/install.md).", "weir is not installed: there is no APIService %s", weirAPI)
	}
	switch {
	case v1beta1 == "":
		e.add(Failure, "Install weir with its APIServices: "+apply+".", "nobody serves %s: kubectl top and HPAs have no numbers", resourceMetricsV1beta1)
	case v1 != "" && v1 != v1beta1:
		e.add(Failure, "Let both APIServices name the same Service: clients choose one of them.", "%s serves v1 of metrics.k8s.io and %s v1beta1", v1, v1beta1)
	case weir != "" && v1beta1 != weir:
		e.add(Warning, "To change that: docs/from-metrics-server.md.", "%s serves metrics.k8s.io to kubectl top and HPAs, not %s", v1beta1, weir)
	}
	return nil
}

func (e *examination) reportAPIService(a *apiService) {
	for _, c := range a.Status.Conditions {
		if c.Type == "Available" && c.Status != metav1.ConditionTrue {
			e.add(Failure, "kubectl describe apiservice "+a.Name, "%s, of %s, is not available: %s: %s", a.Name, a.server(), c.Reason, c.Message)
			return
		}
	}
	e.add(OK, "", "%s is served by %s", a.Name, cmp.Or(a.server(), "the API server itself"))
}

// checkPods looks at the pods behind weir's Service.
func (e *examination) checkPods(ctx context.Context) error {
	a := e.services[weirAPI]
	if a == nil || a.Spec.Service == nil {
		return errors.New("it is not known where weir is")
	}
	namespace := a.Spec.Service.Namespace
	var service corev1.Service
	err := e.cluster.Get(ctx, "/api/v1/namespaces/"+namespace+"/services/"+a.Spec.Service.Name, &service)
	if apierrors.IsNotFound(err) {
		e.add(Failure, "Apply weir's manifests again: docs/install.md.", "there is no Service %s, to which %s leads", a.server(), weirAPI)
		return nil
	}
	if err != nil {
		return err
	}
	var pods corev1.PodList
	ofService := metav1.ListOptions{LabelSelector: labels.SelectorFromSet(service.Spec.Selector).String()}
	if err := e.cluster.List(ctx, "/api/v1/namespaces/"+namespace+"/pods", ofService, &pods); err != nil {
		return err
	}
	e.weirPods, e.release = pods.Items, releaseOf(&service.ObjectMeta)
	if len(pods.Items) == 0 {
		e.add(Failure, "kubectl -n "+namespace+" get deployments,replicasets", "Service %s has no pods", a.server())
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		switch reason := notReady(p); reason {
		case "":
			e.add(OK, "", "%s/%s is ready, on node %s", p.Namespace, p.Name, p.Spec.NodeName)
		default:
			e.add(Failure, fmt.Sprintf("kubectl -n %s describe pod %s", p.Namespace, p.Name), "%s/%s is not ready: %s", p.Namespace, p.Name, reason)
		}
	}
	if len(pods.Items) > 0 {
		e.checkClaims(&pods.Items[0], a.server())
	}
	return nil
}

// checkClaims compares the APIs that a pod of weir serves by its --apis with the Services to which
// their APIServices lead. The Service of weir is own.
func (e *examination) checkClaims(p *corev1.Pod, own string) {
	for _, name := range []string{"custom", "external"} {
		group := name + ".metrics.k8s.io"
		if !servesAPI(p, name) {
			continue
		}
		for _, service := range slices.Sorted(maps.Keys(e.services)) {
			if server := e.services[service].server(); strings.HasSuffix(service, "."+group) && server != own {
				e.add(Warning, fmt.Sprintf("Either run kubectl delete apiservice %s, apply weir's, and let weir pass on what the other one answers (docs/adapters.md), or leave %s out of weir's --apis. Two installations that apply theirs take it from each other.", service, name),
					"%s leads to %s, so nobody asks %s, which serves it, too", service, cmp.Or(server, "the API server itself"), own)
			}
		}
	}
}

// releaseOf returns NAMESPACE/NAME of the Helm release that has an object; empty for none.
func releaseOf(o *metav1.ObjectMeta) string {
	return strings.Trim(o.Annotations["meta.helm.sh/release-namespace"]+"/"+o.Annotations["meta.helm.sh/release-name"], "/")
}

// checkAdapters looks for what takes external metrics from weir while weir serves them: another release
// that has the APIService, and KEDA's operator, which writes its CA into it.
func (e *examination) checkAdapters(ctx context.Context) error {
	if len(e.weirPods) == 0 || !servesAPI(&e.weirPods[0], "external") {
		return nil
	}
	a := e.services[externalMetrics]
	if a.server() != "" && a.server() == e.services[weirAPI].server() {
		if release := releaseOf(&a.ObjectMeta); release != "" && release != e.release {
			e.add(Warning, `Remove the object from that release: docs/adapters.md, "KEDA".`, "%s leads to %s and is an object of the Helm release %s, whose next upgrade can take it back", a.Name, a.server(), release)
		}
	}
	var operators corev1.PodList
	if err := e.cluster.List(ctx, "/api/v1/pods", metav1.ListOptions{LabelSelector: "app=keda-operator"}, &operators); err != nil {
		return err
	}
	for i := range operators.Items {
		p := &operators.Items[i]
		if args := argsOf(p); slices.Contains(args, "--enable-cert-rotation=true") && !slices.Contains(args, "--enable-apiservice-patching=false") {
			e.add(Failure, `Start it with --enable-apiservice-patching=false (KEDA 2.20 or newer): docs/adapters.md, "KEDA".`,
				"KEDA's operator %s/%s writes its own CA into %s: then the API server does not trust weir, or rejects the change, and KEDA has no metrics", p.Namespace, p.Name, externalMetrics)
			return nil
		}
	}
	return nil
}

// argsOf returns the arguments of all containers of a pod.
func argsOf(p *corev1.Pod) (args []string) {
	for i := range p.Spec.Containers {
		args = append(args, p.Spec.Containers[i].Args...)
	}
	return args
}

// servesAPI reports whether an --apis of the pod's arguments has this name.
func servesAPI(p *corev1.Pod, name string) bool {
	return slices.ContainsFunc(argsOf(p), func(arg string) bool {
		list, ok := strings.CutPrefix(arg, "--apis=")
		return ok && slices.Contains(strings.Split(list, ","), name)
	})
}

// notReady explains why a pod is not ready, or returns "" if it is.
func notReady(p *corev1.Pod) string {
	for _, s := range p.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil {
			return strings.TrimSuffix(fmt.Sprintf("container %s waits: %s: %s", s.Name, w.Reason, w.Message), ": ")
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Status != corev1.ConditionTrue && c.Message != "" {
			return c.Message
		}
	}
	return "its phase is " + string(p.Status.Phase)
}

// checkRights asks the API server whether weir's accounts have the rights that weir needs.
func (e *examination) checkRights(ctx context.Context) error {
	if len(e.weirPods) == 0 {
		return errors.New("it is not known which account weir has")
	}
	p := &e.weirPods[0]
	own := "system:serviceaccount:" + p.Namespace + ":" + p.Spec.ServiceAccountName
	reader := own
	for _, arg := range argsOf(p) {
		if account, ok := strings.CutPrefix(arg, "--kubelet-account="); ok {
			account = strings.ReplaceAll(account, "$(POD_NAMESPACE)", p.Namespace)
			reader = "system:serviceaccount:" + strings.ReplaceAll(account, "/", ":")
		}
	}
	lacks := false
	for _, right := range []struct{ user, verb, resource, subresource string }{
		{own, "list", "nodes", ""}, {own, "watch", "nodes", ""}, {own, "list", "pods", ""}, {own, "watch", "pods", ""},
		{reader, "get", "nodes", "metrics"}, {reader, "get", "nodes", "stats"},
	} {
		review := authorizationv1.SubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
			Spec: authorizationv1.SubjectAccessReviewSpec{User: right.user, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: right.verb, Resource: right.resource, Subresource: right.subresource,
			}},
		}
		if err := e.cluster.Create(ctx, "/apis/authorization.k8s.io/v1/subjectaccessreviews", &review); err != nil {
			return err
		}
		if !review.Status.Allowed {
			lacks = true
			e.add(Failure, "Apply weir's roles and bindings again: docs/install.md.", "%s may not %s %s", right.user, right.verb, strings.Trim(right.resource+"/"+right.subresource, "/"))
		}
	}
	if !lacks {
		e.add(OK, "", "%s may list pods and nodes, and %s may read kubelets", own, reader)
	}
	return nil
}

// listNodes lists the nodes once, for all checks.
func (e *examination) listNodes(ctx context.Context) (*corev1.NodeList, error) {
	if e.nodes == nil {
		var nodes corev1.NodeList
		if err := e.cluster.Get(ctx, "/api/v1/nodes", &nodes); err != nil {
			return nil, err
		}
		e.nodes = &nodes
	}
	return e.nodes, nil
}

// checkNodes looks at the versions of kubelets, and at nodes that are not ready.
func (e *examination) checkNodes(ctx context.Context) error {
	nodes, err := e.listNodes(ctx)
	if err != nil {
		return err
	}
	versions := map[string]int{}
	var away, old []string
	for i := range nodes.Items {
		n := &nodes.Items[i]
		versions[n.Status.NodeInfo.KubeletVersion]++
		var minor int
		if _, err := fmt.Sscanf(n.Status.NodeInfo.KubeletVersion, "v1.%d.", &minor); err == nil && minor < oldestTested {
			old = append(old, n.Name)
		}
		if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			away = append(away, n.Name)
		}
	}
	var texts []string
	for _, v := range slices.Sorted(maps.Keys(versions)) {
		texts = append(texts, fmt.Sprintf("%d with kubelet %s", versions[v], v))
	}
	e.add(OK, "", "%s: %s", humanize.Count(len(nodes.Items), "node"), strings.Join(texts, ", "))
	if len(old) > 0 {
		e.add(Warning, "", "weir is tested with kubelets from 1.%d on: %s", oldestTested, humanize.List(old, shownNodes))
	}
	if len(away) > 0 {
		e.add(Warning, "kubectl describe node "+away[0], "not Ready: %s", humanize.List(away, shownNodes))
	}
	return nil
}

// checkCertificates looks at the last request of each kubelet for a serving certificate. If it is not approved, the
// kubelet has no new certificate that weir can verify. Earlier requests are left over.
func (e *examination) checkCertificates(ctx context.Context) error {
	var list certificatesv1.CertificateSigningRequestList
	if err := e.cluster.Get(ctx, "/apis/certificates.k8s.io/v1/certificatesigningrequests", &list); err != nil {
		return err
	}
	slices.SortFunc(list.Items, func(a, b certificatesv1.CertificateSigningRequest) int {
		return cmp.Or(b.CreationTimestamp.Time.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	seen := map[string]bool{}
	var waiting, refused []string
	for i := range list.Items {
		r := &list.Items[i]
		if r.Spec.SignerName != certificatesv1.KubeletServingSignerName || seen[r.Spec.Username] {
			continue
		}
		seen[r.Spec.Username] = true
		approved := slices.ContainsFunc(r.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == certificatesv1.CertificateApproved
		})
		switch {
		case approved:
		case len(r.Status.Conditions) == 0:
			waiting = append(waiting, r.Name)
		default:
			refused = append(refused, r.Name)
		}
	}
	slices.Sort(waiting)
	if len(waiting) > 0 {
		e.add(Failure, "Check who asks (`kubectl get csr`), then: kubectl certificate approve "+strings.Join(waiting, " "),
			"%s for the serving certificate of a kubelet %s not approved: weir cannot verify such a kubelet",
			humanize.Count(len(waiting), "request"), humanize.IsAre(len(waiting)))
	}
	if len(refused) > 0 {
		e.add(Failure, "kubectl describe csr "+refused[0], "requests of kubelets for serving certificates were denied, or failed: weir cannot verify such a kubelet: %s", humanize.List(refused, shownNodes))
	}
	if len(waiting)+len(refused) == 0 {
		e.add(OK, "", "no kubelet waits for a serving certificate")
	}
	return nil
}

// kubeletAnswer is what a kubelet answers about its settings.
type kubeletAnswer struct {
	KubeletConfig kubeletconfigv1beta1.KubeletConfiguration `json:"kubeletconfig"`
	err           error
}

// askKubelets asks the kubelets of nodes for their settings, many at a time. It takes at most a third of the
// time that is left: a kubelet that hangs must not cost the checks that follow. It fails only if the user may
// not ask.
func (e *examination) askKubelets(ctx context.Context, nodes []corev1.Node) ([]kubeletAnswer, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/3)
		defer cancel()
	}
	answers := make([]kubeletAnswer, len(nodes))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(kubeletsAtOnce)
	for i := range nodes {
		asking.Go(func() error {
			err := e.cluster.Get(ctx, "/api/v1/nodes/"+nodes[i].Name+"/proxy/configz", &answers[i])
			if apierrors.IsForbidden(err) {
				return err
			}
			answers[i].err = err
			return nil
		})
	}
	return answers, asking.Wait()
}

// checkKubelets reads the settings of kubelets that change what weir can measure.
func (e *examination) checkKubelets(ctx context.Context) error {
	nodes, err := e.listNodes(ctx)
	if err != nil {
		return err
	}
	answers, err := e.askKubelets(ctx, nodes.Items)
	if err != nil {
		return err
	}
	drivers := map[string][]string{}
	var fromCRI, unread, unnamed []string
	var last error
	for i := range nodes.Items {
		name, c := nodes.Items[i].Name, &answers[i].KubeletConfig
		if err := answers[i].err; err != nil {
			unread, last = append(unread, name), err
			continue
		}
		if c.CgroupDriver == "" {
			unnamed = append(unnamed, name)
		} else {
			drivers[c.CgroupDriver] = append(drivers[c.CgroupDriver], name)
		}
		if c.FeatureGates["PodAndContainerStatsFromCRI"] {
			fromCRI = append(fromCRI, name)
		}
	}
	if len(unread) > 0 {
		e.add(Warning, "", "the API server cannot read the settings of %s: %v", humanize.List(unread, shownNodes), last)
	}
	if len(fromCRI) > 0 {
		e.add(Warning, "Where weir reads /metrics/cadvisor, prefer /metrics/resource, or switch the gate off.",
			"PodAndContainerStatsFromCRI is on, so /metrics/cadvisor lacks containers: %s", humanize.List(fromCRI, shownNodes))
	}
	if len(unnamed) > 0 {
		e.add(Skipped, "", "the cgroup driver is unknown: /configz does not name it on %s", humanize.List(unnamed, shownNodes))
	}
	for _, driver := range slices.Sorted(maps.Keys(drivers)) {
		names := drivers[driver]
		switch {
		case len(drivers) > 1:
			e.add(Warning, "", "%d use the cgroup driver %s: %s", len(names), driver, humanize.List(names, shownNodes))
		case len(unnamed)+len(unread) > 0:
			e.add(OK, "", "all others use the cgroup driver %s", driver)
		default:
			e.add(OK, "", "all use the cgroup driver %s", driver)
		}
	}
	return nil
}

// checkHPAs looks for HPAs that cannot decide, that need an API which nobody serves, or that scale
// what another one scales.
func (e *examination) checkHPAs(ctx context.Context) error {
	var list autoscalingv2.HorizontalPodAutoscalerList
	if err := e.cluster.Get(ctx, "/apis/autoscaling/v2/horizontalpodautoscalers", &list); err != nil {
		return err
	}
	before := len(e.findings)
	targets := map[string]string{}
	for i := range list.Items {
		h := &list.Items[i]
		name := h.Namespace + "/" + h.Name
		target := h.Namespace + "/" + h.Spec.ScaleTargetRef.Kind + "/" + h.Spec.ScaleTargetRef.Name
		if other := targets[target]; other != "" {
			e.add(Failure, "Delete one of them, or put its metrics into the other.", "%s and %s scale the same %s %s", other, name, h.Spec.ScaleTargetRef.Kind, h.Spec.ScaleTargetRef.Name)
		}
		targets[target] = name
		if len(h.Status.Conditions) == 0 && time.Since(h.CreationTimestamp.Time) > undecided {
			e.add(Failure, "Look whether kube-controller-manager runs: kubectl -n kube-system get pods,leases", "%s has existed for more than %s, and no controller has looked at it: its status has no conditions",
				name, humanize.Duration(undecided))
		}
		for _, c := range h.Status.Conditions {
			broken := c.Status == corev1.ConditionFalse && (c.Type == autoscalingv2.ScalingActive && c.Reason != "ScalingDisabled" || c.Type == autoscalingv2.AbleToScale)
			if broken {
				e.add(Failure, e.program+" explain hpa "+name, "%s: %s: %s", name, c.Reason, c.Message)
			}
		}
		if api := e.lackingAPI(h); api != "" {
			e.add(Failure, "weir serves it with a component: docs/install.md, \"Custom and external metrics\".", "%s needs %s, which nobody serves", name, api)
		}
	}
	if len(e.findings) == before {
		e.add(OK, "", "nothing keeps the %s of the cluster from deciding", humanize.Count(len(list.Items), "HPA"))
	}
	return nil
}

// lackingAPI returns the group that an HPA's metrics need and that has no APIService, or "".
func (e *examination) lackingAPI(h *autoscalingv2.HorizontalPodAutoscaler) string {
	if e.services == nil {
		return ""
	}
	for _, m := range h.Spec.Metrics {
		group := ""
		switch m.Type {
		case autoscalingv2.PodsMetricSourceType, autoscalingv2.ObjectMetricSourceType:
			group = "custom.metrics.k8s.io"
		case autoscalingv2.ExternalMetricSourceType:
			group = "external.metrics.k8s.io"
		}
		served := slices.ContainsFunc(slices.Collect(maps.Keys(e.services)), func(name string) bool { return strings.HasSuffix(name, "."+group) })
		if group != "" && !served {
			return group
		}
	}
	return ""
}

// checkNumbers asks weir what is missing, and why, and which receivers accept nothing.
func (e *examination) checkNumbers(ctx context.Context) error {
	w, err := e.connect()
	if err != nil {
		return err
	}
	report, err := w.Missing(ctx, "")
	if err != nil {
		return err
	}
	result := OK
	for i := range report.Causes {
		switch report.Causes[i].Severity {
		case metric.Broken.String():
			result = Failure
		case metric.Temporary.String():
			if result == OK {
				result = Warning
			}
		}
	}
	advice := ""
	if result != OK {
		advice = e.program + " explain missing"
	}
	e.add(result, advice, "%s", strings.TrimSuffix(report.Summary, "."))
	for i := range report.Causes {
		c := &report.Causes[i]
		if c.Severity == metric.Broken.String() {
			onNode := ""
			if c.Node != "" {
				onNode = " on " + string(c.Node)
			}
			e.add(Failure, cli.ForProgram(c.Advice, e.program), "%s%s: %s", c.Reason, onNode, c.Message)
		}
	}
	e.check = "receivers"
	for i := range report.Receivers {
		r := &report.Receivers[i]
		e.addOutage(report.At.Sub(r.Since), explain.ReceiverAdvice, r.Text(report.At))
	}
	e.check = "adapters"
	for i := range report.Adapters {
		a := &report.Adapters[i]
		e.addOutage(report.At.Sub(a.Since), explain.AdapterAdvice, a.Text(report.At))
	}
	return nil
}

// addOutage adds a finding about a program that weir needs: a warning as long as the outage may pass by
// itself.
func (e *examination) addOutage(age time.Duration, advice, text string) {
	result := Failure
	if age < passing {
		result = Warning
	}
	e.add(result, advice, "%s", text)
}
