package informer

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// The pause between two requests to the kubelet, the limit on the time of one, and on its size.
const (
	kubeletInterval = 10 * time.Second
	kubeletTimeout  = 5 * time.Second
	kubeletMaxBytes = 64 << 20
)

// followKubelet takes the pods from the kubelet until the API server has listed them, or ctx ends.
func (c *Cluster) followKubelet(ctx context.Context) {
	convert := c.converter()
	pause := time.NewTicker(kubeletInterval)
	defer pause.Stop()
	for before := ""; ; {
		pods, err := ListKubeletPods(ctx, c.opts.KubeletPods)
		now := fmt.Sprint(err)
		listed := c.queue.fromKubelet(pods, err == nil, convert)
		switch {
		case listed || ctx.Err() != nil:
			return
		case now == before:
		case err != nil:
			c.opts.Logger.Info("the API server has not listed the pods, and the kubelet does not, either", zap.Error(err))
		default:
			c.opts.Logger.Warn("the API server has not listed the pods: they are the kubelet's", zap.Int("pods", len(pods)))
		}
		before = now
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// fromKubelet records that the pods are all that the node has, if ok is true and the API server has
// not listed any. It reports whether the API server has.
func (q *queue) fromKubelet(pods []*v1.Pod, ok bool, convert func(*v1.Pod) podView) (listed bool) {
	views := make([]podView, len(pods))
	for i, p := range pods {
		views[i] = convert(p)
	}
	q.mu.Lock()
	listed = q.mu.fromServer
	if ok && !listed {
		q.mu.onlyNewPods()
		q.mu.fromServer = false
		for _, v := range views {
			q.mu.setPod(v)
		}
	}
	q.mu.Unlock()
	if ok && !listed {
		q.signal()
	}
	return listed
}

// ListKubeletPods asks a kubelet for its pods, through the socket of its Pods API
// (k8s.io/kubelet/pkg/apis/pods/v1alpha1, on by default from Kubernetes 1.37). They include static
// pods, with the UID of their cgroups, and no mirror pods. It is an error if the kubelet does not
// know all of them yet.
func ListKubeletPods(ctx context.Context, socket string) ([]*v1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	conn, err := dialKubelet(socket)
	if err != nil {
		return nil, fmt.Errorf("reach the kubelet's Pods API: %w", err)
	}
	defer func() { _ = conn.Close() }()
	answer, err := podsv1alpha1.NewPodsClient(conn).ListPods(ctx, &podsv1alpha1.ListPodsRequest{}, grpc.MaxCallRecvMsgSize(kubeletMaxBytes))
	if err != nil {
		return nil, fmt.Errorf("list the pods of the kubelet's Pods API (feature gate PodsAPI) at %s: %w", socket, err)
	}
	pods := make([]*v1.Pod, 0, len(answer.Pods))
	for _, b := range answer.Pods {
		p := &v1.Pod{}
		if err := p.Unmarshal(b); err != nil {
			return nil, fmt.Errorf("read a pod of the kubelet's Pods API: %w", err)
		}
		pods = append(pods, p)
	}
	return pods, nil
}

func dialKubelet(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
}
