package deploy

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	lifecycle "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/weir-metrics/weir/api/nodeapi/agents"
	"github.com/weir-metrics/weir/api/nodeapi/oomkills"
	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/eviction/nodeconditions"
)

// The API server's own admission plugin evaluates the installed policies for requests of agents, so
// the expressions run as in an API server. In test/node, agents work under these policies in a
// whole cluster.

const (
	agentUser = "system:serviceaccount:weir-agents:weir-agent"
	nodeClaim = "authentication.kubernetes.io/node-name"
)

// policies are the active ValidatingAdmissionPolicies of components/agent.
type policies struct{ plugin *validating.Plugin }

func startPolicies(t *testing.T) *policies {
	t.Helper()
	client := fake.NewClientset(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "weir-agents"}},
	)
	s := decode(t, render(t, filepath.Join(root, "base"), filepath.Join(root, "components", "agent")))
	for _, o := range s.typed {
		var err error
		switch o := o.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			_, err = client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), withDefaults(o), metav1.CreateOptions{})
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			_, err = client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), o, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	plugin, err := validating.NewPlugin(nil)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	factory := informers.NewSharedInformerFactory(client, 0)
	plugin.SetExternalKubeInformerFactory(factory)
	plugin.SetExternalKubeClientSet(client)
	plugin.SetRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme.Scheme))
	plugin.SetDynamicClient(dynamicfake.NewSimpleDynamicClient(scheme.Scheme))
	plugin.SetDrainedNotification(stop)
	plugin.SetUnconditionalAuthorizer(authorizer.AuthorizerFunc(nil))
	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	factory.Start(stop)
	t.Cleanup(func() {
		close(stop)
		factory.Shutdown()
	})
	p := &policies{plugin}
	// The plugin reads and compiles policies in the background. A policy is active once it refuses
	// something.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		pods := p.judge(t, request{verb: admission.Delete, old: pod("web", "n2")}, agentOn("n1"))
		nodes := p.judge(t, request{verb: admission.Delete, old: node("n2")}, agentOn("n1"))
		requests := p.judge(t, request{verb: admission.Delete, old: evictionRequest("web", "u1", "acme.io/drain")}, agentOn("n1"))
		leases := p.judge(t, request{verb: admission.Delete, old: lease("n2")}, agentOn("n1"))
		events := p.judge(t, request{verb: admission.Create, is: event("n2", nil)}, agentOn("n1"))
		if pods != "" && nodes != "" && requests != "" && leases != "" && events != "" {
			return p
		}
		if time.Now().After(deadline) {
			t.Fatalf("policies are not in force after 20s: pods %q, nodes %q, requests %q, leases %q, events %q", pods, nodes, requests, leases, events)
		}
	}
}

// withDefaults sets the defaults that an API server sets.
func withDefaults(p *admissionv1.ValidatingAdmissionPolicy) *admissionv1.ValidatingAdmissionPolicy {
	equivalent := admissionv1.Equivalent
	c := p.Spec.MatchConstraints
	c.MatchPolicy, c.NamespaceSelector, c.ObjectSelector = &equivalent, &metav1.LabelSelector{}, &metav1.LabelSelector{}
	return p
}

// request is a request of an agent.
type request struct {
	verb admission.Operation
	sub  string
	old  runtime.Object // nil if there is none
	is   runtime.Object
	// options belong to a deletion.
	options *metav1.DeleteOptions
}

