package fetch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/net/http/httpguts"
)

// writeRequest writes a request in the form in which it is sent.
func writeRequest(to *bytes.Buffer, req *http.Request) error {
	host := cmp.Or(req.Host, req.URL.Host)
	switch {
	case req.Body != nil && req.Body != http.NoBody:
		return errors.Join(errors.New("a request with a body cannot be sent"), req.Body.Close())
	case req.Method != "" && req.Method != http.MethodGet && req.Method != http.MethodHead:
		return fmt.Errorf("method %q is not GET or HEAD", req.Method)
	case !httpguts.ValidHostHeader(host): // net/http would send an empty one
		return fmt.Errorf("host %q is not valid in a request", host)
	}
	for name, values := range req.Header {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("%q is not a valid name of a header field", name)
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) { // do not print the value: it may be a secret
				return fmt.Errorf("header field %s has a control character in it", name)
			}
		}
	}
	return req.Write(to)
}
