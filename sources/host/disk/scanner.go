//go:build linux

package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

const (
	// scanInterval is the time from the start of one background scan to the start of the next.
	scanInterval = time.Minute
	// scanShare is the share of time in which a background scan may work. The scan of slow pods has
	// its own share of the same size.
	scanShare = 0.25
	// refreshTimeout limits one Refresh.
	refreshTimeout = 2 * time.Second
)

// Scanner measures the disk usage of pods. Several goroutines may call its methods.
type Scanner struct {
	opts Options
	// podTimeout limits the background scan of one pod. A pod that takes longer is slow: from
	// then on it is scanned separately, for at most slowTimeout.
	podTimeout, slowTimeout time.Duration
	refreshing              chan struct{} // it has an element while a Refresh scans
	doneMu                  sync.Mutex    // it is locked while Done is called

	mu struct {
		sync.RWMutex
		pods map[metric.PodUID]podResult
	}
}

// podResult is the result of the last scan of a pod, with the start of the scan. duration is
// that of the last background scan.
type podResult struct {
	pod      *PodUsage
	began    time.Time
	duration time.Duration
}

// New returns a Scanner. It fails if the options are not valid. If a directory does not exist,
// there are no pods; that is not an error.
func New(opts Options) (*Scanner, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("scan disks: %w", err)
	}
	s := &Scanner{opts: opts, podTimeout: 10 * time.Second, slowTimeout: 10 * time.Minute, refreshing: make(chan struct{}, 1)}
	s.mu.pods = map[metric.PodUID]podResult{}
	return s, nil
}

// maxResultAge is the age at which a result expires. A result becomes so old only if the scanner is
// blocked, for example by a file system that does not answer.
const maxResultAge = time.Hour

// Pod returns the result of the last scan of a pod, if it is not older than an hour.
func (s *Scanner) Pod(uid metric.PodUID) (*PodUsage, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f, ok := s.mu.pods[uid]
	if !ok || time.Since(f.pod.At) > maxResultAge {
		return nil, false
	}
	return f.pod, true
}

// Run scans now and every minute until ctx ends.
func (s *Scanner) Run(ctx context.Context) error {
	var scans sync.WaitGroup
	scans.Go(func() { s.runScans(ctx, false) })
	scans.Go(func() { s.runScans(ctx, true) })
	scans.Wait()
	return nil
}

// runScans scans either the slow pods or the others, every minute.
func (s *Scanner) runScans(ctx context.Context, slow bool) {
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) {
		if r := s.scanPods(ctx, slow); ctx.Err() == nil && (!slow || r.Pods > 0) {
			s.doneMu.Lock()
			s.opts.Done(r)
			s.doneMu.Unlock()
		}
	}, scanInterval)
}

// Refresh scans all pods at full speed. It returns after two seconds at the latest. It begins with
// the pods that were fastest in the last scan, so a pod with millions of files does not delay the
// others. Pods that it does not reach keep their last result. A second call waits for the first.
func (s *Scanner) Refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	select {
	case s.refreshing <- struct{}{}:
		defer func() { <-s.refreshing }()
	case <-ctx.Done():
		return
	}
	v, _ := s.listPods(newPace(1)) // the next background scan reports the same errors
	for _, uid := range v.pods {
		began := time.Now()
		pod, _ := v.scanPod(ctx, uid)
		if ctx.Err() != nil {
			return
		}
		s.storeResult(uid, podResult{pod, began, v.lastDurations[uid]}) // a scan at full speed must not change whether a pod is slow
	}
}

// errSlow is the cause when the scan of a pod exceeds its timeout.
var errSlow = errors.New("it has too many files to be counted in time")

// scanPods scans all slow pods, or all others, once, with scanShare of the time.
func (s *Scanner) scanPods(ctx context.Context, slow bool) ScanResult {
	r := ScanResult{At: time.Now(), Slow: slow}
	timeout := s.podTimeout
	if slow {
		timeout = s.slowTimeout
	}
	if slow && !s.hasSlowPods() {
		return r
	}
	pace := newPace(scanShare)
	v, err := s.listPods(pace)
	var p cgroupfs.ErrorList
	p.Add(err)
	for _, uid := range v.pods {
		if (v.lastDurations[uid] >= s.podTimeout) != slow {
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
			f.pod = before // this is used until the scan of slow pods has a result
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
		if f.duration >= s.podTimeout {
			return true
		}
	}
	return false
}

// storeResult stores a result, unless the stored one belongs to a scan that began later.
func (s *Scanner) storeResult(uid metric.PodUID, f podResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.pods[uid].began.After(f.began) {
		s.mu.pods[uid] = f
	}
}

// listPods lists the pods of the node, removes the results of removed pods, and reads what the
// scans of single pods share.
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
		return v, all.Err() // without a list, no result can be removed
	}
	for _, name := range names {
		if uid, ok := podcgroup.NormalizeUID(name); ok {
			v.dirs[uid] = path.Join(pods, name)
		}
	}
	logs := s.opts.hostPath(s.opts.PodLogs)
	if names, err = listNames(logs); err != nil && len(v.dirs) > 0 {
		all.Add(fmt.Errorf("list logs of pods: %w", err))
	}
	for _, name := range names { // the form is NAMESPACE_NAME_UID
		if uid, ok := podcgroup.NormalizeUID(name[strings.LastIndexByte(name, '_')+1:]); ok {
			v.logs[uid] = path.Join(logs, name)
		}
	}

	if len(v.dirs) > 0 && len(layers.pods) == 0 {
		all.Add(fmt.Errorf("find containers: no process of any pod is in %s: mount the host's /proc and set Proc", s.opts.Proc))
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.mu.pods, func(uid metric.PodUID, _ podResult) bool { return v.dirs[uid] == "" })
	for uid, f := range s.mu.pods {
		v.lastDurations[uid] = f.duration
	}
	v.pods = slices.SortedFunc(maps.Keys(v.dirs), func(a, b metric.PodUID) int {
		return cmp.Or(cmp.Compare(v.lastDurations[a], v.lastDurations[b]), cmp.Compare(a, b))
	})
	return v, all.Err()
}

// listNames returns the names in a directory. It returns an error for anything else, because an
// attempt to open a pipe, for example, would block.
func listNames(dir string) ([]string, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
