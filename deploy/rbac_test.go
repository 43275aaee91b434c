package deploy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/replicas/peer"
	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/test/cmptest"
)

// brought are the roles that Kubernetes itself has, with what they allow.
var brought = map[string]string{
	"ClusterRole system:auth-delegator":              "to create TokenReviews and SubjectAccessReviews",
	"Role extension-apiserver-authentication-reader": "to read one ConfigMap of kube-system",
}

// TestRights compares everything that weir and its readers may do with a list. Whoever adds a right
// must add it here and to the table in docs/install.md.
func TestRights(t *testing.T) {
	want := []string{
		"weir:server: get list watch of nodes pods",
		"weir:kubelet-reader: get of nodes/metrics nodes/stats",
		"weir:kubelet-token: create of serviceaccounts/token named weir-kubelet-reader",
		"weir:server: get of horizontalpodautoscalers in autoscaling",
		"weir:server: get of */scale in *",
		"weir:metrics-reader: get list of nodes pods in metrics.k8s.io",
		"weir:metrics-reader: get list of pods pods/explanation containers missing deaths slow events recommendations autoscalers/explanation horizontalpodautoscalers/explanation in weir.dev",
		"weir:evaluator: create of evaluations in weir.dev",
		"weir:resizer: get of pods",
		"weir:resizer: patch of pods/resize",
		"weir:cluster-reader: get list of nodes pods in metrics.k8s.io",
		"weir:cluster-reader: get list of nodes nodes/explanation nodes/eviction nodes/podcgroups nodes/devices nodes/kills pods pods/explanation containers cgroups missing deaths slow events recommendations ui autoscalers/explanation horizontalpodautoscalers/explanation in weir.dev",
		"weir:leader: create of leases in coordination.k8s.io",
		"weir:leader: get update of leases in coordination.k8s.io named weir",
		"weir:members: list create update delete of leases in coordination.k8s.io",
		"weir:shared-reads: get of /shared/reads",
		"weir:custom-metrics-reader: get list of * in custom.metrics.k8s.io",
		"weir:external-metrics-reader: get list of * in external.metrics.k8s.io",
		"weir:adapter-reader: get list of * in custom.metrics.k8s.io",
		"weir:adapter-reader: get list of * in external.metrics.k8s.io",
		"weir:events: list watch of events",
		"weir:hpa-events: list watch of horizontalpodautoscalers in autoscaling",
		"weir:hpa-events: get of */scale in *",
		"weir:hpa-events: create patch of events in events.k8s.io",
		"weir:autoscaler: get list watch of autoscalers in autoscaling.weir.dev",
		"weir:autoscaler: update of autoscalers/status in autoscaling.weir.dev",
		"weir:autoscaler: list watch of horizontalpodautoscalers in autoscaling",
		"weir:autoscaler: get update of */scale in *",
		"weir:autoscaler: create patch of events",
		"weir:agent: list watch of nodes pods",
		"weir:agent: get of nodes/configz",
		"weir:agent: create patch of events",
		"weir:agents-reader: get of nodes/eviction nodes/podcgroups nodes/devices nodes/kills in weir.dev",
		"weir:agent: create patch of leases in coordination.k8s.io",
		"weir:agents-reader: get of leases in coordination.k8s.io",
		"weir:agent-evict: get of pods",
		"weir:agent-evict: create of pods/eviction",
		"weir:agent-kill: get delete of pods",
		"weir:agent-kill: patch of pods/status",
		"weir:agent-request: get of pods",
		"weir:agent-request: create get delete of evictionrequests in lifecycle.k8s.io",
		"weir:agent-conditions: get patch of nodes",
		"weir:agent-conditions: patch of nodes/status",
		"weir:autoscaler-viewer: get list watch of autoscalers autoscalers/status in autoscaling.weir.dev",
		"weir:autoscaler-editor: create update patch delete deletecollection of autoscalers in autoscaling.weir.dev",
	}
	for _, role := range []string{"weir:agent-evict", "weir:agent-kill", "weir:agent-request"} {
		want = append(want, role+": list create patch delete of leases in coordination.k8s.io")
	}
	each(t, func(t *testing.T, s set) {
		for _, o := range s.typed {
			var role string
			var rules []rbacv1.PolicyRule
			switch o := o.(type) {
			case *rbacv1.ClusterRole:
				role, rules = o.Name, o.Rules
				if o.AggregationRule != nil {
					t.Errorf("%s aggregates others: nobody can see here what it allows", role)
				}
			case *rbacv1.Role:
				role, rules = o.Name, o.Rules
			}
			if labels := o.(metav1.Object).GetLabels(); role == "weir:resizer" && (labels["rbac.authorization.k8s.io/aggregate-to-edit"] != "" || labels["rbac.authorization.k8s.io/aggregate-to-admin"] != "") {
				t.Error("weir:resizer widens what edit or admin may do")
			}
			for _, r := range rules {
				if got := sentence(role, r); !slices.Contains(want, got) {
					t.Errorf("a right that is not in the list:\n%s", got)
				}
				checkRule(t, role, r)
			}
		}
	})
}

