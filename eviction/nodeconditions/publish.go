package nodeconditions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"

	"github.com/weir-metrics/weir/eviction"
)

// Prefix is the prefix of the conditions' types and of the taints' keys.
const Prefix = "weir.dev/"

// The reasons of conditions.
const (
	ReasonMet    = "EvictionThresholdMet"    // a threshold is met, or was in the transition period
	ReasonNotMet = "EvictionThresholdNotMet" // no threshold is met
	// ReasonNotMeasured is that of a condition that is Unknown: a threshold of it has no figure.
	ReasonNotMeasured = "NotMeasured"
	// The reasons of the conditions of KEP-5394, and of Events about them.
	ReasonContention   = "ContentionThresholdReached"
	ReasonNoContention = "ContentionThresholdNotReached"
	ReasonFalling      = "ContentionFalling" // only of Events
)

// Options configures a Publisher. A duration of zero means the default.
type Options struct {
	Client kubernetes.Interface
	Node   string // the name of the Node
	// Taint adds a taint with the effect NoSchedule for each condition that is true.
	Taint bool
	// Contention is set if decisions have conditions of KEP-5394, which have Kubernetes' names. Without
	// it, a Publisher does not touch these conditions and their taints: a kubelet may write them.
	Contention bool
	// Recorder gets Events on the Node when the stalls of KEP-5394 reach their threshold, or fall. It
	// may be nil.
	Recorder record.EventRecorder
	// Heartbeat is the time after which unchanged conditions are written again. Default 5 minutes, as
	// in the kubelet.
	Heartbeat time.Duration
	Timeout   time.Duration // the limit on all requests for one decision; default 10 s
	Logger    *slog.Logger  // default: none
}

// Publisher publishes the pressure of a node. Only one of its methods may be called at a time.
type Publisher struct {
	opts      Options
	wanted    map[corev1.NodeConditionType]corev1.NodeCondition // the conditions that were last written
	writtenAt time.Time                                         // the time of that write
	lastError string                                            // the last error, empty if there is none
	trends    map[corev1.NodeConditionType]string               // the last Trend of each condition of KEP-5394
}

// New returns a Publisher. It fails if a required option is missing.
func New(o Options) (*Publisher, error) {
	switch {
	case o.Client == nil:
		return nil, errors.New("publish conditions: a client is needed")
	case o.Node == "":
		return nil, errors.New("publish conditions: the node's name is needed: set it by the downward API (spec.nodeName)")
	}
	o.Heartbeat = cmp.Or(o.Heartbeat, 5*time.Minute)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Publisher{opts: o, trends: map[corev1.NodeConditionType]string{}}, nil
}

// Publish writes the decision's conditions to the Node if they have changed or the heartbeat is
// due. It logs an error, and the next decision repeats the write.
func (p *Publisher) Publish(ctx context.Context, d *eviction.Decision) {
	if d.Err != nil || d.Outcome == eviction.OutcomeNoThresholds {
		return
	}
	p.recordContention(d)
	wanted := wantedConditions(d)
	if p.lastError == "" && time.Since(p.writtenAt) < p.opts.Heartbeat && maps.Equal(wanted, p.wanted) {
		return
	}
	err := p.write(ctx, wanted)
	if err == nil {
		p.wanted, p.writtenAt, p.lastError = wanted, time.Now(), ""
		return
	}
	if err.Error() != p.lastError {
		p.opts.Logger.Warn("the node's pressure is not published", "node", p.opts.Node, "error", err)
	}
	p.lastError = err.Error()
}

// Withdraw removes weir's conditions and taints from the Node. Call it if the agent will not start
// again, because no other component removes them.
func (p *Publisher) Withdraw(ctx context.Context) error {
	p.wanted, p.writtenAt = nil, time.Time{}
	return p.write(ctx, nil)
}

// recordContention records an Event when the stalls of the last minute have reached a threshold, and
// when those of the last 10 s then fall below it.
func (p *Publisher) recordContention(d *eviction.Decision) {
	for i := range d.Contention {
		c := &d.Contention[i]
		trend := c.Trend()
		if p.opts.Recorder == nil || c.Unknown || trend == p.trends[c.Condition] {
			continue
		}
		p.trends[c.Condition] = trend
		// The kubelet names its Node in Events by the name as UID.
		node := &corev1.ObjectReference{Kind: "Node", Name: p.opts.Node, UID: types.UID(p.opts.Node)}
		text := fmt.Sprintf("%s: tasks stalled for %v%% of the last minute and %v%% of the last 10s; the threshold is %v%%", c.Condition, c.Avg60, c.Avg10, c.Percent)
		switch trend {
		case "high":
			p.opts.Recorder.Event(node, corev1.EventTypeWarning, ReasonContention, text)
		case "falling":
			p.opts.Recorder.Event(node, corev1.EventTypeNormal, ReasonFalling, text)
		}
	}
}