// judge returns why a request is refused, or "" if it is allowed.
func (p *policies) judge(t *testing.T, r request, by user.Info) string {
	t.Helper()
	about := r.old
	if about == nil {
		about = r.is
	}
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	resource := corev1.SchemeGroupVersion.WithResource("pods")
	name, namespace := "web", "shop"
	if o, is := about.(metav1.Object); is {
		name, namespace = o.GetName(), o.GetNamespace()
	}
	switch about.(type) {
	case *corev1.PodExecOptions:
		kind.Kind = "PodExecOptions"
	case *corev1.PodProxyOptions:
		kind.Kind = "PodProxyOptions"
	case *corev1.NodeProxyOptions:
		kind.Kind, resource, name, namespace = "NodeProxyOptions", corev1.SchemeGroupVersion.WithResource("nodes"), "n1", ""
	case *corev1.Node:
		kind, resource = corev1.SchemeGroupVersion.WithKind("Node"), corev1.SchemeGroupVersion.WithResource("nodes")
	case *policyv1.Eviction:
		kind = policyv1.SchemeGroupVersion.WithKind("Eviction")
	case *lifecycle.EvictionRequest:
		kind, resource = lifecycle.SchemeGroupVersion.WithKind("EvictionRequest"), lifecycle.SchemeGroupVersion.WithResource("evictionrequests")
	case *coordinationv1.Lease:
		kind, resource = coordinationv1.SchemeGroupVersion.WithKind("Lease"), coordinationv1.SchemeGroupVersion.WithResource("leases")
	case *corev1.Event:
		kind, resource = corev1.SchemeGroupVersion.WithKind("Event"), corev1.SchemeGroupVersion.WithResource("events")
	case *lifecycle.Eviction:
		kind, resource = lifecycle.SchemeGroupVersion.WithKind("Eviction"), lifecycle.SchemeGroupVersion.WithResource("evictions")
	}
	var options runtime.Object = &metav1.UpdateOptions{}
	if r.verb == admission.Delete {
		options = &metav1.DeleteOptions{}
		if r.options != nil {
			options = r.options
		}
	}
	err := p.plugin.Validate(t.Context(), admission.NewAttributesRecord(
		r.is, r.old, kind, namespace, name, resource, r.sub, r.verb, options, false, by,
	), admission.NewObjectInterfacesFromScheme(scheme.Scheme))
	if err == nil {
		return ""
	}
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		t.Errorf("%s: not judged: %v", name, err)
	}
	_, reason, _ := strings.Cut(err.Error(), "denied request: ")
	return reason
}

// policyTest is a request of a client, and why it is refused; "" if it is allowed.
type policyTest struct {
	what string
	by   user.Info
	request
	want string
}

// expect judges each request of the tests.
func (p *policies) expect(t *testing.T, tests []policyTest) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			if got := p.judge(t, test.request, test.by); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func agentOn(node string) user.Info {
	u := &user.DefaultInfo{Name: agentUser, Extra: map[string][]string{}}
	if node != "" {
		u.Extra[nodeClaim] = []string{node}
	}
	return u
}

func pod(name, on string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "u1", ResourceVersion: "1", Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Name: "app", Image: "web"}}},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func disrupted(p *corev1.Pod) {
	p.ResourceVersion = "2"
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByWeir"})
}

func deleted(grace int64) *metav1.DeleteOptions {
	return &metav1.DeleteOptions{GracePeriodSeconds: &grace}
}

func evicted(uid types.UID) *policyv1.Eviction {
	e := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	if uid != "" {
		e.DeleteOptions = &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	}
	return e
}

func evictedWithin(grace int64) *policyv1.Eviction {
	e := evicted("u1")
	e.DeleteOptions.GracePeriodSeconds = &grace
	return e
}

