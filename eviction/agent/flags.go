package agent

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/internal/usererror"
)

// evictionOff is the value of --eviction that turns it off. The other values are those of
// execute.Mode.
const evictionOff = "off"

// kubeletPort is the usual port of a kubelet.
const kubeletPort = 10250

// Plan is how to decide about this node's pods, and what to do.
type Plan struct {
	Mode execute.Mode
	// Settings come from the flags. Without Thresholds, mode observe uses the kubelet's settings.
	eviction.Settings
	// Events are written about pods; Conditions and Taints are written to the node.
	Events, Conditions, Taints bool
	// AtOnce makes mode kill end a pod's processes before it deletes the pod.
	AtOnce bool
	// Reclaim is the path of the runtime's socket. If it is empty, weir leaves images and ended
	// containers to the kubelet.
	Reclaim string
	// Kubelet is this node's kubelet, which knows its own thresholds.
	Kubelet KubeletAddress
	// Self is the UID of the pod of this process, or empty outside of pods.
	Self string
	// Namespace is that of this pod, or empty outside of pods.
	Namespace string
}

// KubeletAddress is where a kubelet is and which certificate to trust.
type KubeletAddress struct {
	URL, CAFile string // URL is empty if the kubelet is not asked
	Insecure    bool
}

// flags are the flags about eviction. A flag that the kubelet has too has the kubelet's name, form
// and default.
type flags struct {
	Plan
	mode        string
	config      eviction.ThresholdConfig
	maxPodGrace int32
	reclaim     string
	contention  map[string]string
}

// Flags adds the flags about eviction.
func (g *Guard) Flags(f *pflag.FlagSet) {
	e := &g.flags
	f.StringVar(&e.mode, "eviction", e.mode, "what to do (`MODE`) when this node runs out of something. off: nothing; observe: report which pod would be evicted, and change nothing; evict: use the Eviction API, which honours PodDisruptionBudgets; kill: for hard thresholds delete the pod, as the kubelet does; request: create EvictionRequests (KEP-4563), which a controller of the cluster must follow")
	f.Var(cliflag.NewLangleSeparatedMapStringString(&e.config.EvictionHard), "eviction-hard", "hard thresholds `SIGNAL<VALUE,...`, such as memory.available<200Mi,nodefs.available<10% (default of observe: the kubelet's of this node)")
	f.Var(cliflag.NewLangleSeparatedMapStringString(&e.config.EvictionSoft), "eviction-soft", "soft thresholds `SIGNAL<VALUE,...`, such as memory.available<500Mi")
	f.Var(cliflag.NewMapStringString(&e.config.EvictionSoftGracePeriod), "eviction-soft-grace-period", "`SIGNAL=TIME,...`: how long a soft threshold must be met before a pod is evicted, such as memory.available=90s")
	f.Var(cliflag.NewMapStringString(&e.config.EvictionMinimumReclaim), "eviction-minimum-reclaim", "`SIGNAL=VALUE,...`: what must be available beyond a threshold to end it, such as memory.available=100Mi")
	f.StringArrayVar(&e.config.Pressure, "eviction-pressure", nil, "`THRESHOLD` of the kernel's stall figures, which the kubelet does not know: 'memory.pressure.some.avg10>20 for 30s until 10'; repeatable")
	f.DurationVar(&e.TransitionPeriod, "eviction-pressure-transition-period", e.TransitionPeriod, "how long a condition is reported after its threshold was last met")
	f.Int32Var(&e.maxPodGrace, "eviction-max-pod-grace-period", 0, "most `SECONDS` that a pod gets to end when a soft threshold evicts it")
	f.BoolVar(&e.AtOnce, "eviction-kill-at-once", false, "with --eviction=kill, if memory or process IDs are below a hard threshold: end the pod's processes with SIGKILL, and delete the pod then. Without it they have a second after SIGTERM. The agent needs hostPID and the capability KILL, or the socket of --eviction-reclaim")
	f.BoolVar(&e.LocalLimits, "eviction-local-limits", false, "enforce limits of emptyDir volumes and ephemeral storage too, which the kubelet does already")
	f.BoolVar(&e.Events, "eviction-events", e.Events, "write Events on pods that are evicted or would be; observe writes nothing else")
	f.BoolVar(&e.Conditions, "eviction-publish-conditions", false, "write the node's pressure into its status, as conditions of weir's own types")
	f.BoolVar(&e.Taints, "eviction-publish-taints", false, "taint the node under pressure as well, with taints of weir's own, which keep new pods away")
	f.Var(cliflag.NewMapStringString(&e.contention), "eviction-contention", "`memory=PERCENT,io=PERCENT`: how much of the time tasks of this node must stall, over a minute and over 10 s, for the condition of KEP-5394 (SystemMemoryContentionPressure, SystemDiskContentionPressure); no pod is evicted for it")
	f.StringVar(&e.Kubelet.URL, "kubelet-url", "", "`URL` of this node's kubelet, which is asked for its thresholds (default: port 10250 of $HOST_IP, or else of 127.0.0.1)")
	f.StringVar(&e.Kubelet.CAFile, "kubelet-certificate-authority", "", "`FILE` of CA certificates that verify the kubelet (default: the cluster's)")
	f.BoolVar(&e.Kubelet.Insecure, "kubelet-insecure-tls", false, "accept any certificate of the kubelet; for tests")
	f.StringVar(&e.reclaim, "eviction-reclaim", "", "`unix:///PATH` of the container runtime's socket, by which unused images and ended containers are removed before pods are evicted; access to it equals root")
}

