package deploy

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-metrics/weir/test/cmptest"
)

const chart = "helm/weir"

// metricsServerValues is the folder of the values that metrics-server's chart publishes: its
// defaults, and those that its own tests install.
const metricsServerValues = "testdata/metrics-server"

// charts are renderings of the chart. Those with a folder are equal to the manifests in it.
func charts() []combination {
	c := func(name, dir string, components []string, args ...string) combination {
		if dir != "" {
			dir = filepath.Join(root, dir)
		}
		return combination{"chart: " + name, dir, componentPaths(components...), append([]string{"--namespace=weir-system"}, args...)}
	}
	rules := "--set-file=externalMetrics.rules=" + filepath.Join(root, "components", "external-metrics", "rules.yaml")
	adapters := "--set-file=adapters.list=" + filepath.Join(root, "components", "adapters", "adapters.yaml")
	file := func(name string) string { return "--values=" + filepath.Join(metricsServerValues, name) }
	return []combination{
		c("default values", "base", nil),
		c("two replicas", "overlays/ha", nil, "--set=replicas=2"),
		c("agents", "overlays/agents", nil, "--set=agent.enabled=true"),
		c("full", "overlays/full", nil, "--set=replicas=2,customMetrics.enabled=true,externalMetrics.enabled=true", rules),
		c("adapters", "base", []string{"custom-metrics", "external-metrics-api", "adapters"}, "--set=adapters.enabled=true,customMetrics.enabled=true,externalMetrics.enabled=true", adapters),
		c("adapters beside rules", "base", []string{"external-metrics", "adapters"}, "--set=adapters.enabled=true,externalMetrics.enabled=true", rules, adapters),
		c("pinned", "overlays/pinned", nil, "--set=replicas=2,image.repository=registry.invalid/weir,image.digest=sha256:"+strings.Repeat("0", 64)),
		c("kubelets' certificates", "base", []string{"agent", "insecure-kubelets"}, "--set=agent.enabled=true,args={--kubelet-insecure-tls}"),
		c("cert-manager", "base", []string{"serving-cert"}, "--set=tls.type=cert-manager"),
		c("Events in memory", "base", []string{"events"}, "--set=events.enabled=true"),
		c("Events", "base", []string{"hpa-events"}, "--set=hpaEvents.enabled=true"),
		c("Autoscalers", "base", []string{"autoscaler"}, "--set=autoscaler.enabled=true"),
		c("dashboards", "base", []string{"dashboards"}, "--set=dashboards.enabled=true"),
		c("shared reads", "overlays/ha", []string{"shared-reads"}, "--set=replicas=2,shareReads=true"),
		c("network policy", "base", []string{"network-policy"}, "--set=networkPolicy.enabled=true"),
		c("agents that evict", "base", []string{"agent", "agent-evict", "agent-conditions"}, "--set=agent.enabled=true,agent.eviction=evict,agent.conditions=true"),
		c("agents that kill", "base", []string{"agent", "agent-kill"}, "--set=agent.enabled=true,agent.eviction=kill"),
		c("agents that kill at once", "base", []string{"agent", "agent-kill", "agent-kill-at-once"}, "--set=agent.enabled=true,agent.eviction=kill,agent.killAtOnce=true"),
		c("agents that write Events of kills", "base", []string{"agent", "agent-oom-events"}, "--set=agent.enabled=true,agent.oomEvents=true"),
		c("agents without the node's processes", "base", []string{"agent", "agent-no-host-pid"}, "--set=agent.enabled=true,agent.hostPID=false"),
		c("agents that request", "base", []string{"agent", "agent-request"}, "--set=agent.enabled=true,agent.eviction=request"),
		c("everything", "base", []string{"agent", "agent-evict", "agent-conditions", "autoscaler", "events", "hpa-events", "custom-metrics", "external-metrics", "shared-reads", "serving-cert", "ha", "network-policy", "insecure-kubelets"},
			"--set=agent.enabled=true,agent.eviction=evict,agent.conditions=true,autoscaler.enabled=true,events.enabled=true,hpaEvents.enabled=true,customMetrics.enabled=true,externalMetrics.enabled=true,"+
				"shareReads=true,tls.type=cert-manager,replicas=2,networkPolicy.enabled=true,args={--kubelet-insecure-tls}", rules),
		c("metrics-server's ci-values.yaml", "", nil, file("ci-values.yaml")),
		c("metrics-server's tls-certManager-values.yaml", "", nil, file("tls-certManager-values.yaml")),
		c("metrics-server's tls-existingSecret-values.yaml", "", nil, file("tls-existingSecret-values.yaml")),
		c("metrics-server's tls-helm-values.yaml", "", nil, file("tls-helm-values.yaml")),
	}
}