func TestPodPolicy(t *testing.T) {
	p := startPolicies(t)
	const (
		noNode   = "this token does not say on which node its agent runs"
		notThat  = "an agent evicts pods, deletes them, and marks them as disrupted, and does nothing else to them"
		others   = "an agent touches no pods of other nodes"
		critical = "an agent touches no critical pods"
		static   = "an agent touches no static pods"
		atOnce   = "an agent gives a pod a second to end, at the least"
		tooMuch  = "an agent changes no more of a pod than the condition DisruptionTarget"
		anyUID   = "an agent evicts the pod it has looked at, and no later one of that name"
	)
	web := pod("web", "n1")
	marks := func(change func(*corev1.Pod)) request {
		return request{verb: admission.Update, sub: "status", old: web, is: pod("web", "n1", change)}
	}
	priority := func(n int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &n } }
	mirror := func(p *corev1.Pod) { p.Annotations = map[string]string{"kubernetes.io/config.mirror": "abc"} }
	p.expect(t, []policyTest{
		{"deletes its own", agentOn("n1"), request{verb: admission.Delete, old: web, options: deleted(1)}, ""},
		{"deletes another node's", agentOn("n2"), request{verb: admission.Delete, old: web, options: deleted(1)}, others},
		{"deletes one of no node", agentOn("n1"), request{verb: admission.Delete, old: pod("web", ""), options: deleted(1)}, others},
		{"deletes, by a token of no node", agentOn(""), request{verb: admission.Delete, old: web, options: deleted(1)}, noNode},
		{"deletes one of no node, by a token of no node", agentOn(""), request{verb: admission.Delete, old: pod("web", ""), options: deleted(1)}, noNode},
		{"deletes at once", agentOn("n1"), request{verb: admission.Delete, old: web, options: deleted(0)}, atOnce},
		{"deletes without a time to end", agentOn("n1"), request{verb: admission.Delete, old: web}, atOnce},
		{"deletes one of high priority", agentOn("n1"), request{verb: admission.Delete, old: pod("web", "n1", priority(1999999999)), options: deleted(30)}, ""},
		{"deletes a critical one", agentOn("n1"), request{verb: admission.Delete, old: pod("web", "n1", priority(2000000000)), options: deleted(30)}, critical},
		{"deletes a static one", agentOn("n1"), request{verb: admission.Delete, old: pod("web", "n1", mirror), options: deleted(30)}, static},
		{"marks its own", agentOn("n1"), marks(disrupted), ""},
		{"marks it again", agentOn("n1"), request{verb: admission.Update, sub: "status", old: pod("web", "n1", disrupted), is: pod("web", "n1", disrupted, func(p *corev1.Pod) { p.Status.Conditions[1].Message = "again" })}, ""},
		{"marks one that has no conditions", agentOn("n1"), request{verb: admission.Update, sub: "status", old: pod("web", "n1", func(p *corev1.Pod) { p.Status.Conditions = nil }),
			is: pod("web", "n1", func(p *corev1.Pod) { p.Status.Conditions = nil }, disrupted)}, ""},
		{"marks another node's", agentOn("n2"), marks(disrupted), others},
		{"marks, by a token of no node", agentOn(""), marks(disrupted), noNode},
		{"fails it", agentOn("n1"), marks(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), tooMuch},
		{"says why", agentOn("n1"), marks(func(p *corev1.Pod) { p.Status.Reason = "Evicted" }), tooMuch},
		{"takes its phase", agentOn("n1"), marks(func(p *corev1.Pod) { p.Status.Phase = "" }), tooMuch},
		{"makes it unready", agentOn("n1"), marks(func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }), tooMuch},
		{"takes its readiness", agentOn("n1"), marks(func(p *corev1.Pod) { p.Status.Conditions = nil }), tooMuch},
		{"takes its labels", agentOn("n1"), marks(func(p *corev1.Pod) { p.Labels = nil }), tooMuch},
		{"changes a label", agentOn("n1"), marks(func(p *corev1.Pod) { p.Labels = map[string]string{"app": "mine"} }), tooMuch},
		{"adds a finalizer", agentOn("n1"), marks(func(p *corev1.Pod) { p.Finalizers = []string{"a/b"} }), tooMuch},
		{"changes its image", agentOn("n1"), request{verb: admission.Update, old: web, is: pod("web", "n1", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "evil" })}, notThat},
		{"resizes it", agentOn("n1"), request{verb: admission.Update, sub: "resize", old: web, is: web}, notThat},
		{"makes one", agentOn("n1"), request{verb: admission.Create, is: web}, notThat},
		{"binds one", agentOn("n1"), request{verb: admission.Create, sub: "binding", is: web}, notThat},
		{"runs a command in it", agentOn("n1"), request{verb: admission.Connect, sub: "exec", is: &corev1.PodExecOptions{Command: []string{"sh"}}}, notThat},
		{"reaches its ports", agentOn("n1"), request{verb: admission.Connect, sub: "proxy", is: &corev1.PodProxyOptions{Path: "/"}}, notThat},
		{"evicts", agentOn("n1"), request{verb: admission.Create, sub: "eviction", is: evicted("u1")}, ""},
		{"evicts, with a second to end", agentOn("n1"), request{verb: admission.Create, sub: "eviction", is: evictedWithin(1)}, ""},
		{"evicts at once", agentOn("n1"), request{verb: admission.Create, sub: "eviction", is: evictedWithin(0)}, atOnce},
		{"evicts whichever has the name", agentOn("n1"), request{verb: admission.Create, sub: "eviction", is: evicted("")}, anyUID},
		{"evicts, by a token of no node", agentOn(""), request{verb: admission.Create, sub: "eviction", is: evicted("u1")}, noNode},
		{"is somebody else, and fails one", &user.DefaultInfo{Name: "system:node:n1"}, marks(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), ""},
		{"is somebody else, and deletes one", &user.DefaultInfo{Name: "admin"}, request{verb: admission.Delete, old: web}, ""},
	})
}