// sentence formats a rule as one line.
func sentence(role string, r rbacv1.PolicyRule) string {
	s := fmt.Sprintf("%s: %s of %s", role, strings.Join(r.Verbs, " "), strings.Join(append(r.Resources, r.NonResourceURLs...), " "))
	if groups := strings.Join(r.APIGroups, " "); groups != "" {
		s += " in " + groups
	}
	if len(r.ResourceNames) > 0 {
		s += " named " + strings.Join(r.ResourceNames, " ")
	}
	return s
}

// checkRule reports rights that can never be on the list.
func checkRule(t *testing.T, role string, r rbacv1.PolicyRule) {
	t.Helper()
	acts := role == "weir:autoscaler"
	scales := slices.Equal(r.Resources, []string{"*/scale"}) && (slices.Equal(r.Verbs, []string{"get"}) || acts && slices.Equal(r.Verbs, []string{"get", "update"}))
	if role == "weir:autoscaler-editor" || role == "weir:resizer" {
		return // this role is for people; TestBindings checks that weir does not have it
	}
	if role == "weir:members" {
		return // RBAC cannot limit these verbs to the names of the replicas' Leases, which it does not know
	}
	for _, group := range r.APIGroups {
		if group == "*" && !scales { // any custom resource can have a scale
			t.Errorf("%s: all API groups", role)
		}
	}
	if role == "weir:agent-evict" || role == "weir:agent-kill" || role == "weir:agent-request" || role == "weir:agent-conditions" {
		return // TestPodPolicy, TestRequestPolicy and TestNodePolicy check what an agent may do with them
	}
	for _, verb := range r.Verbs {
		reading := verb == "get" || verb == "list" || verb == "watch"
		leases := slices.Equal(r.Resources, []string{"leases"}) && (verb == "create" || verb == "update" || role == "weir:agent" && verb == "patch") // TestLeasePolicy
		events := slices.Equal(r.Resources, []string{"events"}) && (verb == "create" || verb == "patch")
		status := acts && slices.Equal(r.Resources, []string{"autoscalers/status"}) && verb == "update"
		asking := slices.Equal(r.Resources, []string{"evaluations"}) && verb == "create"
		tokens := slices.Equal(r.Resources, []string{"serviceaccounts/token"}) && slices.Equal(r.ResourceNames, []string{"weir-kubelet-reader"}) && verb == "create"
		if !reading && !leases && !events && !status && !scales && !asking && !tokens {
			t.Errorf("%s: may %s %v", role, verb, r.Resources)
		}
		if verb == "update" && len(r.ResourceNames) == 0 && !status && !scales {
			t.Errorf("%s: may update any of %v", role, r.Resources)
		}
	}
	own := slices.Equal(r.APIGroups, []string{"weir.dev"})
	metrics := slices.Equal(r.APIGroups, []string{"custom.metrics.k8s.io"}) || slices.Equal(r.APIGroups, []string{"external.metrics.k8s.io"})
	for _, resource := range r.Resources {
		switch {
		case resource == "*" && !metrics:
			t.Errorf("%s: all resources of %v", role, r.APIGroups)
		case resource == "secrets", resource == "configmaps", resource == "nodes/proxy", strings.HasPrefix(resource, "pods/") && !own:
			t.Errorf("%s: may %v %s", role, r.Verbs, resource)
		}
	}
}

