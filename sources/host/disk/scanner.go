//go:build linux

package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// Scanner looks at the disks. Its methods may be called from several goroutines.
type Scanner struct {
	opts       Options
	refreshing chan struct{} // held by the one Refresh that looks
	doneMu     sync.Mutex    // held while Done is told

	mu struct {
		sync.RWMutex
		pods map[metric.PodUID]podResult
		last ScanResult
	}
}

// podResult is what was found of a pod, when the last look began, and how long that took at the
// background's speed.
type podResult struct {
	pod   *Pod
	began time.Time
	took  time.Duration
}

// New returns a Scanner, or what is wrong with the options. A directory that is not there is no
// error: there are no pods then.
func New(opts Options) (*Scanner, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("look at the disks: %w", err)
	}
	s := &Scanner{opts: opts, refreshing: make(chan struct{}, 1)}
	s.mu.pods = map[metric.PodUID]podResult{}
	return s, nil
}

// maxResultAge is the age from which on a finding tells nothing: something keeps the scanner from looking,
// such as a file system that does not answer.
const maxResultAge = time.Hour

// Pod returns what was found of a pod when it was last looked at, if that was in the last hour.
func (s *Scanner) Pod(uid metric.PodUID) (*Pod, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f, ok := s.mu.pods[uid]
	if !ok || time.Since(f.pod.At) > maxResultAge {
		return nil, false
	}
	return f.pod, true
}

// LastScan returns how the last background scan went, apart from those of slow pods; its zero value
// before the first has ended.
func (s *Scanner) LastScan() ScanResult {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.mu.last
}

// Run scans now and every Period until ctx ends.
func (s *Scanner) Run(ctx context.Context) error {
	var lanes sync.WaitGroup
	lanes.Go(func() { s.runScans(ctx, false) })
	lanes.Go(func() { s.runScans(ctx, true) })
	lanes.Wait()
	return nil
}

// runScans scans either the pods that take long or the others.
func (s *Scanner) runScans(ctx context.Context, slow bool) {
	tick := time.NewTicker(s.opts.Period)
	defer tick.Stop()
	for {
		r := s.scanPods(ctx, slow)
		if ctx.Err() != nil {
			return
		}
		if !slow {
			s.mu.Lock()
			s.mu.last = r
			s.mu.Unlock()
		}
		if !slow || r.Pods > 0 {
			s.doneMu.Lock()
			s.opts.Done(r)
			s.doneMu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Refresh looks at all pods anew, at full speed, and returns after RefreshTimeout at the latest.
// Those that were quick last time come first, so that one with millions of files holds up no
// other; the ones it did not get to keep what was found before. A second call waits for the first.
func (s *Scanner) Refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.RefreshTimeout)
	defer cancel()
	select {
	case s.refreshing <- struct{}{}:
		defer func() { <-s.refreshing }()
	case <-ctx.Done():
		return
	}
	v, _ := s.listPods(newPace(1)) // the next scan in the background tells of its problems
	for _, uid := range v.pods {
		began := time.Now()
		pod, _ := v.scanPod(ctx, uid)
		if ctx.Err() != nil {
			return
		}
		s.storeResult(uid, podResult{pod, began, v.lastDurations[uid]}) // at full speed, quick says nothing
	}
}

// errSlow is why a look at a pod ends before its time.
var errSlow = errors.New("it has too many files to be counted in time")

// scanPods looks once at all pods that are slow, or at those that are not, at the share of time it
// may use.
func (s *Scanner) scanPods(ctx context.Context, slow bool) ScanResult {
	r := ScanResult{At: time.Now(), Slow: slow}
	timeout := s.opts.PodTimeout
	if slow {
		timeout = s.opts.SlowTimeout
	}
	if slow && !s.hasSlowPods() {
		return r
	}
	pace := newPace(s.opts.Share)
	v, err := s.listPods(pace)
	var p cgroupfs.ErrorList
	p.Add(err)
	for _, uid := range v.pods {
		if (v.lastDurations[uid] >= s.opts.PodTimeout) != slow {
			continue
		}
		began := time.Now()
		podCtx, cancel := context.WithTimeoutCause(ctx, timeout, errSlow)
		pod, err := v.scanPod(podCtx, uid)
		cancel()
		if ctx.Err() != nil {
			return r
		}
		r.Pods++
		f := podResult{pod, began, time.Since(began)}
		if before, ok := s.Pod(uid); !slow && errors.Is(err, errSlow) && ok {
			f.pod = before // until it is looked at in more time
		} else if err != nil {
			p.Add(fmt.Errorf("pod %s: %w", uid, err))
		}
		if f.pod.Ephemeral == nil {
			r.Unknown++
		}
		s.storeResult(uid, f)
	}
	r.Took, r.Inodes, r.Problems = time.Since(r.At), pace.steps, p.Err()
	return r
}

func (s *Scanner) hasSlowPods() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, f := range s.mu.pods {
		if f.took >= s.opts.PodTimeout {
			return true
		}
	}
	return false
}

// storeResult stores what was found, unless a look that began later was done sooner.
func (s *Scanner) storeResult(uid metric.PodUID, f podResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.pods[uid].began.After(f.began) {
		s.mu.pods[uid] = f
	}
}

// listPods lists the pods of the node, forgets those that are gone, and reads what looks at single
// pods share.
func (s *Scanner) listPods(p *pace) (*nodeScan, error) {
	var all cgroupfs.ErrorList
	layers, err := findLayers(s.opts.Proc, s.opts.ContainerRoot)
	all.Add(err)
	v := &nodeScan{
		opts: &s.opts, pace: p, layers: layers, lastDurations: map[metric.PodUID]time.Duration{},
		dirs: map[metric.PodUID]string{}, logs: map[metric.PodUID]string{},
	}

	pods := s.opts.hostPath(s.opts.KubeletRoot, "pods")
	names, err := listNames(pods)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		all.Add(fmt.Errorf("list pods: %w", err))
		return v, all.Err() // not knowing who is there, forget nobody
	}
	for _, name := range names {
		if uid, ok := podcgroup.NormalizeUID(name); ok {
			v.dirs[uid] = path.Join(pods, name)
			v.pods = append(v.pods, uid)
		}
	}
	logs := s.opts.hostPath(s.opts.PodLogs)
	if names, err = listNames(logs); err != nil && len(v.dirs) > 0 {
		all.Add(fmt.Errorf("list logs of pods: %w", err))
	}
	for _, name := range names { // NAMESPACE_NAME_UID
		if uid, ok := podcgroup.NormalizeUID(name[strings.LastIndexByte(name, '_')+1:]); ok {
			v.logs[uid] = path.Join(logs, name)
		}
	}

	if len(v.pods) > 0 && len(layers.pods) == 0 {
		all.Add(fmt.Errorf("find containers: no process of any pod is in %s: mount the host's /proc and set Proc", s.opts.Proc))
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	for uid := range s.mu.pods {
		if v.dirs[uid] == "" {
			delete(s.mu.pods, uid)
		}
	}
	for uid, f := range s.mu.pods {
		v.lastDurations[uid] = f.took
	}
	slices.SortFunc(v.pods, func(a, b metric.PodUID) int {
		return cmp.Or(cmp.Compare(v.lastDurations[a], v.lastDurations[b]), cmp.Compare(a, b))
	})
	return v, all.Err()
}

// listNames returns the names in a directory. Of anything else in its place, a pipe for one, it does not
// wait for the other end.
func listNames(dir string) ([]string, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
