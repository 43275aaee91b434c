package deploy

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/test/cmptest"
)

// agentsOf returns the DaemonSet of components/agent with more components.
func agentsOf(t *testing.T, more ...string) *appsv1.DaemonSet {
	t.Helper()
	s := decode(t, render(t, filepath.Join(root, "base"), componentPaths(append([]string{"agent"}, more...)...)...))
	if s.agents == nil {
		t.Fatal("no DaemonSet")
	}
	return s.agents
}

// mounts lists the parts of the host that a pod sees, and how.
func mounts(pod *corev1.PodSpec) (list []string) {
	paths := map[string]string{}
	for _, v := range pod.Volumes {
		path := "no hostPath"
		if v.HostPath != nil {
			path = fmt.Sprintf("%s (%s)", v.HostPath.Path, *v.HostPath.Type)
		}
		paths[v.Name] = path
	}
	for _, m := range pod.Containers[0].VolumeMounts {
		how := "to write"
		if m.ReadOnly {
			how = "to read"
		}
		if m.RecursiveReadOnly != nil && *m.RecursiveReadOnly == corev1.RecursiveReadOnlyIfPossible {
			how += ", with all below"
		}
		if m.MountPropagation != nil {
			how += ", " + string(*m.MountPropagation)
		}
		list = append(list, fmt.Sprintf("%s at %s %s", paths[m.Name], m.MountPath, how))
	}
	slices.Sort(list)
	return list
}

// TestAgentsSeeNoMoreThanTheyNeed compares everything that agents have of their hosts with a list.
// Whoever adds to the list must also add to the table in docs/agent-rights.md.
func TestAgentsSeeNoMoreThanTheyNeed(t *testing.T) {
	read := []string{
		"/sys/fs/cgroup (Directory) at /sys/fs/cgroup to read, with all below",
		"/var/lib/containerd (Directory) at /var/lib/containerd to read, with all below",
		"/var/lib/kubelet/pod-resources (DirectoryOrCreate) at /var/lib/kubelet/pod-resources to read",
		"/var/lib/kubelet/pods (Directory) at /var/lib/kubelet/pods to read, HostToContainer",
		"/var/lib/kubelet/pods-api (DirectoryOrCreate) at /var/lib/kubelet/pods-api to read",
		"/var/log/pods (Directory) at /var/log/pods to read, with all below",
	}
	for _, components := range [][]string{
		nil, {"agent-evict"}, {"agent-kill", "agent-conditions", "insecure-kubelets"},
		{"agent-pressure"}, {"agent-no-host-pid"}, {"agent-kill", "agent-no-host-pid", "agent-pressure"}, {"agent-kill", "agent-kill-at-once"}, {"agent-oom-events"},
	} {
		pod := agentsOf(t, components...).Spec.Template.Spec
		cmptest.Equal(t, fmt.Sprintf("with %v", components), read, mounts(&pod))
		if len(pod.Containers) != 1 || len(pod.InitContainers) != 0 {
			t.Fatalf("%d containers and %d init containers, want 1, 0", len(pod.Containers), len(pod.InitContainers))
		}
		sc := pod.Containers[0].SecurityContext
		want := &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(bool), ReadOnlyRootFilesystem: ptr(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"DAC_READ_SEARCH", "IPC_LOCK"}},
		}
		if slices.Contains(components, "agent-kill-at-once") {
			want.Capabilities.Add = append(want.Capabilities.Add, "KILL")
		}
		if slices.Contains(components, "agent-pressure") { // otherwise the runtime's default profile applies
			want.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
		}
		cmptest.Equal(t, fmt.Sprintf("with %v: the container's security", components), want, sc)
		seccomp := pod.SecurityContext.SeccompProfile
		hostPID := !slices.Contains(components, "agent-no-host-pid")
		if !pod.HostNetwork || pod.HostPID != hostPID || pod.HostIPC || seccomp == nil || seccomp.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("with %v: host network %v, PIDs %v, IPC %v, seccomp %v; want true, %v, false, RuntimeDefault",
				components, pod.HostNetwork, pod.HostPID, pod.HostIPC, seccomp, hostPID)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// TestAgentsAreOnEveryNode checks the settings that keep an agent on a node under pressure.
