package deploy

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/weir-metrics/weir/api/externalmetrics/rules"
	"github.com/weir-metrics/weir/sources/kubelet"
	"github.com/weir-metrics/weir/test/cmptest"
)

const root = "kustomize"

// combination is one combination of the manifests, or one rendering of the chart.
type combination struct {
	name       string
	dir        string
	components []string
	// chart are arguments of helm template. If there are any, the objects are those of the chart, and
	// tests of the chart compare them with the manifests, unless dir is empty.
	chart []string
}

func (c combination) objects(t *testing.T) []object {
	t.Helper()
	if c.chart != nil {
		return withoutHelmsLabels(helmTemplate(t, c.chart...))
	}
	return render(t, c.dir, c.components...)
}

func combinations() []combination {
	c := func(names ...string) (dirs []string) {
		for _, n := range names {
			dirs = append(dirs, filepath.Join(root, "components", n))
		}
		return dirs
	}
	base := filepath.Join(root, "base")
	overlay := func(name string) string { return filepath.Join(root, "overlays", name) }
	all := []combination{
		{"base", base, nil, nil},
		{"overlays/ha", overlay("ha"), nil, nil},
		{"overlays/full", overlay("full"), nil, nil},
		{"overlays/outside", overlay("outside"), nil, nil},
		{"overlays/pinned", overlay("pinned"), nil, nil},
		{"overlays/agents", overlay("agents"), nil, nil},
		{"insecure-kubelets", base, c("insecure-kubelets"), nil},
		{"serving-cert", base, c("serving-cert"), nil},
		{"events", base, c("events"), nil},
		{"hpa-events", base, c("hpa-events"), nil},
		{"autoscaler", base, c("autoscaler"), nil},
		{"dashboards", base, c("dashboards"), nil},
		{"adapters", base, c("custom-metrics", "external-metrics-api", "adapters"), nil},
		{"agent", base, c("agent"), nil},
		{"network-policy", base, c("network-policy", "agent"), nil},
		{"agent-evict", base, c("agent", "agent-evict"), nil},
		{"agent-kill", base, c("agent", "agent-evict", "agent-kill", "agent-conditions"), nil},
		{"agent-kill-at-once", base, c("agent", "agent-kill", "agent-kill-at-once"), nil},
		{"agent-oom-events", base, c("agent", "agent-oom-events"), nil},
		{"agent-request", base, c("agent", "agent-request"), nil},
		{"agent-no-host-pid", base, c("agent", "agent-no-host-pid", "agent-pressure"), nil},
		{"everything", base, c("agent", "agent-evict", "agent-conditions", "autoscaler", "custom-metrics", "external-metrics", "adapters", "ha", "events", "hpa-events", "insecure-kubelets", "serving-cert"), nil},
		{"everything, in another order", base, c("ha", "agent", "agent-conditions", "insecure-kubelets", "agent-kill", "autoscaler", "hpa-events", "events", "adapters", "external-metrics", "custom-metrics", "serving-cert"), nil},
	}
	if *withHelm {
		all = append(all, charts()...)
	}
	return all
}

// each runs f on the objects of every combination.
func each(t *testing.T, f func(t *testing.T, s set)) {
	t.Helper()
	for _, c := range combinations() {
		t.Run(c.name, func(t *testing.T) { f(t, decode(t, c.objects(t))) })
	}
}

// set has all objects that are applied together.
type set struct {
	objects     []object
	typed       []any // decoded; APIServices are *apiService
	deployment  *appsv1.Deployment
	agents      *appsv1.DaemonSet // nil if there are none
	services    map[string]*corev1.Service
	apiServices []*apiService
}

// apiService is kube-aggregator's type. No module that weir requires has it.
type apiService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Group                 string `json:"group"`
		Version               string `json:"version"`
		GroupPriorityMinimum  int32  `json:"groupPriorityMinimum"`
		VersionPriority       int32  `json:"versionPriority"`
		InsecureSkipTLSVerify bool   `json:"insecureSkipTLSVerify"`
		CABundle              []byte `json:"caBundle"`
		Service               struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
			Port      int32  `json:"port"`
		} `json:"service"`
	} `json:"spec"`
}

