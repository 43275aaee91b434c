package explain

import (
	"cmp"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// nextStep describes what will happen by itself, seen from now, without a full stop: "a second usable
// reading is due in 9s". It is empty if nothing is known.
func nextStep(r metric.Reason, ev metric.Evidence, now time.Time) string {
	switch r {
	case metric.PodPending, metric.ContainerNotStarted:
		return "it is measured once it runs"
	case metric.PodTerminating:
		return "it ends when the pod is gone"
	case metric.Ambiguous:
		return "a later reading may distinguish them; metrics.k8s.io cannot mark a doubtful number and leaves it out"
	}
	event := awaited(known(r))
	if r == metric.FirstSample && ev.Other.Time != 0 {
		event = lateEnough // there are several already
	}
	return dueText(event, ev, now)
}

// dueText holds when an event is due. It is empty if nothing is, or if that is unknown.
func dueText(event string, ev metric.Evidence, now time.Time) string {
	if event == "" || ev.Due == 0 {
		return ""
	}
	if left := time.Unix(0, ev.Due).Sub(now); left >= time.Second/2 {
		return event + " is due in " + humanize.Duration(left.Round(time.Second))
	}
	return event + " is under way"
}

const lateEnough = "a reading that is late enough"

// awaited returns the event that can end a reason. It is empty if nothing that weir does can end
// it.
func awaited(r metric.Reason) string {
	switch r {
	case metric.NodeNotScrapedYet:
		return "the first reading"
	case metric.WarmingUp:
		return "a second reading"
	case metric.FirstSample:
		return "a second usable reading"
	case metric.NodeNotReady:
		return "the next attempt"
	case metric.TooYoung:
		return lateEnough
	case metric.CounterReset:
		return "a second reading since it fell"
	case metric.ClockStep:
		return "the next reading"
	case metric.Impossible:
		return "a second reading since the leap"
	case metric.Unsupported, metric.NotApplicable:
		return ""
	}
	switch r.Layer() {
	case metric.LayerScrape:
		return "the next attempt"
	case metric.LayerReport, metric.LayerIdentity, metric.LayerRate, metric.LayerPod:
		return "the next reading"
	}
	return ""
}

// Advice returns in a sentence or two what a person can do about a reason. Commands in it have
// placeholders: NODE, NAMESPACE, POD and CONTAINER. It is empty if there is nothing to do.
func Advice(r metric.Reason) string {
	return first([]template{advices[known(r)]}, arguments{
		"node": "NODE", "namespace": "NAMESPACE", "pod": "POD", "container": "CONTAINER",
		"unread endpoints": "summary, cadvisor", "naming endpoint": "endpoint=cadvisor",
	})
}

// adviceArguments returns the names that make the commands in advice ones to paste, and the
// endpoints that the node's sources do not read. A name that a shell could misread stays a
// placeholder: without an API server, names come from nodes.
func (w *messageWriter) adviceArguments(r *Outcome) arguments {
	a := arguments{"node": "NODE", "namespace": "NAMESPACE", "pod": "POD"}
	for name, value := range map[string]string{
		"node":      cmp.Or(string(r.Node), string(w.node)),
		"namespace": string(w.ref.Namespace),
		"pod":       string(w.ref.Name),
		"container": cmp.Or(r.Container, w.container),
	} {
		if humanize.IsShellWord(value) {
			a[name] = value
		}
	}
	var unread []string
	for _, endpoint := range [...]string{"summary", "cadvisor"} {
		if !w.read.hasEndpoint(endpoint) {
			unread = append(unread, endpoint)
		}
	}
	a["unread endpoints"] = strings.Join(unread, ", ")
	if !w.read.hasEndpoint("cadvisor") && !w.read.hasEndpoint("host") {
		a["naming endpoint"] = "endpoint=cadvisor"
	}
	a["several nodes"] = humanize.List(w.nodes, len(w.nodes))
	return a
}

// reasonAdvice describes what to do about the reason of r.
func (w *messageWriter) reasonAdvice(r *Outcome) string {
	templates := []template{advices[known(r.Reason)]}
	switch {
	case r.Reason == metric.NodeCertificate:
		templates = []template{template(cmp.Or(string(certificateAdvice(w.read.err)), string(templates[0])))}
	case r.Reason == metric.NodeNoAddress && w.facts != nil && len(w.facts.Addresses) == 0:
		templates = []template{withoutAddresses}
	case r.Reason == metric.Unsupported && w.kind == metric.System:
		templates = []template{"Nothing is broken. `cat /proc/PID/cgroup` on the node shows the cgroup that counts the CPU time of a process."}
	case r.Reason == metric.Ambiguous && r.evidence.Rule == placeRule:
		templates = severalNodes
	case r.Reason == metric.OverLimit && r.Said != "":
		templates = []template{tooManyNodesAdvice}
	case r.Reason == metric.OldContainer && !r.Served && isOnlyRun(w.pod.Container(cmp.Or(r.Container, w.container))):
		templates = []template{onlyRun}
	}
	return first(templates, w.adviceArguments(r))
}

// isOnlyRun reports whether the API server names no run of c besides the present one.
func isOnlyRun(c *cluster.Container) bool {
	return c != nil && c.Restarts == 0 && c.LastID() == "" && c.LastStartedAt().IsZero()
}

// advices are rendered with adviceArguments.
var advices = [metric.NumReasons]template{
	metric.PodPending:          "`kubectl describe pod -n {namespace} {pod}` shows what it is waiting for: a node with room, a volume or an image.",
	metric.PodTerminating:      "If it stays for longer than its grace period, look for finalizers in `kubectl get pod -n {namespace} {pod} -o yaml`, and at its node.",
	metric.ContainerNotStarted: "`kubectl describe pod -n {namespace} {pod}` shows why it is waiting; after a crash, `kubectl logs -n {namespace} {pod}[ -c {container}] --previous` shows how its last run ended.",

	metric.NodeUnknown:   "`kubectl get pods -A --field-selector spec.nodeName={node}` lists the pods that are still bound to it. If the machine is gone for good, delete them (with --force); else start its kubelet, which registers the node.",
	metric.NodeExcluded:  "To measure it, give the node the labels that --node-selector asks for, or change the selector.",
	metric.NodeNoAddress: "Compare `kubectl get node {node} -o wide` with --kubelet-preferred-address-types (option address-types of a source), and add a type that the node has.",
	metric.NodeNotReady:  "`kubectl describe node {node}` shows since when and why; on the machine, `systemctl status kubelet` and `journalctl -u kubelet`.",

	metric.NodeUnreachable:   "Check that the kubelet is running, that its address and port are correct, and that no firewall or NetworkPolicy blocks weir.",
	metric.NodeCertificate:   "Let the kubelet have a certificate that the cluster's CA signs (serverTLSBootstrap: true, then approve the requests), or name its CA by --kubelet-certificate-authority. In tests only: --kubelet-insecure-tls.",
	metric.NodeUnauthorized:  "Apply weir's roles: the account that reads kubelets (--kubelet-account, or weir's own) needs `get` on nodes/metrics and nodes/stats. The kubelet must ask the API server for rights (authentication.webhook, authorization.mode: Webhook).",
	metric.NodeTimeout:       "Check whether the node is overloaded (`kubectl describe node {node}`, on the machine `crictl stats`). If it is merely slow, raise --kubelet-request-timeout.",
	metric.NodeBadPayload:    "Check what answers at the kubelet's port, `kubectl get --raw /api/v1/nodes/{node}/proxy/metrics/resource`: a proxy in between, another program, or a kubelet that lacks the endpoint (option endpoint of the source).",
	metric.NodeWrongIdentity: "The address has passed to another machine, or two nodes have the same address: compare `kubectl get nodes -o wide` with the machines.",
	metric.NodeScrapeError:   "The fault is between the kubelet and the container runtime: on the machine, `journalctl -u kubelet`, and check whether `crictl stats` answers.",

	metric.NotReported: "If it stays, check on the machine whether `crictl stats` shows the container: the kubelet reports what the runtime returns.",
	metric.NoData:      "If it stays, check on the machine whether `crictl stats` has numbers for the container; restarting the container runtime or the kubelet restores them.",
	metric.Unsupported: "[Read another endpoint as well (option endpoint of the source kubelet: {unread endpoints}), if the number is needed. ]docs/metrics.md lists which source provides which metric.",
	metric.OverLimit:   "Raise the limit (option entities of the sink memory; the limits of the source), or measure less.",

	metric.OtherNode:     "If the other node still runs such a pod, it has lost touch with the API server: look at its kubelet, and delete what was left there.",
	metric.OldPod:        leftovers,
	metric.OldContainer:  leftovers,
	metric.DeadCgroup:    "The node has leftovers: on node {node}, `weir inspect cgroups` lists them, and --clean removes them.",
	metric.OlderStart:    leftovers,
	metric.Discontinuous: leftovers,
	metric.Ambiguous:     "Find out which is the living one: on node {node}, `weir inspect cgroups` lists both.[ A source that names containers ({naming endpoint}) lets weir distinguish them.]",

	metric.CounterReset: "If it returns, check whether the runtime restarts containers without reporting it (`crictl ps -a`).",
	metric.ClockStep:    "Check that the node synchronizes its clock by NTP (`timedatectl`, `chronyc tracking`): each jump costs a reading.",
	metric.Stale:        "The node answers with an old reading: on the machine, `journalctl -u kubelet`, and check whether `crictl stats` answers.",
	metric.Impossible:   "If it returns, compare the capacity in `kubectl describe node {node}` with the CPUs it has.",

	metric.Incomplete: "Ask for the container that is at fault: `weir explain container {namespace}/{pod}[/{container}]`.",
}

// tooManyNodesAdvice is the advice about nodes that are left out.
const tooManyNodesAdvice = "`kubectl get nodes --sort-by=.metadata.creationTimestamp` shows whether they are real. If something creates Nodes that no machine has, stop it and delete them; else raise --max-nodes."

// withoutAddresses is the advice about a node that has no address of any type.
const withoutAddresses = "The node has no address at all. Its kubelet or, with --cloud-provider=external, the cloud controller manager has to report one: `kubectl describe node {node}` shows whether it is still tainted as uninitialized; on the machine, `journalctl -u kubelet`."

const leftovers = "If it stays for minutes, the node has leftovers: on node {node}, `weir inspect cgroups` lists them, and --clean removes empty ones."

// onlyRun is the advice about a rejected run if the API server names no other one: it may be the
// living one, so nothing may be removed.
const onlyRun = "The API server names no earlier run of the container, so this may be the present one. Compare `crictl ps -a` on node {node} with `kubectl get pod -n {namespace} {pod} -o yaml`, and check that the node synchronizes its clock (`timedatectl`)."

// severalNodes is the advice if several nodes report one pod and nothing shows which is right.
var severalNodes = []template{
	"Find out which is the living one: `weir inspect cgroups` on each of {several nodes} lists the one there.",
	"Find out which is the living one: `weir inspect cgroups` on each node that reports it lists the one there.",
}

// certificateAdvice describes what to do about the certificate that err is about. It is empty if Advice
// fits. The text is compared, because the errors of recordings and replicas have only that.
func certificateAdvice(err error) template {
	if err == nil {
		return ""
	}
	switch text := err.Error(); {
	case strings.Contains(text, "not yet valid") && strings.Contains(text, " is before "):
		return "The certificate is not valid yet: compare the clocks of the node and of weir's machine (`timedatectl`)."
	case strings.Contains(text, "has expired"):
		return "The certificate has expired. With serverTLSBootstrap: true the kubelet has asked for another: `kubectl get csr` lists the requests that wait for approval. Otherwise replace its file (tlsCertFile), and on the machine, `systemctl restart kubelet`."
	case strings.Contains(text, "certificate is valid for "), strings.Contains(text, "doesn't contain any"), strings.Contains(text, "not valid for any names"):
		return "The certificate does not have the address at which weir reads the node: add it, or read an address that it has (--kubelet-preferred-address-types; `kubectl get node {node} -o wide` lists them)."
	}
	return ""
}
