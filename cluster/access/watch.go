package access

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// HideRetryable hides refused connections and excess requests from the reflector whose watch failed. It would
// wait for up to half a minute after them, ignore its context during that time, and delay the end of the
// process.
func HideRetryable(err error) error {
	if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
		return errors.New(err.Error())
	}
	return err
}