// Check checks the flags and completes the plan, which is nil for --eviction=off.
func (g *Guard) Check(in *feature.Setting) (err error) {
	g.plan, err = g.flags.compile(in)
	return err
}

// compile returns the plan of the flags, or nil for --eviction=off.
func (f *flags) compile(in *feature.Setting) (*Plan, error) {
	p := f.Plan
	f.config.OwnSignals = true
	own, err := eviction.Parse(&f.config)
	if err != nil {
		return nil, usererror.Hintf(usererror.Usage(fmt.Errorf("read the eviction thresholds: %w", err)),
			"Write them as for the kubelet: --eviction-hard='memory.available<200Mi,nodefs.available<10%%' "+
				"--eviction-soft='memory.available<500Mi' --eviction-soft-grace-period=memory.available=90s")
	}
	if p.Contention, err = eviction.ParseContention(f.contention); err != nil {
		return nil, usererror.Hintf(usererror.Usage(fmt.Errorf("read --eviction-contention: %w", err)), "Write it as --eviction-contention=memory=40,io=40.")
	}
	if f.mode == evictionOff {
		return nil, f.checkOff(own)
	}
	if err := usererror.OneOf("--eviction", f.mode, evictionOff, string(execute.Observe), string(execute.Evict), string(execute.Kill), string(execute.Request)); err != nil {
		return nil, err
	}
	if f.AtOnce && f.mode != string(execute.Kill) {
		return nil, usererror.Hintf(usererror.Usage(fmt.Errorf("--eviction-kill-at-once is of mode kill, and --eviction is %s", f.mode)),
			"Leave it out, or choose --eviction=kill.")
	}
	p.Mode, p.Thresholds, p.MaxPodGraceSeconds = execute.Mode(f.mode), own, int64(f.maxPodGrace)
	p.Self, p.Namespace = in.Getenv("POD_UID"), in.Getenv("POD_NAMESPACE")
	p.Reclaim = strings.TrimPrefix(f.reclaim, "unix://")
	if p.Kubelet.URL == "" {
		p.Kubelet.URL = "https://" + net.JoinHostPort(cmp.Or(in.Getenv("HOST_IP"), "127.0.0.1"), strconv.Itoa(kubeletPort))
	}
	if err := f.checkPlan(&p, in); err != nil || p.Mode == execute.Observe {
		return &p, err
	}
	return &p, f.checkActing(&p, in)
}