// TestReadersMayReadEverything compares the readers' roles with the resources of the API weir.dev:
// those of a namespace, and those of the cluster.
func TestReadersMayReadEverything(t *testing.T) {
	ofNamespace := []string{"missing", "deaths", "slow", "events", "recommendations", "pods/explanation", "autoscalers/explanation", "horizontalpodautoscalers/explanation"}
	ofCluster := []string{"missing", "deaths", "slow", "events", "recommendations", "nodes/explanation", "nodes/eviction", "nodes/podcgroups", "nodes/devices", "nodes/kills", "pods/explanation", "autoscalers/explanation", "horizontalpodautoscalers/explanation", "ui"}
	for _, r := range usage.Resources() {
		ofCluster = append(ofCluster, string(r))
		if r.Namespaced() {
			ofNamespace = append(ofNamespace, string(r))
		}
	}
	each(t, func(t *testing.T, s set) {
		got := map[string][]string{}
		for _, o := range s.typed {
			if role, ok := o.(*rbacv1.ClusterRole); ok {
				for _, r := range role.Rules {
					if slices.Equal(r.APIGroups, []string{"weir.dev"}) && slices.Equal(r.Verbs, []string{"get", "list"}) {
						got[role.Name] = slices.Sorted(slices.Values(r.Resources))
					}
				}
			}
		}
		slices.Sort(ofNamespace)
		slices.Sort(ofCluster)
		want := map[string][]string{"weir:metrics-reader": ofNamespace, "weir:cluster-reader": ofCluster}
		cmptest.Equal(t, "what the roles allow of weir.dev", want, got)
	})
}

// TestTokensThatNodesSee checks which tokens leave the server's pods: one of an account that can
// only read kubelets, and tokens that only agents and replicas accept. In none of the manifests does
// a node see a token with which the API server lets somebody change anything, and only the account of
// the server's pods may change scales.
func TestTokensThatNodesSee(t *testing.T) {
	each(t, func(t *testing.T, s set) {
		if s.deployment == nil {
			return
		}
		pod := s.deployment.Spec.Template.Spec
		flags := map[string]string{}
		for _, arg := range pod.Containers[0].Args {
			name, value, _ := strings.Cut(arg, "=")
			flags[name] = value
		}
		audience := func(flag string) string {
			dir, file := filepath.Split(flags[flag])
			for _, m := range pod.Containers[0].VolumeMounts {
				for _, v := range pod.Volumes {
					if m.Name != v.Name || m.MountPath != filepath.Clean(dir) || v.Projected == nil {
						continue
					}
					for _, source := range v.Projected.Sources {
						if token := source.ServiceAccountToken; token != nil && token.Path == file {
							return token.Audience
						}
					}
				}
			}
			return ""
		}
		if got := audience("--replica-token-file"); got != peer.Audience {
			t.Errorf("replicas are shown a token for %q, want %q", got, peer.Audience)
		}
		if _, agents := flags["--agent-port"]; agents {
			if got := audience("--agent-token-file"); got != nodeapi.Audience {
				t.Errorf("agents are shown a token for %q, want %q", got, nodeapi.Audience)
			}
		}
		if got := flags["--kubelet-account"]; got != "$(POD_NAMESPACE)/weir-kubelet-reader" {
			t.Errorf("kubelets are shown a token of %q, want weir-kubelet-reader", got)
		}
		rules := map[string][]rbacv1.PolicyRule{} // by role
		rolesOf := map[string][]string{}          // by account
		for _, o := range s.typed {
			var of rbacv1.RoleRef
			var subjects []rbacv1.Subject
			switch o := o.(type) {
			case *rbacv1.ClusterRole:
				rules[o.Name] = o.Rules
			case *rbacv1.Role:
				rules[o.Name] = o.Rules
			case *rbacv1.ClusterRoleBinding:
				of, subjects = o.RoleRef, o.Subjects
			case *rbacv1.RoleBinding:
				of, subjects = o.RoleRef, o.Subjects
			}
			for _, subject := range subjects {
				rolesOf[subject.Name] = append(rolesOf[subject.Name], of.Name)
			}
		}
		scales := func(account string) bool {
			return slices.ContainsFunc(rolesOf[account], func(role string) bool {
				return slices.ContainsFunc(rules[role], func(r rbacv1.PolicyRule) bool {
					return slices.ContainsFunc(r.Resources, func(resource string) bool { return strings.HasSuffix(resource, "/scale") }) &&
						slices.ContainsFunc(r.Verbs, func(verb string) bool { return verb != "get" })
				})
			})
		}
		_, acts := flags["--autoscalers"]
		for account := range rolesOf {
			if want := acts && account == pod.ServiceAccountName; scales(account) != want {
				t.Errorf("%s may change scales: %v, want %v: only the account of the server's pods may, whose token goes to the API server alone", account, !want, want)
			}
		}
		if rights := rolesOf["weir-kubelet-reader"]; !slices.Equal(rights, []string{"weir:kubelet-reader"}) {
			t.Errorf("the account that kubelets see has %v, want only weir:kubelet-reader", rights)
		}
		if rights := rolesOf["weir-adapter-reader"]; len(rights) > 0 && !slices.Equal(rights, []string{"weir:adapter-reader"}) {
			t.Errorf("the account that other adapters see has %v, want only weir:adapter-reader", rights)
		}
	})
}

