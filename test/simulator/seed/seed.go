// Package seed writes a simulated fleet's nodes and pods to a real API server
// and keeps them up to date: it updates statuses after restarts, deletes and
// creates pods that are replaced, and keeps nodes ready.
//
// Only this package of the simulator uses Kubernetes' client. Package simulator
// makes the content of the objects, as JSON; this package reads that JSON into
// the API's types. It leaves out owner references, because the owners do not
// exist and the garbage collector would delete the pods.
package seed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-metrics/weir/test/simulator"
)

// Options configure a Seeder.
type Options struct {
	Client kubernetes.Interface // required
	Fleet  *simulator.Fleet     // required
	// Port is where the kubelets listen.
	Port int
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Interval is the time between two Syncs. Default 2 s.
	Interval time.Duration
	// Heartbeat is the time between two writes of a node's status. Default 20 s,
	// half of the time that a node controller waits.
	Heartbeat time.Duration
	// Workers is the number of requests that may run at the same time. Default 8.
	Workers int
	Log     *zap.Logger // default: none
}

// Seeder writes a fleet's nodes and pods to an API server and updates them.
type Seeder struct {
	o     Options
	nodes []*node
	seed  maphash.Seed
}

// node is the Seeder's state of one node. Only one goroutine at a time uses it.
type node struct {
	*simulator.Node
	made      bool
	heartbeat time.Time
	pods      map[*simulator.Pod]*pod
}

// pod is the Seeder's state of one pod.
type pod struct {
	made, gone bool
	ending     bool // it is being deleted with its grace period
	// Hashes of the last object and of the last status that was written. Usually
	// nothing has changed, and that case must be cheap.
	seen, status uint64
}