// checkPlan returns an error for values that no plan can have, and for flags that exclude each other.
func (f *flags) checkPlan(p *Plan, in *feature.Setting) error {
	switch {
	case p.Kubelet.Insecure && p.Kubelet.CAFile != "":
		return usererror.Usage(errors.New("--kubelet-insecure-tls accepts any certificate, so --kubelet-certificate-authority has no use: drop one of the two"))
	case !isHTTPS(p.Kubelet.URL):
		return usererror.Usage(fmt.Errorf("--kubelet-url=%s is not the address of a kubelet, which is shown a token: write https://HOST:%d", humanize.URL(p.Kubelet.URL), kubeletPort))
	case p.TransitionPeriod < 0:
		return usererror.Usage(fmt.Errorf("--eviction-pressure-transition-period cannot be %v: it is a time to wait", p.TransitionPeriod))
	case f.maxPodGrace < 0:
		return usererror.Usage(fmt.Errorf("--eviction-max-pod-grace-period cannot be %d: it is a time to end, in seconds", f.maxPodGrace))
	case f.reclaim != "" && !strings.HasPrefix(f.reclaim, "unix:///"):
		return usererror.Usage(fmt.Errorf("--eviction-reclaim=%s is not a socket: write unix:///run/containerd/containerd.sock", f.reclaim))
	case f.reclaim != "" && p.Mode == execute.Observe:
		return usererror.Hintf(usererror.Usage(errors.New("--eviction-reclaim removes images and containers, and --eviction=observe changes nothing")),
			"Leave --eviction-reclaim out, or choose --eviction=evict or --eviction=kill.")
	case p.Taints && !p.Conditions:
		return usererror.Usage(errors.New("--eviction-publish-taints goes with --eviction-publish-conditions, which show why a node has the taint: give both"))
	case p.Conditions && !in.HasCluster:
		return usererror.Hintf(usererror.Usage(errors.New("--eviction-publish-conditions needs a cluster, to whose Node it writes")),
			"Name it with --in-cluster or --kubeconfig=FILE, or leave it out.")
	}
	return nil
}

// isHTTPS reports whether text is the root URL of an HTTPS server.
func isHTTPS(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Hostname() != "" && strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.User == nil
}

// checkOff returns an error for flags that have no use with --eviction=off.
func (f *flags) checkOff(own []eviction.Threshold) error {
	if len(own) > 0 || f.AtOnce || f.reclaim != "" || f.Conditions || f.Taints || len(f.contention) > 0 {
		return usererror.Hintf(usererror.Usage(errors.New("--eviction=off decides nothing, and other flags set what it would decide by")),
			"Leave the other flags that begin with --eviction out, or choose --eviction=observe, which changes nothing.")
	}
	return nil
}

// checkActing returns an error if evictions lack a cluster, the names of the node and of this pod,
// or thresholds.
func (f *flags) checkActing(p *Plan, in *feature.Setting) error {
	missing := func(what, next string) error {
		return usererror.Hintf(usererror.Usage(fmt.Errorf("--eviction=%s needs %s", f.mode, what)), "%s Or choose --eviction=observe, which changes nothing.", next)
	}
	switch {
	case !in.HasCluster:
		return missing("a cluster, whose API server it asks to evict", "Name it with --in-cluster or --kubeconfig=FILE.")
	case !in.NodeIsNamed:
		return missing("the name of this node, whose pods alone it may evict",
			"Give --node-name, or set NODE_NAME by the downward API (spec.nodeName).")
	case in.InPod && p.Self == "":
		return missing("the UID of its own pod, which it must never evict",
			"Set POD_UID in the environment by the downward API (metadata.uid).")
	case in.InPod && p.Namespace == "":
		return missing("the namespace of its own pod, with the Leases that limit how many nodes evict at one time",
			"Set POD_NAMESPACE in the environment by the downward API (metadata.namespace).")
	case len(p.Thresholds) == 0 && !p.LocalLimits:
		return missing("thresholds, since those of the kubelet are the kubelet's to act on",
			"Give some that are met earlier than the kubelet's, such as --eviction-hard='memory.available<200Mi' where the kubelet has 100Mi.")
	}
	return nil
}
