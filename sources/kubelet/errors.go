package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/fetch"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// reasonOf returns the reason for an error of a request that got no answer.
func reasonOf(err error) metric.Reason {
	var (
		netErr  net.Error
		invalid *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		expired x509.CertificateInvalidError
		op      *net.OpError
		record  tls.RecordHeaderError
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled),
		errors.As(err, &netErr) && netErr.Timeout():
		return metric.NodeTimeout
	case errors.As(err, &invalid), errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &expired):
		return metric.NodeCertificate
	case errors.As(err, &op) && op.Op == "remote error": // a TLS alert: the server does not accept our certificate
		return metric.NodeUnauthorized
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch), // the server does not speak TLS
		errors.Is(err, fetch.ErrProtocol):
		return metric.NodeBadPayload
	default:
		return metric.NodeUnreachable
	}
}

// maxErrorBytes bounds how much of an error's body is read.
const maxErrorBytes = 512

// refusals are the statuses that a kubelet answers for a known reason, with a hint.
var refusals = map[int]struct {
	reason metric.Reason
	hint   string
}{
	http.StatusUnauthorized:        {metric.NodeUnauthorized, "; the kubelet does not know our token or client certificate"},
	http.StatusForbidden:           {metric.NodeUnauthorized, "; grant get on nodes/metrics and nodes/stats to weir's account"},
	http.StatusInternalServerError: {metric.NodeScrapeError, "; the kubelet could not collect its statistics: see its log"}, // for example: the container runtime does not answer
	http.StatusNotFound:            {metric.NodeBadPayload, "; the kubelet has no such endpoint: choose another with endpoint="},
}

// statusError returns the error for an answer with a status other than 200.
func statusError(resp *http.Response, path string) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBytes))
	r, known := refusals[resp.StatusCode]
	if !known {
		r.reason = metric.NodeBadPayload
	}
	if resp.StatusCode/100 == 3 {
		r.hint = "; redirects are not followed"
	}
	return metric.ReadErrorf(r.reason, "read %s: status %s%s: %s", path, resp.Status, r.hint, payload.Excerpt(body))
}
