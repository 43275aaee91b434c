package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/zap"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/api/kubeletapi"
	"github.com/weir-metrics/weir/api/nodeapi/oomkills"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/agent"
	"github.com/weir-metrics/weir/eviction/guard"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/sources/host/disk"
	"github.com/weir-metrics/weir/sources/host/oomkill"
	"github.com/weir-metrics/weir/sources/host/vitals"
)

// hostProvider provides the only source that reads this machine.
type hostProvider []manager.Spec

// Sources returns the source of this machine.
func (h hostProvider) Sources(*cluster.Facts) []manager.Spec { return h }

// openHost opens the source at once, so that a machine that cannot be read is an error of the
// command and not of every round. It logs what this machine cannot report.
func openHost(w *weirProcess, p *hostPlan) error {
	o := p.Options
	if w.Cluster != nil {
		o.Facts = w.Facts
	}
	h, err := host.New(o)
	if err != nil {
		return fmt.Errorf("read this machine: %w", err)
	}
	w.Add(feature.Part{Name: "host", Close: h.Close})
	w.node = &thisNode{readCAdvisor: func(ctx context.Context) (kubeletapi.CAdvisor, error) {
		now, err := h.ReadCAdvisor(ctx)
		if now == nil {
			return nil, err // not a nil *host.CAdvisor, which is not a nil interface
		}
		return now, err
	}}
	if gaps := h.Gaps(); len(gaps) > 0 {
		w.Log.Info("this machine cannot supply everything", zap.Strings("gaps", gaps))
	}
	w.pipeline.providers = append(w.pipeline.providers, hostProvider{{
		Name: "host/" + string(p.Node), Kind: "host", Node: p.Node, Interval: p.Interval,
		Open: func() (manager.Source, error) { return h, nil },
	}})
	return nil
}

// openMachine opens the readers of this machine, which take the names of pods and containers from
// pods, and the scan of its disks.
func openMachine(p *hostPlan, pods nodePods, w *feature.Host) (*machine, error) {
	scanner, err := disk.New(disk.Options{
		KubeletRoot: p.KubeletRoot, ContainerRoot: p.ContainerRoot, Containers: pods.running,
		Done: func(r disk.ScanResult) {
			w.Log.Debug("looked at pods' disks", zap.Int("pods", r.Pods), zap.Int("unknown", r.Unknown),
				zap.Int64("inodes", r.Inodes), zap.Duration("took", r.Took), zap.Error(r.Problems))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("look at pods' disks: %w", err)
	}
	reader, err := vitals.New(vitals.Options{
		Node: string(p.Node), Disks: scanner,
		// The agent's pod mounts only the kubelet's directory of pods, because its parent directory
		// has the kubelet's private key.
		KubeletRoot:   firstExisting(filepath.Join(p.KubeletRoot, "pods"), p.KubeletRoot),
		ContainerRoot: firstExisting(p.ContainerRoot),
		Pod: func(uid metric.PodUID) (vitals.PodNames, bool) {
			pod := pods.find(uid)
			if pod == nil {
				return vitals.PodNames{}, false
			}
			containers, _ := pods.running(uid)
			return vitals.PodNames{Namespace: pod.Namespace, Name: pod.Name, UID: metric.PodUID(pod.UID), Containers: containers}, true
		},
	})
	if err != nil {
		return nil, fmt.Errorf("read this machine: %w", err)
	}
	workingSets := reader.WorkingSets()
	w.Add(feature.Part{Name: "disk scan", Run: scanner.Run, Close: func() error { return errors.Join(workingSets.Close(), reader.Close()) }})
	at := func(d vitals.Depth) func(context.Context) (*stats.Summary, error) {
		return func(ctx context.Context) (*stats.Summary, error) { return reader.Read(ctx, d) }
	}
	return &machine{readAll: at(vitals.Containers), Machine: &agent.Machine{
		Pods: pods, Pod: pods.find, Processes: reader.Processes,
		NodeReader: guard.NodeReader{
			Read: at(vitals.Pods), ReadMemory: at(vitals.Memory), Poll: at(vitals.Node), Layout: reader.Layout, Refresh: scanner.Refresh,
			MemoryLeft: func() *eviction.MemoryLeft {
				m, err := reader.MemoryLeft()
				if err != nil {
					return nil // the signals have no figure
				}
				return new(eviction.MemoryLeft(m))
			},
			PodsCgroup: func() string {
				mount, pods := reader.Cgroups()
				return mount + string(pods)
			},
			WorkingSet: func(s eviction.Signal) (int64, error) {
				switch s {
				case eviction.MemoryAvailable:
					return workingSets.Node()
				case eviction.MemAvailable:
					return workingSets.Unavailable()
				case eviction.SwapAvailable:
					return workingSets.Swap()
				default:
					return workingSets.Pods()
				}
			},
		},
	}}, nil
}

// watchKills has to watch what the kernel of this machine kills.
func watchKills(to *oomkills.Watch, log *zap.Logger) error {
	found, err := cgroupfs.Find("", "/proc")
	if err != nil {
		return err
	}
	o := oomkill.Options{Dir: found.ControllerDir("memory"), Proc: "/proc"}
	if o.Dir == "" { // a controller belongs to one version
		o.Dir, o.Unified = found.UnifiedDir(), true
	}
	if to.KernelLog != "" {
		if o.Log, err = oomkill.OpenLog(to.KernelLog); err != nil {
			log.Warn("processes that the kernel kills are not named", zap.Error(err))
		}
	}
	watcher := oomkill.New(o)
	to.Look, to.Close, to.Interval = watcher.Look, watcher.Close, oomkill.Interval
	return nil
}

// firstExisting returns the first of the paths that exists. On a machine without a kubelet it
// returns "", which means the root.
func firstExisting(paths ...string) string {
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	return ""
}
