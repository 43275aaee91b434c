package access

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// HideRetryable returns another error for a refused connection and for too many requests. A reflector whose watch
// fails with one of them waits for up to half a minute and ignores its context, which delays the end of the process.
func HideRetryable(err error) error {
	if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
		return errors.New(err.Error())
	}
	return err
}
