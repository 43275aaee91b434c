package access_test

import (
	"net"
	"os"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/weir-metrics/weir/cluster/access"
)

// A reflector waits for a time after refused connections and excess requests, and ignores its
// context during that time. It must not see these errors, or the process ends late.
func TestReflectorsRetryAtOnce(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	gone := apierrors.NewResourceExpired("too old")
	for _, err := range []error{refused, apierrors.NewTooManyRequests("later", 1)} {
		got := access.HideRetryable(err)
		if utilnet.IsConnectionRefused(got) || apierrors.IsTooManyRequests(got) {
			t.Errorf("HideRetryable(%v) can still be told apart", err)
		}
		if got.Error() != err.Error() {
			t.Errorf("HideRetryable(%v) says %v", err, got)
		}
	}
	if got := access.HideRetryable(gone); !apierrors.IsResourceExpired(got) {
		t.Errorf("HideRetryable(%v) = %v: what a reflector must know is lost", gone, got)
	}
	if got := access.HideRetryable(nil); got != nil {
		t.Errorf("HideRetryable(nil) = %v", got)
	}
}
