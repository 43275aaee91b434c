package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

const userAgent = "weir"

// appendRequest appends a request as it is sent.
func appendRequest(dst []byte, req *http.Request) ([]byte, error) {
	if req.Body != nil && req.Body != http.NoBody {
		return dst, errors.Join(errors.New("a request with a body cannot be sent"), req.Body.Close())
	}
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	host = withoutZone(host)
	uri := req.URL.RequestURI()
	method := req.Method
	if method == "" {
		method = http.MethodGet
	}
	switch {
	case method != http.MethodGet && method != http.MethodHead:
		return dst, fmt.Errorf("method %q is not GET or HEAD", method)
	case host == "" || strings.ContainsFunc(host, endsWord):
		return dst, fmt.Errorf("host %q is not valid in a request", host)
	case strings.ContainsFunc(uri, endsWord):
		return dst, fmt.Errorf("path %q is not valid in a request", uri)
	}
	dst = append(dst, method...)
	dst = append(dst, ' ')
	dst = append(dst, uri...)
	dst = append(dst, " HTTP/1.1\r\nHost: "...)
	dst = append(dst, host...)
	dst = append(dst, "\r\n"...)
	if len(req.Header["User-Agent"]) == 0 {
		dst = append(dst, "User-Agent: "+userAgent+"\r\n"...)
	}
	dst, err := appendHeader(dst, req.Header)
	if err != nil {
		return dst, err
	}
	if req.Close {
		dst = append(dst, "Connection: close\r\n"...)
	}
	return append(dst, "\r\n"...), nil
}

// appendHeader appends header fields, except those that frame and route a message.
func appendHeader(dst []byte, header http.Header) ([]byte, error) {
	for name, values := range header {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer", "Connection":
			continue
		}
		if name == "" || strings.ContainsFunc(name, notInToken) {
			return dst, fmt.Errorf("%q is not a valid name of a header field", name)
		}
		for _, v := range values {
			if strings.ContainsFunc(v, isControl) { // do not print the value: it may be a secret
				return dst, fmt.Errorf("header field %s has a control character in it", name)
			}
			dst = append(dst, name...)
			dst = append(dst, ": "...)
			dst = append(dst, v...)
			dst = append(dst, "\r\n"...)
		}
	}
	return dst, nil
}

// withoutZone removes the zone from an IPv6 address in brackets: it has a meaning on this machine only.
func withoutZone(host string) string {
	end := strings.LastIndexByte(host, ']')
	if !strings.HasPrefix(host, "[") || end < 0 {
		return host
	}
	zone := strings.LastIndexByte(host[:end], '%')
	if zone < 0 {
		return host
	}
	return host[:zone] + host[end:]
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// endsWord reports whether r would end a word of the request's first lines.
func endsWord(r rune) bool { return r <= ' ' || r >= 0x7f }

// notInToken reports whether r cannot be in a token of RFC 9110.
func notInToken(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