func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1", Labels: map[string]string{"zone": "a"}},
		Spec:       corev1.NodeSpec{ProviderID: "cloud://1", Taints: []corev1.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.36.3"},
		},
	}
	for _, c := range change {
		c(n)
	}
	return n
}

func TestNodePolicy(t *testing.T) {
	p := startPolicies(t)
	const (
		noNode     = "this token does not say on which node its agent runs"
		others     = "an agent touches no other node than its own"
		tooMuch    = "an agent changes no more of a node than conditions and taints"
		conditions = "an agent changes no conditions but weir.dev/... and those of KEP-5394"
		taints     = "an agent changes no taints but weir.dev/... and those of KEP-5394, which keep new pods away and evict none"
	)
	n1 := node("n1")
	status := func(change func(*corev1.Node)) request {
		return request{verb: admission.Update, sub: "status", old: n1, is: node("n1", change)}
	}
	spec := func(change func(*corev1.Node)) request {
		return request{verb: admission.Update, old: n1, is: node("n1", change)}
	}
	condition := func(of string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.ResourceVersion = "2"
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(of), Status: corev1.ConditionTrue})
		}
	}
	taint := func(key string, effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Spec.Taints = append([]corev1.Taint{{Key: key, Effect: effect}}, n.Spec.Taints...)
		}
	}
	p.expect(t, []policyTest{
		{"adds a condition of its own", agentOn("n1"), status(condition("weir.dev/MemoryPressure")), ""},
		{"takes it again", agentOn("n1"), request{verb: admission.Update, sub: "status", old: node("n1", condition("weir.dev/MemoryPressure")), is: n1}, ""},
		{"adds one of KEP-5394", agentOn("n1"), status(condition("SystemMemoryContentionPressure")), ""},
		{"adds one of KEP-5394 to another", agentOn("n2"), status(condition("SystemMemoryContentionPressure")), others},
		{"adds the kubelet's", agentOn("n1"), status(condition("MemoryPressure")), conditions},
		{"makes it unready", agentOn("n1"), status(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }), conditions},
		{"takes its readiness", agentOn("n1"), status(func(n *corev1.Node) { n.Status.Conditions = nil }), conditions},
		{"changes its version", agentOn("n1"), status(func(n *corev1.Node) { n.Status.NodeInfo.KubeletVersion = "v9" }), tooMuch},
		{"changes its address", agentOn("n1"), status(func(n *corev1.Node) { n.Status.Addresses = []corev1.NodeAddress{{Address: "192.0.2.1"}} }), tooMuch},
		{"adds a condition to another", agentOn("n2"), status(condition("weir.dev/MemoryPressure")), others},
		{"adds one, by a token of no node", agentOn(""), status(condition("weir.dev/MemoryPressure")), noNode},
		{"adds a taint of its own", agentOn("n1"), spec(taint("weir.dev/memory-pressure", corev1.TaintEffectNoSchedule)), ""},
		{"takes it again", agentOn("n1"), request{verb: admission.Update, old: node("n1", taint("weir.dev/memory-pressure", corev1.TaintEffectNoSchedule)), is: n1}, ""},
		{"evicts all by a taint", agentOn("n1"), spec(taint("weir.dev/memory-pressure", corev1.TaintEffectNoExecute)), taints},
		{"adds a taint of KEP-5394", agentOn("n1"), spec(taint("node.kubernetes.io/disk-contention-pressure", corev1.TaintEffectNoSchedule)), ""},
		{"evicts all by a taint of KEP-5394", agentOn("n1"), spec(taint("node.kubernetes.io/disk-contention-pressure", corev1.TaintEffectNoExecute)), taints},
		{"adds the kubelet's taint", agentOn("n1"), spec(taint("node.kubernetes.io/memory-pressure", corev1.TaintEffectNoSchedule)), taints},
		{"takes another's taint", agentOn("n1"), spec(func(n *corev1.Node) { n.Spec.Taints = nil }), taints},
		{"cordons it", agentOn("n1"), spec(func(n *corev1.Node) { n.Spec.Unschedulable = true }), tooMuch},
		{"labels it", agentOn("n1"), spec(func(n *corev1.Node) { n.Labels["zone"] = "b" }), tooMuch},
		{"taints another", agentOn("n2"), spec(taint("weir.dev/memory-pressure", corev1.TaintEffectNoSchedule)), others},
		{"goes through its kubelet", agentOn("n1"), request{verb: admission.Connect, sub: "proxy", is: &corev1.NodeProxyOptions{Path: "/run"}}, others},
		{"makes another", agentOn("n1"), request{verb: admission.Create, is: node("n9")}, others},
		{"removes it", agentOn("n1"), request{verb: admission.Delete, old: n1}, others},
		{"is the kubelet", &user.DefaultInfo{Name: "system:node:n1"}, status(condition("MemoryPressure")), ""},
	})
}

