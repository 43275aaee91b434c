package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/weir-metrics/weir/cluster/access"
	"github.com/weir-metrics/weir/cluster/gates"
	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/eviction/execute/cri"
	"github.com/weir-metrics/weir/eviction/guard"
	"github.com/weir-metrics/weir/eviction/kubeletconfig"
	"github.com/weir-metrics/weir/eviction/nodeconditions"
	"github.com/weir-metrics/weir/eviction/notify"
	"github.com/weir-metrics/weir/eviction/reportbuilder"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/internal/usererror"
	"github.com/weir-metrics/weir/metric"
)

// maxRoundInterval is the longest time between two rounds: the kubelet's interval.
const maxRoundInterval = 10 * time.Second

// evictor has the guard of this machine, and the parts that the guard needs.
type evictor struct {
	plan      *Plan
	node      metric.NodeName
	machine   *Machine
	cluster   *feature.Cluster // nil without one
	guard     *guard.Guard
	settings  *eviction.Settings
	reclaimer *cri.Reclaimer            // nil unless the runtime is asked to collect
	events    record.EventBroadcaster   // nil unless Events are written
	publisher *nodeconditions.Publisher // nil unless the node's pressure is published
	warnings  []string
	log       *zap.Logger
}

// openEvictor opens the evictor of the machine m, which is the given node.
func openEvictor(ctx context.Context, p *Plan, node metric.NodeName, m *Machine, h *feature.Host) (_ *evictor, err error) {
	e := &evictor{plan: p, node: node, machine: m, cluster: h.Cluster, log: h.Log}
	defer func() {
		if err != nil {
			_ = e.Close()
		}
	}()
	o := guard.Options{
		Node: string(e.node), Self: types.UID(e.plan.Self), NodeReader: m.NodeReader,
		Notify: notify.Options{MaxInterval: maxRoundInterval}, Registerer: h.Registry, Logger: slog.New(logr.ToSlogHandler(h.Logr.WithName("eviction"))),
	}
	x := execute.Options{
		Mode: e.plan.Mode, Node: string(e.node), Self: o.Self, NoPod: o.Self == "", Namespace: e.plan.Namespace, OnNode: m.has, Registerer: h.Registry,
	}
	kubelet := kubeletconfig.Default()
	if h.Cluster != nil {
		if kubelet, err = e.connect(ctx, &o, &x); err != nil {
			return nil, err
		}
	}
	if e.plan.Reclaim != "" {
		if e.reclaimer, err = cri.New(cri.Options{Socket: e.plan.Reclaim, Ended: e.ended}); err != nil {
			return nil, err
		}
		x.Reclaimer = e.reclaimer
	}
	if e.plan.AtOnce {
		x.KillAtOnce = e.kill
	}
	e.settings = e.plan.settings(kubelet)
	o.Settings = e.settings
	e.warnings = append(e.warnings, kubeletconfig.Check(kubelet, o.Settings.Thresholds, e.plan.Mode, m.capacities(ctx, &kubelet.Settings))...)
	for _, warning := range e.warnings {
		h.Log.Warn(warning)
	}
	if o.Executor, err = execute.New(x); err != nil {
		return nil, fmt.Errorf("carry out evictions: %w", err)
	}
	if e.guard, err = guard.New(o); err != nil {
		return nil, fmt.Errorf("guard this machine: %w", err)
	}
	return e, nil
}

// connect sets the options that need the cluster, and returns the configuration of the node's kubelet.
func (e *evictor) connect(ctx context.Context, o *guard.Options, x *execute.Options) (*kubeletconfig.Kubelet, error) {
	client, kube, err := e.cluster.ClientAs("weir-agent")
	if err != nil {
		return nil, err
	}
	o.Pods, x.Client = e.pods, client
	if err := e.checkRequests(ctx, client); err != nil {
		return nil, err
	}
	var recorder record.EventRecorder
	if e.plan.Events {
		recorder = e.record(client)
		x.Recorder = recorder
	}
	if e.plan.Conditions {
		e.publisher, err = nodeconditions.New(nodeconditions.Options{
			Client: client, Node: string(e.node), Taint: e.plan.Taints, Contention: len(e.plan.Contention) > 0, Recorder: recorder, Logger: o.Logger,
		})
		if err != nil {
			return nil, fmt.Errorf("publish the node's pressure: %w", err)
		}
		o.Publish = e.publisher.Publish
	}
	kubelet, err := e.askKubelet(ctx, kube)
	if err != nil {
		return nil, err
	}
	release, err := kubeletVersion(ctx, client, e.node)
	if err != nil {
		e.warnings = append(e.warnings, fmt.Sprintf("the version of this node's kubelet is not known, so the rules of the newest are assumed: %v", err))
	}
	kubelet.SetRules(gates.New(release, kubelet.FeatureGates, true))
	return kubelet, nil
}

// checkRequests returns an error if the plan needs EvictionRequests and the cluster does not serve them.
func (e *evictor) checkRequests(ctx context.Context, client kubernetes.Interface) error {
	if e.plan.Mode != execute.Request {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askKubeletTimeout)
	defer cancel()
	err := execute.CheckRequests(ctx, client.Discovery())
	if errors.Is(err, execute.ErrNoRequests) {
		return usererror.Hintf(fmt.Errorf("--eviction=request: %w", err),
			"Start kube-apiserver with --feature-gates=EvictionRequestAPI=true --runtime-config=lifecycle.k8s.io/v1alpha1=true (Kubernetes 1.37 or later), or choose --eviction=evict.")
	}
	if err != nil {
		e.warnings = append(e.warnings, fmt.Sprintf("it is not known whether the cluster serves EvictionRequests: %v", err))
	}
	return nil
}