// wantedConditions returns the conditions for which the decision has thresholds, without times. A condition
// that is not reported is Unknown if one of its thresholds has no figure.
func wantedConditions(d *eviction.Decision) map[corev1.NodeConditionType]corev1.NodeCondition {
	thresholdsOf, unknown := map[corev1.NodeConditionType][]string{}, map[corev1.NodeConditionType]bool{}
	for i := range d.Thresholds {
		t := &d.Thresholds[i]
		if kind := t.Threshold.Signal.Condition(); !t.Derived {
			thresholdsOf[kind] = append(thresholdsOf[kind], t.Threshold.String())
			unknown[kind] = unknown[kind] || t.Observation == nil
		}
	}
	reported := d.Pressures()
	list := map[corev1.NodeConditionType]corev1.NodeCondition{}
	add := func(kind corev1.NodeConditionType, met, unknown bool, reasonMet, reasonNotMet, message string) {
		c := corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reasonNotMet, Message: message}
		switch {
		case met:
			c.Status, c.Reason = corev1.ConditionTrue, reasonMet
		case unknown:
			c.Status, c.Reason = corev1.ConditionUnknown, ReasonNotMeasured
		}
		list[kind] = c
	}
	for kind, thresholds := range thresholdsOf {
		// The message does not name the threshold that is met, because that may change with every read.
		add(Prefix+kind, slices.Contains(reported, kind), unknown[kind], ReasonMet, ReasonNotMet, "by weir's thresholds: "+strings.Join(thresholds, ", "))
	}
	for i := range d.Contention {
		c := &d.Contention[i]
		add(c.Condition, c.Reported, c.Unknown, ReasonContention, ReasonNoContention,
			fmt.Sprintf("by weir's threshold of %v%% of the time in which tasks stall, for the last minute and the last 10 seconds", c.Percent))
	}
	return list
}

// wantedTaints returns the taints of the conditions that are true, sorted by condition.
func (p *Publisher) wantedTaints(wanted map[corev1.NodeConditionType]corev1.NodeCondition) (list []corev1.Taint) {
	for _, kind := range slices.Sorted(maps.Keys(wanted)) {
		if p.opts.Taint && wanted[kind].Status == corev1.ConditionTrue {
			list = append(list, corev1.Taint{Key: taintKey(kind), Effect: corev1.TaintEffectNoSchedule})
		}
	}
	return list
}

// taintKey returns weir.dev/memory-pressure for weir.dev/MemoryPressure, and the key of KEP-5394 for
// its conditions.
func taintKey(kind corev1.NodeConditionType) string {
	if key := eviction.ContentionTaint(kind); key != "" {
		return key
	}
	name := strings.TrimPrefix(string(kind), Prefix)
	return Prefix + strings.ToLower(strings.TrimSuffix(name, "Pressure")) + "-pressure"
}

// contentionConditions are the conditions of KEP-5394.
var contentionConditions = []corev1.NodeConditionType{eviction.NodeSystemMemoryContention, eviction.NodeSystemDiskContention}

// owns reports whether the Publisher writes conditions of this type.
func (p *Publisher) owns(kind corev1.NodeConditionType) bool {
	return strings.HasPrefix(string(kind), Prefix) && strings.HasSuffix(string(kind), "Pressure") ||
		p.opts.Contention && slices.Contains(contentionConditions, kind)
}

// ownsTaint reports whether the Publisher adds the taint.
func (p *Publisher) ownsTaint(t *corev1.Taint) bool {
	return strings.HasPrefix(t.Key, Prefix) && strings.HasSuffix(t.Key, "-pressure") ||
		p.opts.Contention && slices.ContainsFunc(contentionConditions, func(c corev1.NodeConditionType) bool { return t.Key == taintKey(c) })
}

// maxAttempts is how often the Node is read if other clients change it in between.
const maxAttempts = 3

// write sets weir's conditions and taints of the Node to the wanted ones. It does not change
// others.
func (p *Publisher) write(ctx context.Context, wanted map[corev1.NodeConditionType]corev1.NodeCondition) error {
	ctx, cancel := context.WithTimeout(ctx, p.opts.Timeout)
	defer cancel()
	return retry.RetryOnConflict(wait.Backoff{Steps: maxAttempts}, func() error {
		node, err := p.opts.Client.CoreV1().Nodes().Get(ctx, p.opts.Node, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read node %s: %w", p.opts.Node, err)
		}
		if err := p.writeStatus(ctx, node, wanted); err != nil {
			return fmt.Errorf("patch the conditions of node %s: %w", p.opts.Node, err)
		}
		if err := p.writeTaints(ctx, node, p.wantedTaints(wanted)); err != nil {
			return fmt.Errorf("patch the taints of node %s: %w", p.opts.Node, err)
		}
		return nil
	})
}

// writeStatus patches conditions. Conditions merge by type, so the patch has only weir's. It stores
// the new version of the Node in node.
func (p *Publisher) writeStatus(ctx context.Context, node *corev1.Node, wanted map[corev1.NodeConditionType]corev1.NodeCondition) error {
	now := metav1.Now()
	var patches []any
	for _, c := range node.Status.Conditions {
		if _, ok := wanted[c.Type]; !ok && p.owns(c.Type) {
			patches = append(patches, map[string]any{"$patch": "delete", "type": c.Type})
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(wanted)) {
		c := wanted[kind]
		c.LastHeartbeatTime, c.LastTransitionTime = now, now
		for i := range node.Status.Conditions {
			if old := &node.Status.Conditions[i]; old.Type == kind && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
		patches = append(patches, c)
	}
	if len(patches) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": patches}})
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	after, err := p.opts.Client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	*node = *after
	return nil
}

// writeTaints replaces the list of taints. The list does not merge, so the patch has the version
// that was read.
func (p *Publisher) writeTaints(ctx context.Context, node *corev1.Node, wanted []corev1.Taint) error {
	var list, found []corev1.Taint
	for _, t := range node.Spec.Taints {
		if p.ownsTaint(&t) {
			found = append(found, t)
		} else {
			list = append(list, t)
		}
	}
	if slices.EqualFunc(found, wanted, func(a, b corev1.Taint) bool { return a.Key == b.Key && a.Effect == b.Effect && a.Value == b.Value }) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": node.ResourceVersion},
		"spec":     map[string]any{"taints": append(list, wanted...)},
	})
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = p.opts.Client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