// withHelm is set by make verify. Helm is built the first time that it runs, which takes minutes.
var withHelm = flag.Bool("helm", false, "test the chart, with Helm")

// needHelm skips a test of the chart unless the flag -helm is set.
func needHelm(t *testing.T) {
	t.Helper()
	if !*withHelm {
		t.Skip("make verify tests the chart, or: go test ./deploy -args -helm")
	}
}

// helm returns the path of the helm command, which is built the first time.
var helm = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "tool", "-n", "-modfile=../internal/tools/helm/go.mod", "helm").Output()
	if err != nil {
		return "", fmt.Errorf("build helm: %w: %s", err, stderrOf(err))
	}
	return strings.TrimSpace(string(out)), nil
})

// runHelm runs helm without a cluster. It returns what helm writes to its output, and the error with
// what it writes as errors.
func runHelm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path, err := helm()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, append(args, "--kubeconfig=/dev/null")...).Output()
	if err != nil {
		err = fmt.Errorf("helm %s: %w: %s", strings.Join(args, " "), err, stderrOf(err))
	}
	return string(out), err
}

// helmTemplate returns the objects of a release weir.
func helmTemplate(t *testing.T, args ...string) []object {
	t.Helper()
	return helmRelease(t, "weir", args...)
}

// rendered holds what helm template wrote: many tests look at the same renderings, and one takes
// 0.3 s.
var rendered sync.Map

func helmRelease(t *testing.T, name string, args ...string) []object {
	t.Helper()
	args = append([]string{"template", name, chart}, args...)
	key := strings.Join(args, "\n")
	out, there := rendered.Load(key)
	if !there {
		text, err := runHelm(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		rendered.Store(key, text)
		out = text
	}
	var list []object
	for _, text := range documents([]byte(out.(string))) {
		var o object
		if err := yaml.UnmarshalStrict(text, &o); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		list = append(list, o)
	}
	return list
}

// withoutHelmsLabels removes the labels that Helm's charts have, also from selectors, and the checksums of
// files that a new pod must read.
func withoutHelmsLabels(objects []object) []object {
	var remove func(v any)
	remove = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, label := range []string{"helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by"} {
				delete(v, label)
			}
			if annotations, ok := v["annotations"].(map[string]any); ok && len(annotations) == 1 && annotations["checksum/adapters"] != nil {
				delete(v, "annotations")
			}
			for _, child := range v {
				remove(child)
			}
		case []any:
			for _, child := range v {
				remove(child)
			}
		}
	}
	for _, o := range objects {
		remove(map[string]any(o))
	}
	return objects
}

// TestChartIsTheManifests compares the chart, object by object, with the manifests.
func TestChartIsTheManifests(t *testing.T) {
	needHelm(t)
	byID := func(objects []object) map[string]object {
		m := map[string]object{}
		for _, o := range objects {
			var plain object
			if err := json.Unmarshal(mustJSON(t, o), &plain); err != nil {
				t.Fatal(err)
			}
			m[o.id()] = plain
		}
		return m
	}
	for _, c := range charts() {
		if c.dir == "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			got, want := byID(c.objects(t)), byID(render(t, c.dir, c.components...))
			delete(want, "v1 Namespace  weir-system") // helm install --create-namespace creates it
			// Kustomize's component leaves these to the operator.
			delete(got, "cert-manager.io/v1 Issuer weir-system weir-issuer")
			delete(got, "cert-manager.io/v1 Certificate weir-system weir-serving-cert")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("manifests -, chart +\n%s", diff)
			}
		})
	}
}