// decode decodes every object strictly: a field that its type does not have is a mistake, which a
// cluster would ignore.
func decode(t *testing.T, objects []object) set {
	t.Helper()
	s := set{objects: objects, services: map[string]*corev1.Service{}}
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	seen := map[string]bool{}
	for _, o := range objects {
		if seen[o.id()] {
			t.Errorf("%s is there twice", o.id())
		}
		seen[o.id()] = true
		if o.kind() == "APIService" {
			a := &apiService{}
			if err := yaml.UnmarshalStrict(mustJSON(t, o), a); err != nil {
				t.Errorf("%s: %v", o.id(), err)
			}
			s.typed, s.apiServices = append(s.typed, a), append(s.apiServices, a)
			continue
		}
		switch o.kind() {
		case "CustomResourceDefinition", // autoscaler/v1alpha1 tests its schema
			"Certificate", "Issuer", "ServiceMonitor", "PrometheusRule":
			continue // no module that weir requires has this type
		}
		typed, _, err := strict.Decode(mustJSON(t, o), nil, nil)
		if err != nil {
			t.Errorf("%s: %v", o.id(), err)
			continue
		}
		s.typed = append(s.typed, typed)
		switch v := typed.(type) {
		case *appsv1.Deployment:
			s.deployment = v
		case *appsv1.DaemonSet:
			s.agents = v
		case *corev1.Service:
			s.services[v.Namespace+"/"+v.Name] = v
		}
	}
	return s
}

func TestObjectsAreWeirsAndHaveAPlace(t *testing.T) {
	everywhere := map[string]bool{
		"Namespace": true, "ClusterRole": true, "ClusterRoleBinding": true, "APIService": true, "CustomResourceDefinition": true,
		"ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true,
	}
	each(t, func(t *testing.T, s set) {
		for _, o := range s.objects {
			if got := o.str("metadata", "labels", "app.kubernetes.io/name"); got != "weir" {
				t.Errorf("%s has the label app.kubernetes.io/name=%q, want weir, by which it is found and removed", o.id(), got)
			}
			want := "weir-system"
			switch {
			case everywhere[o.kind()]:
				want = ""
			case o.kind() == "RoleBinding" && strings.HasSuffix(o.name(), "auth-reader"):
				want = "kube-system" // the namespace of the ConfigMap
			case o.name() == "weir-agent", strings.HasPrefix(o.name(), "weir:agent"):
				want = "weir-agents"
			}
			if got := o.namespace(); got != want {
				t.Errorf("%s is in namespace %q, want %q", o.id(), got, want)
			}
		}
	})
}

func TestServiceReachesPods(t *testing.T) {
	each(t, func(t *testing.T, s set) {
		for id, service := range s.services {
			if service.Spec.Type == corev1.ServiceTypeExternalName {
				continue
			}
			pod := s.deployment.Spec.Template
			if len(service.Spec.Selector) == 0 || !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
				t.Errorf("Service %s selects %v, the pods have %v", id, service.Spec.Selector, pod.Labels)
			}
			for _, p := range service.Spec.Ports {
				if !hasPort(pod.Spec, p.TargetPort.String()) {
					t.Errorf("Service %s leads to port %s, which no container has", id, p.TargetPort.String())
				}
			}
		}
		for _, a := range s.apiServices {
			service := s.services[a.Spec.Service.Namespace+"/"+a.Spec.Service.Name]
			if service == nil {
				t.Errorf("APIService %s leads to Service %+v, which is not there", a.Name, a.Spec.Service)
				continue
			}
			if service.Spec.Type != corev1.ServiceTypeExternalName &&
				!slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == a.Spec.Service.Port }) {
				t.Errorf("APIService %s leads to port %d, which the Service does not have", a.Name, a.Spec.Service.Port)
			}
		}
	})
}

