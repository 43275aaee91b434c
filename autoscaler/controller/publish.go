package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// statusTries is how often a status is written when others change the object
// meanwhile.
const statusTries = 3

// writeStatus writes the status of an Autoscaler. Whoever changed the object since
// it was read changed something else: statuses are the leader's.
func (c *Controller) writeStatus(ctx context.Context, o *object, status *v1alpha1.AutoscalerStatus) error {
	api := c.opts.Autoscalers.Autoscalers(o.namespace)
	a := o.scaler.DeepCopy()
	for try := 1; ; try++ {
		if !c.opts.IsLeader() {
			return fmt.Errorf("write the status of Autoscaler %s/%s: another replica leads now", o.namespace, o.name)
		}
		a.Status = *status.DeepCopy()
		_, err := api.UpdateStatus(ctx, a, metav1.UpdateOptions{})
		if err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) || try == statusTries {
			return fmt.Errorf("write the status of Autoscaler %s/%s: %w", o.namespace, o.name, err)
		}
		if a, err = api.Get(ctx, o.name, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("read Autoscaler %s/%s again: %w", o.namespace, o.name, err)
		}
		if a.UID != o.uid {
			return fmt.Errorf("write the status of Autoscaler %s/%s: it is another one now", o.namespace, o.name)
		}
	}
}