// evictionRequest returns a request to evict the pod web with this UID.
func evictionRequest(name string, uid types.UID, requester string) *lifecycle.EvictionRequest {
	return &lifecycle.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: lifecycle.EvictionRequestSpec{
			Target:    lifecycle.EvictionRequestTarget{Pod: &lifecycle.EvictionRequestPodReference{Name: "web", UID: uid}},
			Requester: requester, Intent: lifecycle.EvictionRequestIntentEviction,
		},
	}
}

func TestRequestPolicy(t *testing.T) {
	p := startPolicies(t)
	const (
		noNode = "this token does not say on which node its agent runs"
		notOwn = "an agent creates and deletes EvictionRequests of weir.dev/agent that are named by the pod's UID, and nothing else of this group"
	)
	own, drain := evictionRequest("weir-u1", "u1", "weir.dev/agent"), evictionRequest("drain", "u1", "acme.io/drain")
	p.expect(t, []policyTest{
		{"requests an eviction", agentOn("n1"), request{verb: admission.Create, is: own}, ""},
		{"withdraws it", agentOn("n1"), request{verb: admission.Delete, old: own}, ""},
		{"requests by a token of no node", agentOn(""), request{verb: admission.Create, is: own}, noNode},
		{"requests for another", agentOn("n1"), request{verb: admission.Create, is: evictionRequest("weir-u1", "u1", "acme.io/drain")}, notOwn},
		{"requests by another name", agentOn("n1"), request{verb: admission.Create, is: evictionRequest("weir-u1", "u2", "weir.dev/agent")}, notOwn},
		{"withdraws another's", agentOn("n1"), request{verb: admission.Delete, old: drain}, notOwn},
		{"changes one", agentOn("n1"), request{verb: admission.Update, old: own, is: own}, notOwn},
		{"writes its status", agentOn("n1"), request{verb: admission.Update, sub: "status", old: own, is: own}, notOwn},
		{"creates an Eviction", agentOn("n1"), request{verb: admission.Create, is: &lifecycle.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x"}}}, notOwn},
		{"is another client", &user.DefaultInfo{Name: "drain"}, request{verb: admission.Create, is: drain}, ""},
	})
}

// lease returns the Lease of a node that evicted.
func lease(node string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-agents", Name: execute.LeasePrefix + node}}
}

// certificate returns the Lease with the certificate of a node's agent.
func certificate(node string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-agents", Name: agents.CertificateLeasePrefix + node}}
}

func TestLeasePolicy(t *testing.T) {
	p := startPolicies(t)
	const (
		noNode = "this token does not say on which node its agent runs"
		others = "an agent writes no Lease but those of its own node"
	)
	other := lease("n1")
	other.Name = "weir"
	p.expect(t, []policyTest{
		{"creates its own", agentOn("n1"), request{verb: admission.Create, is: lease("n1")}, ""},
		{"creates that of its certificate", agentOn("n1"), request{verb: admission.Create, is: certificate("n1")}, ""},
		{"changes that of another's certificate", agentOn("n1"), request{verb: admission.Update, old: certificate("n2"), is: certificate("n2")}, others},
		{"changes its own", agentOn("n1"), request{verb: admission.Update, old: lease("n1"), is: lease("n1")}, ""},
		{"deletes its own", agentOn("n1"), request{verb: admission.Delete, old: lease("n1")}, ""},
		{"creates another node's", agentOn("n1"), request{verb: admission.Create, is: lease("n10")}, others},
		{"changes another node's", agentOn("n1"), request{verb: admission.Update, old: lease("n2"), is: lease("n2")}, others},
		{"deletes another node's", agentOn("n1"), request{verb: admission.Delete, old: lease("n2")}, others},
		{"changes one of other use", agentOn("n1"), request{verb: admission.Update, old: other, is: other}, others},
		{"creates one by a token of no node", agentOn(""), request{verb: admission.Create, is: lease("")}, noNode},
		{"is weir's server", &user.DefaultInfo{Name: "system:serviceaccount:weir-system:weir"}, request{verb: admission.Update, old: other, is: other}, ""},
	})
}

// event returns an Event of the agent of a node, as client-go's recorder writes it.
func event(node string, change func(*corev1.Event)) *corev1.Event {
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: "web.1"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "shop", Name: "web", UID: "u1"},
		Reason:         eviction.Reason, Type: corev1.EventTypeWarning, Message: "the node was low on memory",
		Source: corev1.EventSource{Component: "weir-agent", Host: node}, ReportingController: "weir-agent", ReportingInstance: node,
	}
	if change != nil {
		change(e)
	}
	return e
}