func TestAPIServices(t *testing.T) {
	each(t, func(t *testing.T, s set) {
		for _, name := range []string{"v1.metrics.k8s.io", "v1beta1.metrics.k8s.io", "v1alpha1.weir.dev"} {
			if !slices.ContainsFunc(s.apiServices, func(a *apiService) bool { return a.Name == name }) {
				t.Errorf("no APIService %s", name)
			}
		}
		for _, a := range s.apiServices {
			if want := a.Spec.Version + "." + a.Spec.Group; a.Name != want {
				t.Errorf("APIService %s must be called %s", a.Name, want)
			}
			if a.Spec.GroupPriorityMinimum <= 0 || a.Spec.VersionPriority <= 0 {
				t.Errorf("APIService %s lacks priorities", a.Name)
			}
			injected, given := a.Annotations["cert-manager.io/inject-ca-from"] != "", len(a.Spec.CABundle) > 0
			if verified := injected || given; verified == a.Spec.InsecureSkipTLSVerify || injected && given {
				t.Errorf("APIService %s: insecureSkipTLSVerify %v, CA injected %v, CA given %v: want one of them", a.Name, a.Spec.InsecureSkipTLSVerify, injected, given)
			}
			if a.Labels["app.kubernetes.io/component"] != "api" {
				t.Errorf("APIService %s lacks the label by which docs/install.md applies it last", a.Name)
			}
		}
	})
}

func TestSelectorsMatchPods(t *testing.T) {
	each(t, func(t *testing.T, s set) {
		if s.deployment == nil {
			return // weir runs outside the cluster
		}
		pod := labels.Set(s.deployment.Spec.Template.Labels)
		f := func(what string, selector *metav1.LabelSelector) {
			t.Helper()
			parsed, err := metav1.LabelSelectorAsSelector(selector)
			if err != nil || parsed.Empty() || !parsed.Matches(pod) {
				t.Errorf("%s selects %v (%v), the pods have %v", what, selector, err, pod)
			}
		}
		f("the Deployment", s.deployment.Spec.Selector)
		for _, o := range s.typed {
			if pdb, ok := o.(*policyv1.PodDisruptionBudget); ok {
				f("the PodDisruptionBudget", pdb.Spec.Selector)
				if *s.deployment.Spec.Replicas < 2 {
					t.Error("a PodDisruptionBudget of the only replica would block drains for ever")
				}
			}
		}
		if a := s.deployment.Spec.Template.Spec.Affinity; a != nil {
			for _, term := range a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
				f("the anti-affinity", term.PodAffinityTerm.LabelSelector)
			}
		}
	})
}

func hasPort(pod corev1.PodSpec, name string) bool {
	for _, c := range pod.Containers {
		for _, p := range c.Ports {
			if p.Name == name {
				return true
			}
		}
	}
	return false
}

func TestPods(t *testing.T) {
	each(t, func(t *testing.T, s set) {
		if s.deployment == nil {
			return
		}
		pod := s.deployment.Spec.Template.Spec
		for _, c := range pod.Containers {
			for endpoint, probe := range map[string]*corev1.Probe{"/readyz": c.ReadinessProbe, "/livez": c.LivenessProbe} {
				if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != endpoint ||
					probe.HTTPGet.Scheme != corev1.URISchemeHTTPS || !hasPort(pod, probe.HTTPGet.Port.String()) {
					t.Errorf("container %s: %+v is no probe of %s", c.Name, probe, endpoint)
				}
			}
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
				t.Errorf("container %s requests no CPU or no memory", c.Name)
			}
		}
		if u := s.deployment.Spec.Strategy.RollingUpdate; u == nil || u.MaxUnavailable.IntValue() != 0 || u.MaxSurge.IntValue() < 1 {
			t.Errorf("an update ends the old pod before the new one is ready: %+v", u)
		}
		checkVolumes(t, s, pod)
	})
}

