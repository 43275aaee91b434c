package fetch

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

const (
	userAgent = "weir"
	// maxBody bounds what a request carries: it is read before it is sent.
	maxBody = 64 << 10
)

// appendRequest appends a request as it goes over the wire, and closes its body.
func appendRequest(dst []byte, req *http.Request) ([]byte, error) {
	if req.Body != nil {
		defer req.Body.Close()
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
	case method != http.MethodGet && method != http.MethodHead && method != http.MethodPost:
		return dst, fmt.Errorf("method %q is none of GET, HEAD and POST", method)
	case host == "" || strings.ContainsFunc(host, notInLine):
		return dst, fmt.Errorf("host %q cannot be asked for", host)
	case strings.ContainsFunc(uri, notInLine):
		return dst, fmt.Errorf("path %q cannot be asked for", uri)
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
	return appendBody(dst, req)
}

// appendHeader appends header fields, those excepted that say how long a message
// is and where it goes.
func appendHeader(dst []byte, header http.Header) ([]byte, error) {
	for name, values := range header {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer", "Connection":
			continue
		}
		if name == "" || strings.ContainsFunc(name, notInName) {
			return dst, fmt.Errorf("%q cannot be the name of a header field", name)
		}
		for _, v := range values {
			if strings.ContainsFunc(v, isControl) { // the value itself may be a secret
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

// appendBody ends the head of a request and appends what it carries.
func appendBody(dst []byte, req *http.Request) ([]byte, error) {
	if req.Body == nil || req.Body == http.NoBody {
		if req.Method == http.MethodPost {
			dst = append(dst, "Content-Length: 0\r\n"...)
		}
		return append(dst, "\r\n"...), nil
	}
	if req.ContentLength <= 0 || req.ContentLength > maxBody {
		return dst, fmt.Errorf("a request carries 1 to %d bytes and says how many, not %d", maxBody, req.ContentLength)
	}
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, req.ContentLength, 10)
	dst = append(dst, "\r\n\r\n"...)
	at := len(dst)
	dst = append(dst, make([]byte, req.ContentLength)...)
	if _, err := io.ReadFull(req.Body, dst[at:]); err != nil {
		return dst, fmt.Errorf("read what the request carries: %w", err)
	}
	if n, err := req.Body.Read(make([]byte, 1)); n > 0 || err != nil && !errors.Is(err, io.EOF) {
		return dst, fmt.Errorf("the request carries more than the %d bytes it says: %w", req.ContentLength, err)
	}
	return dst, nil
}

// withoutZone takes the zone, which concerns this machine alone, off an IPv6
// address in brackets.
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

// notInLine reports whether r would end a word of the request's first lines.
func notInLine(r rune) bool { return r <= ' ' || r >= 0x7f }

// notInName reports whether r is not in a token, as RFC 9110 calls it.
func notInName(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