func TestChartIsWellFormed(t *testing.T) {
	needHelm(t)
	for _, c := range charts() {
		out, err := runHelm(t, slices.Concat([]string{"lint", "--strict", chart}, c.chart)...)
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	var values map[string]any
	if err := json.Unmarshal(readFile(t, filepath.Join(chart, "values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(readFile(t, filepath.Join(chart, "values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	f := func(in string, list map[string]any) (keys []string) {
		for key := range list {
			if key != "global" && key != "enabled" { // for charts that require this one
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		return keys
	}
	if diff := cmp.Diff(f("schema", schema.Properties), f("values", values)); diff != "" {
		t.Errorf("keys of values.schema.json (-) and of values.yaml (+):\n%s", diff)
	}
}

// TestChartRefusesMistakes checks that a value that the chart does not have is an error with its
// name.
func TestChartRefusesMistakes(t *testing.T) {
	needHelm(t)
	f := func(set, want string) {
		t.Helper()
		if _, err := runHelm(t, "template", "weir", chart, "--set="+set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--set=%s: %v, want an error with %q", set, err, want)
		}
	}
	f("replica=2", "replica")
	f("agent.evict=true", "evict")
	f("agent.eviction=remove", "eviction")
	f("tls.type=own", "tls/type")
	f("image.digest=latest", "digest")
	f("externalMetrics.enabled=true", "externalMetrics.rules")
	f("serviceAccount.create=false", "serviceAccount.name")
	f("adapters.enabled=true,externalMetrics.enabled=true", "adapters.list")
	f("adapters.enabled=true,adapters.list[0].name=keda", "customMetrics.enabled")
}

// TestChartTakesOverMetricsServer upgrades a release of metrics-server's chart, with its own
// values: names, selectors and settings stay.
func TestChartTakesOverMetricsServer(t *testing.T) {
	needHelm(t)
	args := []string{"--namespace=kube-system", "--set=nameOverride=metrics-server", "--values=" + filepath.Join(metricsServerValues, "values.yaml")}
	s := decode(t, helmRelease(t, "metrics-server", args...))
	d := s.deployment
	if d == nil || d.Name != "metrics-server" || d.Namespace != "kube-system" {
		t.Fatalf("no Deployment metrics-server in kube-system: %v", d)
	}
	// A selector cannot be changed.
	selector := map[string]string{"app.kubernetes.io/name": "metrics-server", "app.kubernetes.io/instance": "metrics-server"}
	cmptest.Equal(t, "the selector of the Deployment", selector, d.Spec.Selector.MatchLabels)
	service := s.services["kube-system/metrics-server"]
	if service == nil || !cmp.Equal(service.Spec.Selector, selector) || service.Spec.Ports[0].Port != 443 {
		t.Errorf("the Service is %+v", service)
	}
	for _, a := range s.apiServices {
		if a.Spec.Service.Name != "metrics-server" || a.Spec.Service.Namespace != "kube-system" || !a.Spec.InsecureSkipTLSVerify {
			t.Errorf("%s leads to %+v", a.Name, a.Spec)
		}
	}
	c := d.Spec.Template.Spec.Containers[0]
	for _, arg := range []string{
		"--source=kubelet:?insecure-tls=$(KUBELET_INSECURE_TLS)&address-types=InternalIP%2CExternalIP%2CHostname&status-port=true",
		"--cert-dir=/tmp", "--metric-resolution=15s", "--secure-port=10250",
	} {
		if !slices.Contains(c.Args, arg) {
			t.Errorf("no %s in %q", arg, c.Args)
		}
	}
	if c.Image != "weir.invalid/weir:dev" || c.ImagePullPolicy != corev1.PullNever {
		t.Errorf("the image is %s (%s)", c.Image, c.ImagePullPolicy)
	}
	if got := *c.SecurityContext.RunAsUser; got != 1000 {
		t.Errorf("the container runs as user %d, want that of the values, 1000", got)
	}
	if p := c.ReadinessProbe; p.InitialDelaySeconds != 20 || p.PeriodSeconds != 10 || p.HTTPGet.Path != "/readyz" {
		t.Errorf("the readiness probe is %+v", p)
	}
	if got := c.Resources.Requests.Memory().String(); got != "200Mi" {
		t.Errorf("the container requests %s, want 200Mi", got)
	}
	if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "tmp" && m.MountPath == "/tmp" }) {
		t.Errorf("no /tmp for --cert-dir: %+v", c.VolumeMounts)
	}
	checkVolumes(t, s, d.Spec.Template.Spec)
	if notes := chartNotes(t, args...); !strings.Contains(notes, "image: registry.invalid/metrics-server/metrics-server is not weir's image") {
		t.Errorf("the notes do not name the image:\n%s", notes)
	}
	// Bindings may name the ClusterRole of metrics-server's users, and Helm would delete it.
	const users = "system:metrics-server-aggregated-reader"
	find := func(s set) object {
		i := slices.IndexFunc(s.objects, func(o object) bool { return o.kind() == "ClusterRole" && o.name() == users })
		if i < 0 {
			return nil
		}
		return s.objects[i]
	}
	role := find(s)
	if got, want := string(mustJSON(t, role["rules"])), `[{"apiGroups":["metrics.k8s.io"],"resources":["pods","nodes"],"verbs":["get","list","watch"]}]`; got != want {
		t.Errorf("%s has the rules %s, want %s", users, got, want)
	}
	for _, to := range []string{"view", "edit", "admin"} {
		if role.str("metadata", "labels", "rbac.authorization.k8s.io/aggregate-to-"+to) != "true" {
			t.Errorf("%s is not aggregated to %s", users, to)
		}
	}
	for _, without := range []string{"rbac.metricsServerReader=false", "rbac.create=false,serviceAccount.name=own"} {
		if find(decode(t, helmRelease(t, "metrics-server", append(slices.Clone(args), "--set="+without)...))) != nil {
			t.Errorf("--set=%s: there is a %s", without, users)
		}
	}
	if find(decode(t, helmTemplate(t, "--namespace=weir-system"))) != nil {
		t.Errorf("a release of weir has a %s", users)
	}
}

// TestChartTakesOnlyWeirsImage checks which repositories give the image in a release of metrics-server,
// whose values may name any mirror of it, and in a release of weir.
func TestChartTakesOnlyWeirsImage(t *testing.T) {
	needHelm(t)
	const own = "weir.invalid/weir:dev Never"
	f := func(set, inPlace, elsewhere string) {
		t.Helper()
		for _, release := range []struct {
			args []string
			want string
		}{{[]string{"--set=nameOverride=metrics-server", "--set=" + set}, inPlace}, {[]string{"--set=" + set}, elsewhere}} {
			c := decode(t, helmRelease(t, "metrics-server", release.args...)).deployment.Spec.Template.Spec.Containers[0]
			if got := fmt.Sprint(c.Image, " ", c.ImagePullPolicy); got != release.want {
				t.Errorf("%q: got %s, want %s", release.args, got, release.want)
			}
		}
	}
	const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	f("image.tag=v0.9.0", own, own)
	f("image.digest="+digest, own, own)
	// Of metrics-server, under whatever name.
	f("image.repository=registry.k8s.io/metrics-server/metrics-server,image.tag=v0.9.0", own, own)
	f("image.repository=rancher/mirrored-metrics-server,image.tag=v0.8.0", own, own)
	f("image.repository=weir.example/metrics-server,image.digest="+digest, own, own)
	f("image.repository=r.invalid/k8s/metrics,image.tag=v0.8.0", own, "r.invalid/k8s/metrics:v0.8.0 IfNotPresent")
	f("image.repository=weir.example/k8s/metrics,image.tag=v0.8.0", own, "weir.example/k8s/metrics:v0.8.0 IfNotPresent")
	f("image.repository=r.invalid/weird,image.tag=v1", own, "r.invalid/weird:v1 IfNotPresent")
	// Of weir.
	for _, name := range []string{"r.invalid/weir", "r.invalid:5000/weir/server", "r.invalid/mirrored-weir", "weir", "r.invalid/k8s/weir-metrics"} {
		f("image.repository="+name+",image.tag=v1", name+":v1 IfNotPresent", name+":v1 IfNotPresent")
		f("image.repository="+name+",image.tag=v0.9.0,image.digest="+digest, name+"@"+digest+" IfNotPresent", name+"@"+digest+" IfNotPresent")
	}
	f("image.repository=r.invalid/k8s/metrics,image.tag=v1,image.holdsWeir=true", "r.invalid/k8s/metrics:v1 IfNotPresent", "r.invalid/k8s/metrics:v1 IfNotPresent")
	f("image.repository=r.invalid/metrics-server,image.tag=v1,image.holdsWeir=true", "r.invalid/metrics-server:v1 IfNotPresent", "r.invalid/metrics-server:v1 IfNotPresent")
}

// chartNotes returns what helm install prints after the manifests.
func chartNotes(t *testing.T, args ...string) string {
	t.Helper()
	out, err := runHelm(t, append([]string{"install", "weir", chart, "--dry-run=client"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	_, notes, _ := strings.Cut(out, "\nNOTES:\n")
	return notes
}

// TestInstallCommandsWaitForEveryVersion checks that the commands that install weir wait for each version
// of metrics.k8s.io that it registers: kubectl top asks for the first version that the API server lists.
func TestInstallCommandsWaitForEveryVersion(t *testing.T) {
	shown := map[string]string{}
	if *withHelm {
		shown["the chart's notes"] = chartNotes(t)
		if notes := chartNotes(t, "--set=apiService.create=false"); strings.Contains(notes, "kubectl wait") {
			t.Errorf("the notes wait for APIServices that are not created:\n%s", notes)
		}
	}
	for _, page := range []string{"../README.md", "../docs/install.md"} {
		shown[page] = string(readFile(t, page))
	}
	for where, text := range shown {
		wait := regexp.MustCompile(`(?m)^[$ ]+kubectl wait --for=condition=Available (.*)$`).FindStringSubmatch(text)
		if wait == nil {
			t.Errorf("%s shows no kubectl wait", where)
			continue
		}
		for _, a := range decode(t, render(t, filepath.Join(root, "base"))).apiServices {
			if a.Spec.Group == "metrics.k8s.io" && !slices.Contains(strings.Fields(wait[1]), "apiservice/"+a.Name) {
				t.Errorf("%s waits for %s, and not for %s", where, wait[1], a.Name)
			}
		}
	}
}

// TestChartKnowsMetricsServersFlags compares what the chart does with each flag of metrics-server
// with docs/from-metrics-server.md, which a test of app compares with the code.
func TestChartKnowsMetricsServersFlags(t *testing.T) {
	needHelm(t)
	row := regexp.MustCompile("(?m)^\\| `--([a-z0-9-]+)` \\| (kept|idle|refused)(?: \\(option `([a-z-]+)`\\))? \\|")
	rows := row.FindAllStringSubmatch(string(readFile(t, "../docs/from-metrics-server.md")), -1)
	if len(rows) < 30 {
		t.Fatalf("found %d flags", len(rows))
	}
	var args []string
	for _, r := range rows {
		args = append(args, "--"+r[1]+"=true")
	}
	set := "--set=args={" + strings.Join(args, ",") + "}"
	c := decode(t, helmTemplate(t, set)).deployment.Spec.Template.Spec.Containers[0]
	notes := chartNotes(t, set)
	for _, r := range rows {
		flag, fate, option := r[1], r[2], r[3]
		passed := slices.Contains(c.Args, "--"+flag+"=true")
		named := strings.Contains(notes, "args: --"+flag+" (")
		source := slices.ContainsFunc(c.Args, func(a string) bool { return strings.Contains(a, "&"+option+"=true") })
		switch {
		case flag == "kubelet-insecure-tls":
			if passed || named || !slices.Contains(c.Env, corev1.EnvVar{Name: "KUBELET_INSECURE_TLS", Value: "true"}) {
				t.Errorf("--%s does not set the variable", flag)
			}
		case option != "":
			if passed || named || !source {
				t.Errorf("--%s is not the option %s of a source: %q", flag, option, c.Args)
			}
		case fate == "kept":
			if !passed || named {
				t.Errorf("--%s does not reach weir: %q", flag, c.Args)
			}
		default:
			if passed || !named {
				t.Errorf("--%s is %s: given to weir %v, named in the notes %v", flag, fate, passed, named)
			}
		}
	}
}

// TestChartValues sets each value of metrics-server's chart that changes an object, and looks for
// the change.
func TestChartValues(t *testing.T) {
	needHelm(t)
	find := func(t *testing.T, s set, kind string) object {
		t.Helper()
		for _, o := range s.objects {
			if o.kind() == kind {
				return o
			}
		}
		t.Fatalf("no %s", kind)
		return nil
	}
	f := func(values string, check func(t *testing.T, s set, d *appsv1.Deployment, c corev1.Container) bool) {
		t.Helper()
		t.Run(values, func(t *testing.T) {
			s := decode(t, helmTemplate(t, "--namespace=weir-system", "--set="+values))
			if !check(t, s, s.deployment, s.deployment.Spec.Template.Spec.Containers[0]) {
				t.Errorf("no effect of %s", values)
			}
		})
	}
	pod := func(values string, check func(p corev1.PodSpec) bool) {
		t.Helper()
		f(values, func(_ *testing.T, _ set, d *appsv1.Deployment, _ corev1.Container) bool {
			return check(d.Spec.Template.Spec)
		})
	}
	f("image.repository=r.invalid/w,image.tag=v1,image.pullPolicy=Always", func(_ *testing.T, _ set, _ *appsv1.Deployment, c corev1.Container) bool {
		return c.Image == "r.invalid/w:v1" && c.ImagePullPolicy == corev1.PullAlways
	})
	f("image.repository=r.invalid/w", func(_ *testing.T, _ set, _ *appsv1.Deployment, c corev1.Container) bool {
		return c.Image == "r.invalid/w:dev" && c.ImagePullPolicy == corev1.PullIfNotPresent
	})
	for _, others := range []string{"image.tag=v0.9.0", "image.digest=sha256:" + strings.Repeat("0", 64), "image.pullPolicy=Always", "image.tag=v0.9.0,image.repository=r.invalid/metrics-server"} {
		f(others, func(_ *testing.T, _ set, _ *appsv1.Deployment, c corev1.Container) bool {
			return c.Image == "weir.invalid/weir:dev" && c.ImagePullPolicy == corev1.PullNever
		})
	}
	pod("imagePullSecrets[0].name=key", func(p corev1.PodSpec) bool { return p.ImagePullSecrets[0].Name == "key" })
	pod("serviceAccount.name=own", func(p corev1.PodSpec) bool { return p.ServiceAccountName == "own" })
	pod("serviceAccount.create=false,serviceAccount.name=own", func(p corev1.PodSpec) bool { return p.ServiceAccountName == "own" })
	pod("podSecurityContext.fsGroup=7", func(p corev1.PodSpec) bool { return *p.SecurityContext.FSGroup == 7 && *p.SecurityContext.RunAsNonRoot })
	pod("hostUsers=false", func(p corev1.PodSpec) bool { return p.HostUsers != nil && !*p.HostUsers })
	pod("hostNetwork.enabled=true", func(p corev1.PodSpec) bool { return p.HostNetwork })
	pod("priorityClassName=", func(p corev1.PodSpec) bool { return p.PriorityClassName == "" })
	pod("schedulerName=own", func(p corev1.PodSpec) bool { return p.SchedulerName == "own" })
	pod("nodeSelector.a=b", func(p corev1.PodSpec) bool {
		return cmp.Equal(p.NodeSelector, map[string]string{"a": "b", "kubernetes.io/os": "linux"})
	})
	pod("tolerations[0].operator=Exists", func(p corev1.PodSpec) bool { return p.Tolerations[0].Operator == "Exists" })
	pod("replicas=2,affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=7", func(p corev1.PodSpec) bool {
		return p.Affinity.PodAntiAffinity == nil && p.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].Weight == 7
	})
	pod("topologySpreadConstraints[0].maxSkew=3", func(p corev1.PodSpec) bool { return p.TopologySpreadConstraints[0].MaxSkew == 3 })
	pod("dnsConfig.nameservers[0]=10.0.0.1", func(p corev1.PodSpec) bool { return p.DNSConfig.Nameservers[0] == "10.0.0.1" })
	pod("extraVolumes[0].name=a", func(p corev1.PodSpec) bool {
		return slices.ContainsFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == "a" })
	})
	pod("tmpVolume.emptyDir.medium=Memory", func(p corev1.PodSpec) bool { return p.Volumes[len(p.Volumes)-1].EmptyDir.Medium == "Memory" })
	f("extraVolumeMounts[0].name=a,extraVolumeMounts[0].mountPath=/a", func(_ *testing.T, _ set, _ *appsv1.Deployment, c corev1.Container) bool {
		return c.VolumeMounts[len(c.VolumeMounts)-1].MountPath == "/a"
	})
	f("revisionHistoryLimit=0", func(_ *testing.T, _ set, d *appsv1.Deployment, _ corev1.Container) bool {
		return d.Spec.RevisionHistoryLimit != nil && *d.Spec.RevisionHistoryLimit == 0
	})
	f("updateStrategy.type=Recreate", func(_ *testing.T, _ set, d *appsv1.Deployment, _ corev1.Container) bool {
		return d.Spec.Strategy.Type == "Recreate" && d.Spec.Strategy.RollingUpdate == nil
	})
	f("deploymentAnnotations.a=b,podAnnotations.c=d,podLabels.e=f,commonLabels.g=h", func(_ *testing.T, _ set, d *appsv1.Deployment, _ corev1.Container) bool {
		return d.Annotations["a"] == "b" && d.Spec.Template.Annotations["c"] == "d" && d.Spec.Template.Labels["e"] == "f" && d.Labels["g"] == "h"
	})
	f("containerPort=4443,service.port=8443,service.type=NodePort,service.labels.a=b,service.annotations.c=d", func(_ *testing.T, s set, _ *appsv1.Deployment, c corev1.Container) bool {
		service := s.services["weir-system/weir"]
		return c.Ports[0].ContainerPort == 4443 && slices.Contains(c.Args, "--secure-port=4443") && service.Spec.Type == "NodePort" &&
			service.Spec.Ports[0].Port == 8443 && service.Labels["a"] == "b" && service.Annotations["c"] == "d" && s.apiServices[0].Spec.Service.Port == 8443
	})
	f("livenessProbe.periodSeconds=7,readinessProbe.failureThreshold=9,resources.limits.cpu=2,securityContext.runAsUser=9", func(_ *testing.T, _ set, _ *appsv1.Deployment, c corev1.Container) bool {
		return c.LivenessProbe.PeriodSeconds == 7 && c.ReadinessProbe.FailureThreshold == 9 && c.Resources.Limits.Cpu().Value() == 2 && *c.SecurityContext.RunAsUser == 9
	})
	f("metrics.enabled=true", func(_ *testing.T, _ set, _ *appsv1.Deployment, c corev1.Container) bool {
		return slices.Contains(c.Args, "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics")
	})
	f("args={--source=kubelet:http://:10255}", func(_ *testing.T, _ set, _ *appsv1.Deployment, c corev1.Container) bool {
		sources := slices.DeleteFunc(slices.Clone(c.Args), func(a string) bool { return !strings.HasPrefix(a, "--source=") })
		return slices.Equal(sources, []string{"--source=kubelet:http://:10255"})
	})
	f("fullnameOverride=other,namespaceOverride=elsewhere", func(_ *testing.T, s set, d *appsv1.Deployment, _ corev1.Container) bool {
		return d.Name == "other" && d.Namespace == "elsewhere" && s.apiServices[0].Spec.Service.Name == "other"
	})
	f("apiService.create=false", func(_ *testing.T, s set, _ *appsv1.Deployment, _ corev1.Container) bool {
		return len(s.apiServices) == 0
	})
	f("apiService.caBundle=PEM,apiService.annotations.a=b", func(_ *testing.T, s set, _ *appsv1.Deployment, _ corev1.Container) bool {
		a := s.apiServices[0]
		return string(a.Spec.CABundle) == "PEM" && !a.Spec.InsecureSkipTLSVerify && a.Annotations["a"] == "b"
	})
	f("rbac.create=false", func(_ *testing.T, s set, _ *appsv1.Deployment, c corev1.Container) bool {
		for _, o := range s.objects {
			if strings.Contains(o.kind(), "Role") || o.name() == "weir-kubelet-reader" {
				return false
			}
		}
		return !slices.ContainsFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, "--kubelet-account") })
	})
	f("podDisruptionBudget.enabled=true,podDisruptionBudget.maxUnavailable=1,replicas=3", func(t *testing.T, s set, _ *appsv1.Deployment, _ corev1.Container) bool {
		for _, o := range s.typed {
			if p, ok := o.(*policyv1.PodDisruptionBudget); ok {
				return p.Spec.MaxUnavailable.IntValue() == 1 && p.Spec.MinAvailable == nil
			}
		}
		return false
	})
	f("replicas=2,podDisruptionBudget.enabled=false", func(_ *testing.T, s set, _ *appsv1.Deployment, _ corev1.Container) bool {
		return !slices.ContainsFunc(s.objects, func(o object) bool { return o.kind() == "PodDisruptionBudget" })
	})
	f("serviceMonitor.enabled=true,serviceMonitor.additionalLabels.a=b,serviceMonitor.interval=7s", func(t *testing.T, s set, _ *appsv1.Deployment, _ corev1.Container) bool {
		m := mustJSON(t, find(t, s, "ServiceMonitor"))
		return bytes.Contains(m, []byte(`"a":"b"`)) && bytes.Count(m, []byte(`"interval":"7s"`)) == 2 && bytes.Contains(m, []byte(`"weir.weir-system.svc:443"`))
	})
	monitor := func(t *testing.T, s set, name string) (token, unverified, there bool) {
		for _, o := range s.objects {
			if o.kind() == "ServiceMonitor" && o.name() == name {
				m := mustJSON(t, o)
				return bytes.Contains(m, []byte("bearerTokenFile")), bytes.Contains(m, []byte("insecureSkipVerify")), true
			}
		}
		return false, false, false
	}
	for values, want := range map[string]bool{
		"tls.type=weir": false, "tls.type=helm": true, "tls.type=cert-manager": true,
		"tls.type=existingSecret,tls.existingSecret.name=a":                                           false,
		"tls.type=existingSecret,tls.existingSecret.name=a,serviceMonitor.tlsConfig.ca.secret.name=a": true,
		"tls.type=helm,serviceMonitor.tlsConfig.insecureSkipVerify=true":                              false,
		"serviceMonitor.tlsConfig.insecureSkipVerify=true,serviceMonitor.tlsConfig.serverName=a":      false,
	} {
		f("serviceMonitor.enabled=true,agent.enabled=true,"+values, func(t *testing.T, s set, _ *appsv1.Deployment, _ corev1.Container) bool {
			token, unverified, there := monitor(t, s, "weir")
			_, _, agents := monitor(t, s, "weir-agent")
			return there && !agents && token == want && unverified != want
		})
	}
	for values, want := range map[string]bool{"ca.secret.name=a": true, "insecureSkipVerify=true": false} {
		f("serviceMonitor.enabled=true,agent.enabled=true,serviceMonitor.agentTLSConfig."+values, func(t *testing.T, s set, _ *appsv1.Deployment, _ corev1.Container) bool {
			token, unverified, there := monitor(t, s, "weir-agent")
			return there && token == want && unverified != want
		})
	}
	f("serviceMonitor.enabled=true,agent.enabled=true,serviceMonitor.agentTLSConfig.ca.secret.name=a,serviceMonitor.interval=7s,serviceMonitor.scrapeTimeout=5s", func(t *testing.T, s set, _ *appsv1.Deployment, _ corev1.Container) bool {
		service := s.services["weir-agents/weir-agent"]
		if service == nil || service.Spec.ClusterIP != "None" {
			return false
		}
		for _, o := range s.objects {
			if m := mustJSON(t, o); o.kind() == "ServiceMonitor" && o.name() == "weir-agent" {
				return bytes.Contains(m, []byte(`"interval":"7s"`)) && bytes.Contains(m, []byte(`"scrapeTimeout":"5s"`)) && bytes.Contains(m, []byte(`"port":"https"`))
			}
		}
		return false
	})
	f("prometheusRule.enabled=true,prometheusRule.additionalLabels.a=b", func(t *testing.T, s set, _ *appsv1.Deployment, _ corev1.Container) bool {
		var alerts any
		if err := yaml.Unmarshal(readFile(t, "alerts/weir-rules.yaml"), &alerts); err != nil {
			t.Fatal(err)
		}
		rule := find(t, s, "PrometheusRule")
		return cmp.Equal(alerts, rule["spec"]) && rule.str("metadata", "labels", "a") == "b"
	})
	f("autoscaler.enabled=true,autoscaler.keepCRD=true", func(t *testing.T, s set, _ *appsv1.Deployment, _ corev1.Container) bool {
		return find(t, s, "CustomResourceDefinition").str("metadata", "annotations", "helm.sh/resource-policy") == "keep"
	})
	f("agent.enabled=true,agent.eviction=kill,agent.args={--eviction-soft=memory.available<1Gi},agent.evictionHard=memory.available<300Mi", func(_ *testing.T, s set, _ *appsv1.Deployment, _ corev1.Container) bool {
		c := s.agents.Spec.Template.Spec.Containers[0]
		return slices.Contains(c.Env, corev1.EnvVar{Name: "WEIR_EVICTION_HARD", Value: "memory.available<300Mi"}) && slices.Contains(c.Env, corev1.EnvVar{Name: "WEIR_EVICTION", Value: "kill"}) &&
			slices.ContainsFunc(s.objects, func(o object) bool { return o.kind() == "ClusterRole" && o.name() == "weir:agent-evict" })
	})
	for _, args := range []string{"--eviction-pressure=memory.pressure.full.avg10>20", "--eviction-pressure,memory.pressure.full.avg10>20"} {
		f("agent.enabled=true,agent.args={"+args+"}", func(_ *testing.T, s set, _ *appsv1.Deployment, _ corev1.Container) bool {
			profile := s.agents.Spec.Template.Spec.Containers[0].SecurityContext.AppArmorProfile
			return profile != nil && profile.Type == corev1.AppArmorProfileTypeUnconfined
		})
	}
	f("adapters.enabled=true,externalMetrics.enabled=true,adapters.list[0].name=keda,adapters.list[0].url=https://keda:443,adapters.files.keda\\.crt=PEM,podAnnotations.a=b", func(t *testing.T, s set, d *appsv1.Deployment, _ corev1.Container) bool {
		annotations := d.Spec.Template.Annotations
		for _, o := range s.typed {
			if m, ok := o.(*corev1.ConfigMap); ok && m.Name == "weir-adapters" {
				return m.Data["adapters.yaml"] == "adapters:\n- name: keda\n  url: https://keda:443" && m.Data["keda.crt"] == "PEM" && annotations["checksum/adapters"] != "" && annotations["a"] == "b"
			}
		}
		return false
	})
	f("tls.type=existingSecret,tls.existingSecret.name=mine", func(_ *testing.T, _ set, d *appsv1.Deployment, _ corev1.Container) bool {
		return slices.ContainsFunc(d.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == "mine" })
	})
	f("tls.type=helm", func(t *testing.T, s set, _ *appsv1.Deployment, _ corev1.Container) bool {
		for _, o := range s.typed {
			if secret, ok := o.(*corev1.Secret); ok {
				return secret.Name == "weir-serving-cert" && len(secret.Data["tls.key"]) > 0 && bytes.Equal(secret.Data["tls.crt"], s.apiServices[0].Spec.CABundle) && bytes.Equal(secret.Data["tls.crt"], s.apiServices[2].Spec.CABundle)
			}
		}
		return false
	})
}