// TestImages checks that no registry can provide another image by the name of the manifests: the
// image was loaded and is never pulled, by a name that nobody can register, or its name has a digest.
func TestImages(t *testing.T) {
	makefile := string(readFile(t, "../Makefile"))
	each(t, func(t *testing.T, s set) {
		var pods []corev1.PodSpec
		if s.deployment != nil {
			pods = append(pods, s.deployment.Spec.Template.Spec)
		}
		if s.agents != nil {
			pods = append(pods, s.agents.Spec.Template.Spec)
		}
		for _, pod := range pods {
			for _, c := range pod.Containers {
				pinned := strings.Contains(c.Image, "@sha256:") && c.ImagePullPolicy == corev1.PullIfNotPresent
				host, _, _ := strings.Cut(c.Image, "/")
				loaded := strings.HasSuffix(host, ".invalid") && c.ImagePullPolicy == corev1.PullNever && strings.Contains(makefile, "IMAGE       ?= "+c.Image+"\n")
				if !pinned && !loaded {
					t.Errorf("container %s: image %s with imagePullPolicy %s; want that of make image, never pulled, or one with a digest", c.Name, c.Image, c.ImagePullPolicy)
				}
			}
		}
	})
	if s := decode(t, render(t, filepath.Join(root, "overlays", "pinned"))); !strings.Contains(s.deployment.Spec.Template.Spec.Containers[0].Image, "@sha256:") {
		t.Error("overlays/pinned pins no digest")
	}
}

// TestNetworkPolicy checks that the policy is for the server's pods, lets in only their port, and
// lets out what the server needs.
func TestNetworkPolicy(t *testing.T) {
	s := decode(t, render(t, filepath.Join(root, "base"), componentPaths("network-policy", "agent")...))
	var policy *networkingv1.NetworkPolicy
	for _, o := range s.typed {
		if p, ok := o.(*networkingv1.NetworkPolicy); ok {
			policy = p
		}
	}
	pod := s.deployment.Spec.Template
	selects, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil || !selects.Matches(labels.Set(pod.Labels)) || policy.Namespace != s.deployment.Namespace {
		t.Errorf("the policy selects %v in %s (%v), want the server's pods", selects, policy.Namespace, err)
	}
	if got := policy.Spec.PolicyTypes; !slices.Equal(got, []networkingv1.PolicyType{"Ingress", "Egress"}) {
		t.Errorf("the policy is of types %v, want both", got)
	}
	for _, rule := range policy.Spec.Ingress {
		for _, p := range rule.Ports {
			if !hasPort(pod.Spec, p.Port.String()) {
				t.Errorf("the policy lets in port %s, which no container has", p.Port)
			}
		}
		if len(rule.Ports) == 0 {
			t.Error("the policy lets in every port")
		}
	}
	out := map[string]bool{}
	for _, rule := range policy.Spec.Egress {
		for _, p := range rule.Ports {
			out[p.Port.String()] = true
		}
		if len(rule.Ports) == 0 {
			t.Error("the policy lets out every port")
		}
	}
	want := map[string]bool{"53": true, "443": true, "6443": true, strconv.Itoa(kubelet.DefaultPort): true, strconv.Itoa(int(s.agents.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort)): true}
	cmptest.Equal(t, "ports that the policy lets out", want, out)
}

// checkVolumes checks that every mounted volume exists, with what is in it. The operator creates the
// Secret of the serving certificate.
func checkVolumes(t *testing.T, s set, pod corev1.PodSpec) {
	t.Helper()
	there := map[string]bool{}
	check := func(volume, kind, name string) {
		t.Helper()
		if !slices.ContainsFunc(s.objects, func(o object) bool { return o.kind() == kind && o.name() == name }) {
			t.Errorf("volume %s is of %s %s, which is not there", volume, kind, name)
		}
	}
	for _, v := range pod.Volumes {
		there[v.Name] = true
		if v.ConfigMap != nil {
			check(v.Name, "ConfigMap", v.ConfigMap.Name)
		}
		if v.Projected != nil {
			for _, source := range v.Projected.Sources {
				if source.ConfigMap != nil {
					check(v.Name, "ConfigMap", source.ConfigMap.Name)
				}
				if source.Secret != nil {
					check(v.Name, "Secret", source.Secret.Name)
				}
			}
		}
		if v.Secret != nil && v.Secret.SecretName != "weir-serving-cert" && v.Secret.SecretName != "metrics-server-existing" {
			t.Errorf("volume %s is of Secret %s", v.Name, v.Secret.SecretName)
		}
	}
	for _, c := range pod.Containers {
		for _, m := range c.VolumeMounts {
			if !there[m.Name] {
				t.Errorf("container %s mounts %s, which is no volume", c.Name, m.Name)
			}
			if m.SubPath != "" {
				t.Errorf("container %s mounts %s by subPath: changes would not arrive", c.Name, m.Name)
			}
		}
	}
}