func TestEventPolicy(t *testing.T) {
	p := startPolicies(t)
	const (
		noNode   = "this token does not say on which node its agent runs"
		notOwn   = "an agent changes no Events but its own, and not what they are about"
		from     = "an agent's Events say that they are from weir-agent and its node"
		notAbout = "an agent's Events are about evictions and kills of pods, and the contention of its own node"
	)
	creates := func(change func(*corev1.Event)) request {
		return request{verb: admission.Create, is: event("n1", change)}
	}
	patches := func(old *corev1.Event, change func(*corev1.Event)) request {
		return request{verb: admission.Update, old: old, is: event("n1", change)}
	}
	about := func(kind, name, reason string) func(*corev1.Event) {
		return func(e *corev1.Event) {
			e.InvolvedObject, e.Reason = corev1.ObjectReference{Kind: kind, Name: name}, reason
		}
	}
	again := func(e *corev1.Event) { e.Count = 2 }
	kubelets := event("n1", func(e *corev1.Event) { e.Source.Component, e.ReportingController = "kubelet", "kubelet" })
	tests := []policyTest{
		{"repeats its own", agentOn("n1"), patches(event("n1", nil), again), ""},
		{"writes about its node", agentOn("n1"), creates(about("Node", "n1", nodeconditions.ReasonContention)), ""},
		{"writes about another node", agentOn("n1"), creates(about("Node", "n2", nodeconditions.ReasonContention)), notAbout},
		{"writes about a Secret", agentOn("n1"), creates(about("Secret", "web", eviction.Reason)), notAbout},
		{"writes another reason", agentOn("n1"), creates(about("Pod", "web", "FailedScheduling")), notAbout},
		{"writes as the kubelet", agentOn("n1"), creates(func(e *corev1.Event) { e.Source.Component = "kubelet" }), from},
		{"reports as the kubelet", agentOn("n1"), creates(func(e *corev1.Event) { e.ReportingController = "kubelet" }), from},
		{"writes as another agent", agentOn("n2"), creates(nil), from},
		{"writes without a source", agentOn("n1"), creates(func(e *corev1.Event) { e.Source = corev1.EventSource{} }), from},
		{"changes another agent's", agentOn("n1"), patches(event("n2", nil), again), notOwn},
		{"changes the kubelet's", agentOn("n1"), patches(kubelets, again), notOwn},
		{"changes what it is about", agentOn("n1"), patches(event("n1", nil), about("Pod", "other", eviction.Reason)), notOwn},
		{"deletes its own", agentOn("n1"), request{verb: admission.Delete, old: event("n1", nil)}, notOwn},
		{"writes by a token of no node", agentOn(""), request{verb: admission.Create, is: event("", nil)}, noNode},
		{"is the kubelet", &user.DefaultInfo{Name: "system:node:n1"}, request{verb: admission.Create, is: kubelets}, ""},
	}
	for _, reason := range []string{
		eviction.Reason, execute.ReasonObserved, execute.ReasonBlocked, execute.ReasonRefused, execute.ReasonFailed, execute.ReasonStopped, oomkills.EventReason,
	} {
		tests = append(tests, policyTest{"writes " + reason, agentOn("n1"), creates(func(e *corev1.Event) { e.Reason = reason }), ""})
	}
	p.expect(t, append(tests, policyTest{"writes that it falls", agentOn("n1"), creates(about("Node", "n1", nodeconditions.ReasonFalling)), ""}))
}