// New returns a Seeder that is not started. Call Sync or Run.
func New(o Options) *Seeder {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Interval == 0 {
		o.Interval = 2 * time.Second
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 20 * time.Second
	}
	if o.Workers == 0 {
		o.Workers = 8
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	s := &Seeder{o: o, seed: maphash.MakeSeed()}
	for _, n := range o.Fleet.Nodes() {
		s.nodes = append(s.nodes, &node{Node: n, pods: map[*simulator.Pod]*pod{}})
	}
	return s
}

// Run calls Sync at every Interval until ctx ends. It logs errors and
// continues.
func (s *Seeder) Run(ctx context.Context) error {
	ticks := time.NewTicker(s.o.Interval)
	defer ticks.Stop()
	for {
		if err := s.Sync(ctx); err != nil && ctx.Err() == nil {
			s.o.Log.Warn("seed objects", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// Sync makes the API server's objects those of the fleet at this moment. It
// continues after an error, and returns the first error of each node.
func (s *Seeder) Sync(ctx context.Context) error {
	if err := s.namespaces(ctx); err != nil {
		return err
	}
	var (
		wait sync.WaitGroup
		mu   sync.Mutex
		errs []error
		work = make(chan *node)
	)
	for range s.o.Workers {
		wait.Go(func() {
			for n := range work {
				if err := s.sync(ctx, n); err != nil {
					mu.Lock()
					errs = append(errs, fmt.Errorf("seed %s: %w", n.Name, err))
					mu.Unlock()
				}
			}
		})
	}
	for _, n := range s.nodes {
		work <- n
	}
	close(work)
	wait.Wait()
	return errors.Join(errs...)
}

func (s *Seeder) namespaces(ctx context.Context) error {
	made := map[string]bool{}
	for _, n := range s.nodes {
		for _, p := range n.Pods() {
			if made[p.Namespace] || n.made {
				continue
			}
			made[p.Namespace] = true
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}}
			_, err := s.o.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("create namespace %s: %w", p.Namespace, err)
			}
		}
	}
	return nil
}

func (s *Seeder) sync(ctx context.Context, n *node) error {
	now := s.o.Now()
	if now.Sub(n.heartbeat) >= s.o.Heartbeat {
		if err := s.report(ctx, n, now); err != nil {
			return err
		}
		n.heartbeat = now
	}
	for _, p := range n.Pods() {
		known := n.pods[p]
		if known == nil {
			known = &pod{}
			n.pods[p] = known
		}
		var err error
		switch bound := p.Bound(now); {
		case bound && !known.made:
			var made *corev1.Pod
			if made, err = s.create(ctx, n, p, known, now); err == nil {
				err = s.status(ctx, p, known, made, now)
			}
		case bound:
			err = s.status(ctx, p, known, nil, now)
		case known.made && !known.gone:
			if err = s.remove(ctx, p); err == nil {
				known.gone = true
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// report creates the node if it does not exist, and writes its status.
func (s *Seeder) report(ctx context.Context, n *node, now time.Time) error {
	object, err := Node(n.Node, s.o.Port, now)
	if err != nil {
		return err
	}
	nodes := s.o.Client.CoreV1().Nodes()
	if !n.Listed(now) {
		if n.made {
			if err := nodes.Delete(ctx, n.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete node: %w", err)
			}
			n.made = false
		}
		return nil
	}
	if !n.made {
		if _, err := nodes.Create(ctx, object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create node: %w", err)
		}
		n.made = true
	}
	patch, err := statusPatch(object.Status)
	if err != nil {
		return err
	}
	if _, err := nodes.Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("write node's status: %w", err)
	}
	return nil
}

// create creates the pod, adopts the UID that the API server gives it, and
// returns it. If an earlier run of the simulator has created the pod, create
// takes it over.
func (s *Seeder) create(ctx context.Context, n *node, p *simulator.Pod, known *pod, now time.Time) (*corev1.Pod, error) {
	object, err := Pod(p, now)
	if err != nil {
		return nil, err
	}
	object.UID, object.CreationTimestamp, object.OwnerReferences = "", metav1.Time{}, nil
	pods := s.o.Client.CoreV1().Pods(p.Namespace)
	made, err := pods.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		if made, err = pods.Get(ctx, p.Name, metav1.GetOptions{}); err != nil {
			return nil, fmt.Errorf("get pod %s/%s: %w", p.Namespace, p.Name, err)
		}
		for _, other := range n.Pods() {
			if other != p && other.UID() == string(made.UID) {
				// This pod replaces the other one. The next Sync finds that it is gone.
				return nil, s.remove(ctx, other)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	if made.UID != "" {
		p.Adopt(string(made.UID))
	}
	known.made = true
	return made, nil
}

// status writes the pod's status if it has changed. It updates made, the object
// that was just created, if there is one. That costs the API server less than a
// patch.
func (s *Seeder) status(ctx context.Context, p *simulator.Pod, known *pod, made *corev1.Pod, now time.Time) error {
	if !known.made {
		return nil
	}
	raw := p.AppendObject(nil, now)
	seen := maphash.Bytes(s.seed, raw)
	if seen == known.seen {
		return nil
	}
	object, err := read(p, raw)
	if err != nil {
		return err
	}
	if object.DeletionTimestamp != nil && !known.ending {
		if err := s.delete(ctx, p, *object.DeletionGracePeriodSeconds); err != nil {
			return err
		}
		known.ending = true
	}
	patch, err := statusPatch(object.Status)
	if err != nil {
		return err
	}
	if sum := maphash.Bytes(s.seed, patch); sum != known.status {
		if err := s.write(ctx, p, object, made, patch); err != nil {
			return fmt.Errorf("write status of pod %s/%s: %w", p.Namespace, p.Name, err)
		}
		known.status = sum
	}
	known.seen = seen
	return nil
}

func (s *Seeder) write(ctx context.Context, p *simulator.Pod, object, made *corev1.Pod, patch []byte) error {
	pods := s.o.Client.CoreV1().Pods(p.Namespace)
	if made != nil {
		made.Status = object.Status
		_, err := pods.UpdateStatus(ctx, made, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) { // another writer was faster: patch instead
			return err
		}
	}
	_, err := pods.Patch(ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// remove deletes the pod at once, if it still has the same UID.
func (s *Seeder) remove(ctx context.Context, p *simulator.Pod) error { return s.delete(ctx, p, 0) }

// delete deletes the pod with a grace period in seconds, if it still has the
// same UID. Nobody else ends the grace period, because there is no kubelet.
func (s *Seeder) delete(ctx context.Context, p *simulator.Pod, grace int64) error {
	uid := types.UID(p.UID())
	err := s.o.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &grace, Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

func statusPatch(status any) ([]byte, error) {
	b, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return nil, fmt.Errorf("write status: %w", err)
	}
	return b, nil
}

// Pod returns the simulated pod as an API object, as it is at now.
func Pod(p *simulator.Pod, now time.Time) (*corev1.Pod, error) {
	return read(p, p.AppendObject(nil, now))
}

func read(p *simulator.Pod, raw []byte) (*corev1.Pod, error) {
	var object corev1.Pod
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("read pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return &object, nil
}

// Node returns the simulated node as an API object, as it is at now. port is
// the port of its kubelet.
func Node(n *simulator.Node, port int, now time.Time) (*corev1.Node, error) {
	var object corev1.Node
	if err := json.Unmarshal(n.AppendObject(nil, port, now), &object); err != nil {
		return nil, fmt.Errorf("read node %s: %w", n.Name, err)
	}
	return &object, nil
}