// TestRestrictedPodSecurity checks that the pods meet the strictest of Kubernetes' Pod Security
// Standards, which the namespace enforces, and a little more.
func TestRestrictedPodSecurity(t *testing.T) {
	allowed := []string{"ConfigMap", "CSI", "DownwardAPI", "EmptyDir", "Ephemeral", "PersistentVolumeClaim", "Projected", "Secret"}
	each(t, func(t *testing.T, s set) {
		if s.deployment == nil {
			return
		}
		pod := s.deployment.Spec.Template.Spec
		no := func(wrong bool, what string) {
			t.Helper()
			if wrong {
				t.Error(what)
			}
		}
		no(pod.HostNetwork || pod.HostPID || pod.HostIPC, "the pod shares a namespace with its host")
		if p := pod.SecurityContext; p == nil {
			t.Error("the pod has no securityContext")
		} else {
			no(p.RunAsNonRoot == nil || !*p.RunAsNonRoot, "runAsNonRoot is not true")
			no(p.RunAsUser == nil || *p.RunAsUser == 0, "runAsUser is root's, or left to the image")
			no(p.SeccompProfile == nil || p.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault, "no seccomp profile")
			no(len(p.Sysctls) > 0, "sysctls are set")
		}
		for _, v := range pod.Volumes {
			var source map[string]any
			if err := json.Unmarshal(mustJSON(t, v.VolumeSource), &source); err != nil {
				t.Fatal(err)
			}
			for kind := range source {
				no(!slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, kind) }), "volume "+v.Name+" is of kind "+kind)
			}
		}
		no(len(pod.InitContainers) > 0, "init containers, which this test does not check")
		for _, c := range pod.Containers {
			sc := c.SecurityContext
			if sc == nil || sc.Capabilities == nil {
				t.Errorf("container %s has no securityContext with capabilities", c.Name)
				continue
			}
			no(sc.AllowPrivilegeEscalation == nil || *sc.AllowPrivilegeEscalation, "allowPrivilegeEscalation is not false")
			no(sc.ReadOnlyRootFilesystem == nil || !*sc.ReadOnlyRootFilesystem, "readOnlyRootFilesystem is not true")
			no(sc.Privileged != nil && *sc.Privileged, "privileged")
			no(!slices.Equal(sc.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(sc.Capabilities.Add) > 0, "capabilities are not all dropped")
			no(sc.RunAsUser != nil || sc.RunAsNonRoot != nil || sc.SeccompProfile != nil, "the container overrides the pod")
			for _, p := range c.Ports {
				no(p.HostPort != 0, "a port of the host")
			}
		}
	})
}