// settings returns the settings of decisions. Without thresholds in mode observe they are the
// kubelet's, to predict what the kubelet will do. The rules are always the kubelet's.
func (p *Plan) settings(kubelet *kubeletconfig.Kubelet) *eviction.Settings {
	if len(p.Thresholds) == 0 && p.Mode == execute.Observe {
		shown := kubelet.Settings
		shown.Contention = p.Contention
		return &shown
	}
	own := p.Settings
	own.Rules = kubelet.Rules
	return &own
}

// askKubeletTimeout limits each request that the agent makes about its kubelet and its cluster when it
// starts.
const askKubeletTimeout = 5 * time.Second

// askKubelet asks this node's kubelet for its eviction thresholds. If the kubelet does not answer,
// it assumes the defaults and adds a warning.
func (e *evictor) askKubelet(ctx context.Context, kube *rest.Config) (*kubeletconfig.Kubelet, error) {
	at := &e.plan.Kubelet
	transport, err := access.NodeTransport(kube, at.CAFile, at.Insecure)
	if err != nil {
		return nil, fmt.Errorf("reach the kubelet: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, askKubeletTimeout)
	defer cancel()
	client := &http.Client{
		Transport: transport,
		// A kubelet does not redirect, and our token must not follow a redirect.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	kubelet, warning := kubeletconfig.FetchOrDefault(ctx, client, at.URL)
	if warning != "" {
		e.warnings = append(e.warnings, warning)
	}
	return kubelet, nil
}

// kubeletVersion returns the version of a node's kubelet. An agent may list nodes, but not get one.
func kubeletVersion(ctx context.Context, client kubernetes.Interface, node metric.NodeName) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askKubeletTimeout)
	defer cancel()
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, string(node)).String()})
	switch {
	case err != nil:
		return "", fmt.Errorf("list node %s: %w", node, err)
	case len(list.Items) != 1:
		return "", fmt.Errorf("the API server knows no node %s", node)
	}
	return list.Items[0].Status.NodeInfo.KubeletVersion, nil
}

// record returns a recorder of Events on pods, and on this node. It drops Events that it cannot write soon, so that
// no eviction waits for them.
func (e *evictor) record(client kubernetes.Interface) record.EventRecorder {
	e.events = record.NewBroadcaster()
	e.events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return e.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "weir-agent", Host: string(e.node)})
}

// pods returns the pods of this node. It returns an error if they are not known, which is different
// from no pods.
func (e *evictor) pods() ([]*corev1.Pod, error) {
	facts := e.cluster.Facts()
	synced := facts != nil && facts.Synced
	switch pods := e.cluster.NodePods(); {
	case !synced && pods != nil:
		return pods, nil // the kubelet's
	case !synced:
		return nil, errors.New("neither the API server nor the kubelet has listed the pods of this node yet")
	case facts.Node(e.node) == nil:
		return nil, fmt.Errorf("the API server knows no node %s: give the name of this node with --node-name", e.node)
	}
	return e.cluster.NodePods(), nil
}

// maxFactsAge is the age up to which the API server's list of pods counts as complete. The API
// server sends something about once a minute even if nothing changes.
const maxFactsAge = 2 * time.Minute

// ended reports whether a pod, by the UID that the runtime has, will run no container any more. The
// runtime has a hash instead of the UID of a static pod, and only the kubelet knows whether that pod
// has ended. While the API server is silent, there may be pods that only the kubelet knows.
func (e *evictor) ended(uid types.UID) bool {
	if e.cluster == nil || len(uid) != len("01234567-89ab-cdef-0123-456789abcdef") {
		return false
	}
	facts := e.cluster.Facts()
	if _, err := e.pods(); err != nil || facts == nil || !facts.Synced || time.Since(facts.At) > maxFactsAge {
		return false
	}
	return e.machine.Pod(metric.PodUID(uid)) == nil
}

// kill ends the processes of a pod: by signals, or else through the container runtime.
func (e *evictor) kill(ctx context.Context, uid types.UID) (killed bool, err error) {
	killed, err = e.machine.kill(uid)
	if err != nil && e.reclaimer != nil {
		var stopped bool
		stopped, err = e.reclaimer.StopPod(ctx, uid)
		killed = killed || stopped
	}
	return killed, err
}

// report returns the report on evictions of the node.
func (e *evictor) report() *evictionreport.EvictionReport {
	return reportbuilder.New(e.guard.Last(), e.guard.RecentActions(), reportbuilder.Options{
		Node: string(e.node), Mode: string(e.plan.Mode), Warnings: e.warnings, Now: time.Now(),
		Reclaims: e.reclaimer != nil, MaxInterval: maxRoundInterval, PollInterval: guard.PollInterval,
	})
}

// run runs the guard until ctx ends.
func (e *evictor) run(ctx context.Context) error {
	defer e.withdraw()
	if e.reclaimer == nil {
		return e.guard.Run(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	watched := make(chan error, 1)
	go func() { watched <- e.reclaimer.Run(ctx) }()
	err := e.guard.Run(ctx)
	cancel()
	return errors.Join(err, <-watched)
}

// withdraw removes the published conditions and taints from the node, because no other component
// does. The next agent publishes them again.
func (e *evictor) withdraw() {
	if e.publisher == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), feature.Grace/2)
	defer cancel()
	if err := e.publisher.Withdraw(ctx); err != nil {
		e.log.Warn("weir's conditions remain on the node", zap.Error(err))
	}
}

// Close ends what was started before run.
func (e *evictor) Close() error {
	if e.events != nil {
		e.events.Shutdown()
	}
	if e.reclaimer != nil {
		return e.reclaimer.Close()
	}
	return nil
}