// TestBindings checks that only weir's service account has the rights, and that the bound roles
// exist.
func TestBindings(t *testing.T) {
	each(t, func(t *testing.T, s set) {
		roles := map[string]bool{}
		accounts := map[string]bool{}
		for _, o := range s.objects {
			switch o.kind() {
			case "ClusterRole", "Role":
				roles[o.kind()+" "+o.name()] = true
			case "ServiceAccount":
				accounts[o.namespace()+"/"+o.name()] = true
			}
		}
		check := func(binding string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
			t.Helper()
			if strings.HasSuffix(ref.Name, "-editor") || ref.Name == "weir:resizer" {
				t.Errorf("%s binds %s, which is for people", binding, ref.Name)
			}
			if role := ref.Kind + " " + ref.Name; !roles[role] && brought[role] == "" {
				t.Errorf("%s binds %s, which is neither here nor Kubernetes'", binding, role)
			}
			want := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "weir-system", Name: "weir"}
			if strings.HasPrefix(binding, "weir:agent") && binding != "weir:agents-reader" {
				want = rbacv1.Subject{Kind: "ServiceAccount", Namespace: "weir-agents", Name: "weir-agent"}
			}
			if account, ok := strings.CutSuffix(binding, "-reader"); ok && (account == "weir:kubelet" || account == "weir:adapter") {
				want.Name = strings.ReplaceAll(binding, ":", "-")
			}
			if len(subjects) != 1 || subjects[0] != want || !accounts[want.Namespace+"/"+want.Name] {
				t.Errorf("%s is for %v, want %v", binding, subjects, want)
			}
		}
		for _, o := range s.typed {
			switch b := o.(type) {
			case *rbacv1.ClusterRoleBinding:
				check(b.Name, b.RoleRef, b.Subjects)
			case *rbacv1.RoleBinding:
				check(b.Name, b.RoleRef, b.Subjects)
			}
		}
		if d := s.deployment; d != nil && !accounts[d.Namespace+"/"+d.Spec.Template.Spec.ServiceAccountName] {
			t.Errorf("the pods run as %q, which is not there", d.Spec.Template.Spec.ServiceAccountName)
		}
		if a := s.agents; a != nil && !accounts[a.Namespace+"/"+a.Spec.Template.Spec.ServiceAccountName] {
			t.Errorf("the agents run as %q, which is not there", a.Spec.Template.Spec.ServiceAccountName)
		}
	})
}