// TestEveryFileIsUsed finds manifests that no kustomization refers to. It also decodes patches
// strictly, which merging does not do.
func TestEveryFileIsUsed(t *testing.T) {
	used := map[string]bool{}
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var all []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if filepath.Base(path) != "kustomization.yaml" {
			all = append(all, path)
			return nil
		}
		dir := filepath.Dir(path)
		k := readKustomization(t, dir)
		want := [2]string{"kustomize.config.k8s.io/v1beta1", "Kustomization"}
		if filepath.Base(filepath.Dir(dir)) == "components" {
			want = [2]string{"kustomize.config.k8s.io/v1alpha1", "Component"}
		}
		if got := [2]string{k.APIVersion, k.Kind}; got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
		for _, g := range k.ConfigMapGenerator {
			for _, f := range g.Files {
				used[filepath.Join(dir, f)] = true
			}
		}
		for _, r := range k.Resources {
			used[filepath.Join(dir, r)] = true
		}
		for _, p := range k.Patches {
			if p.Path == "" {
				continue
			}
			used[filepath.Join(dir, p.Path)] = true
			for _, o := range readObjects(t, filepath.Join(dir, p.Path)) {
				if _, _, err := strict.Decode(mustJSON(t, o), nil, nil); err != nil {
					t.Errorf("%s: %v", filepath.Join(dir, p.Path), err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if !used[path] {
			t.Errorf("no kustomization refers to %s", path)
		}
	}
}

func TestExternalRulesAreRules(t *testing.T) {
	file := filepath.Join(root, "components", "external-metrics", "rules.yaml")
	if _, err := rules.Parse(file, readFile(t, file)); err != nil {
		t.Error(err)
	}
}

// TestRenderedAsKubectlDoes compares the rendering of this test with kubectl's, if kubectl is in
// PATH or KUBECTL names it.
func TestRenderedAsKubectlDoes(t *testing.T) {
	kubectl := findKubectl(t)
	for _, c := range combinations() {
		if c.components != nil || c.chart != nil {
			continue // kubectl has no folder to render
		}
		out, err := exec.Command(kubectl, "kustomize", c.dir).Output()
		if err != nil {
			t.Errorf("kubectl kustomize %s: %v\n%s", c.dir, err, stderrOf(err))
			continue
		}
		got, want := map[string]object{}, map[string]object{}
		for _, o := range render(t, c.dir) {
			var plain object
			if err := json.Unmarshal(mustJSON(t, o), &plain); err != nil {
				t.Fatal(err)
			}
			got[o.id()] = plain
		}
		for _, text := range documents(out) {
			var o object
			if err := yaml.Unmarshal(text, &o); err != nil {
				t.Fatal(err)
			}
			want[o.id()] = o
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: kubectl -, this test +\n%s", c.dir, diff)
		}
	}
}

// TestAdaptersPageRenders gives kubectl the kustomizations of docs/adapters.md: the ConfigMap has the
// user's files, and not the example of the component. kustomize merges components in their order, and
// after the generators of the kustomization that names them.
func TestAdaptersPageRenders(t *testing.T) {
	kubectl := findKubectl(t)
	page, err := os.ReadFile("../docs/adapters.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(file, content string) {
		t.Helper()
		file = filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "deploy", "kustomize"), os.DirFS("kustomize")); err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```yaml\n# (\\S*kustomization.yaml)\n(.*?)```").FindAllSubmatch(page, -1) {
		write(string(m[1]), string(m[2]))
	}
	write("my-adapters/adapters.yaml", "mine")
	write("my-adapters/keda-ca.crt", "a certificate")
	out, err := exec.CommandContext(t.Context(), kubectl, "kustomize", dir).Output()
	if err != nil {
		t.Fatalf("kubectl kustomize: %v\n%s", err, stderrOf(err))
	}
	got := map[string]object{}
	for _, text := range documents(out) {
		var o object
		if err := yaml.Unmarshal(text, &o); err != nil {
			t.Fatal(err)
		}
		got[o.kind()+" "+o.name()] = o
	}
	want := map[string]any{"adapters.yaml": "mine", "keda-ca.crt": "a certificate"}
	if diff := cmp.Diff(want, got["ConfigMap weir-adapters"]["data"]); diff != "" {
		t.Errorf("the files of the page: want -, got +\n%s", diff)
	}
	if got["APIService v1beta1.external.metrics.k8s.io"] == nil {
		t.Error("there is no APIService v1beta1.external.metrics.k8s.io")
	}
}

// findKubectl returns the program that KUBECTL names, or kubectl in PATH. Without one, the test is skipped.
func findKubectl(t *testing.T) string {
	t.Helper()
	kubectl := os.Getenv("KUBECTL")
	if kubectl == "" {
		var err error
		if kubectl, err = exec.LookPath("kubectl"); err != nil {
			t.Skip("no kubectl in PATH, and KUBECTL names none")
		}
	}
	return kubectl
}

func stderrOf(err error) []byte {
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.Stderr
	}
	return nil
}