func TestAgentsAreOnEveryNode(t *testing.T) {
	a := agentsOf(t)
	pod := &a.Spec.Template.Spec
	cmptest.Equal(t, "tolerations", []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, pod.Tolerations)
	if pod.PriorityClassName != "system-node-critical" {
		t.Errorf("priority class %q, want system-node-critical", pod.PriorityClassName)
	}
	if !labels.SelectorFromSet(a.Spec.Selector.MatchLabels).Matches(labels.Set(a.Spec.Template.Labels)) {
		t.Errorf("selects %v, the pods have %v", a.Spec.Selector.MatchLabels, a.Spec.Template.Labels)
	}
	if labels.SelectorFromSet(decode(t, render(t, filepath.Join(root, "base"))).deployment.Spec.Selector.MatchLabels).Matches(labels.Set(a.Spec.Template.Labels)) {
		t.Error("the Deployment takes agents for its own")
	}
	c := &pod.Containers[0]
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || len(c.Resources.Limits) > 0 {
		t.Errorf("resources %+v, want requests, and no limits", c.Resources)
	}
	fields := map[string]string{}
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			fields[e.Name] = e.ValueFrom.FieldRef.FieldPath
		}
	}
	if fields["NODE_NAME"] != "spec.nodeName" || fields["POD_UID"] != "metadata.uid" {
		t.Errorf("told of itself: %v, want its node and its own UID", fields)
	}
	for endpoint, probe := range map[string]*corev1.Probe{"/readyz": c.ReadinessProbe, "/livez": c.LivenessProbe} {
		if probe == nil || probe.HTTPGet.Path != endpoint || probe.HTTPGet.Scheme != corev1.URISchemeHTTPS || !hasPort(*pod, probe.HTTPGet.Port.String()) {
			t.Errorf("%+v is no probe of %s", probe, endpoint)
		}
	}
}

// TestDocsHaveTheRights compares the table of rights in docs/agent-rights.md with the components: each
// right is in the table, and the table has no others.
func TestDocsHaveTheRights(t *testing.T) {
	text, err := os.ReadFile("../docs/agent-rights.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = bytes.Cut(text, []byte("## What an agent may do\n"))
	text, _, _ = bytes.Cut(text, []byte("\nRBAC knows no nodes"))
	got := map[string][]string{}
	component := ""
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || strings.Contains(line, "---") || strings.Contains(line, "verbs") || strings.Contains(cells[4], "`)") {
			continue // it is not a right, or it belongs to a role of Kubernetes, which TestBindings checks
		}
		if name := strings.Trim(cells[1], " `"); name != "" {
			component = name
		}
		resources := strings.Split(cells[3], ";")
		for i, verbs := range strings.Split(cells[2], ";") {
			got[component] = append(got[component], strings.Join(words(verbs), " ")+" of "+strings.Join(words(resources[i]), " "))
		}
	}
	want := map[string][]string{}
	components := []string{"agent", "agent-evict", "agent-kill", "agent-request", "agent-conditions"}
	for _, o := range decode(t, render(t, filepath.Join(root, "base"), componentPaths(components...)...)).typed {
		var name string
		var rules []rbacv1.PolicyRule
		switch role := o.(type) {
		case *rbacv1.ClusterRole:
			name, rules = strings.TrimPrefix(role.Name, "weir:"), role.Rules
		case *rbacv1.Role:
			name, rules = strings.TrimPrefix(role.Name, "weir:"), role.Rules
		}
		if slices.Contains(components, name) {
			for _, r := range rules {
				want[name] = append(want[name], strings.Join(r.Verbs, " ")+" of "+strings.Join(r.Resources, " "))
			}
		}
	}
	for _, of := range []map[string][]string{got, want} {
		for _, rights := range of {
			slices.Sort(rights)
		}
	}
	cmptest.Equal(t, "rights in docs/agent-rights.md", want, got)
}

// words returns the words of a list.
func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == ',' })
}

// componentPaths returns the folders of components.
func componentPaths(names ...string) (paths []string) {
	for _, n := range names {
		paths = append(paths, filepath.Join(root, "components", n))
	}
	return paths
}

// TestModesOfAgents checks that an agent acts only if a component says so, and that of several
// components the last one counts.
func TestModesOfAgents(t *testing.T) {
	for _, test := range []struct {
		components []string
		want       string
	}{
		{nil, "observe "},
		{[]string{"agent-conditions"}, "observe "},
		{[]string{"agent-evict"}, "evict memory.available<200Mi"},
		{[]string{"agent-kill"}, "kill memory.available<200Mi"},
		{[]string{"agent-request"}, "request memory.available<200Mi"},
		{[]string{"agent-evict", "agent-kill"}, "kill memory.available<200Mi"},
	} {
		c := agentsOf(t, test.components...).Spec.Template.Spec.Containers[0]
		values := map[string]string{}
		for _, e := range c.Env {
			values[e.Name] = e.Value
		}
		if got := values["WEIR_EVICTION"] + " " + values["WEIR_EVICTION_HARD"]; got != test.want {
			t.Errorf("with %v: %q, want %q", test.components, got, test.want)
		}
	}
}
