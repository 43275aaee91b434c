package weirdev

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Problem is the answer to a request that cannot be served. It is an error. As JSON it is a
// Kubernetes Status, which Kubernetes clients can read, with a hint.
type Problem struct {
	// Status is the HTTP status.
	Status  int
	Message string
	// Hint says what to do about it. Weir gives one whenever it does not have what the caller asks
	// for. Answers of other servers on the way have none.
	Hint string
}

// Error returns the message.
func (p *Problem) Error() string { return p.Message }

// status is a Problem as JSON.
type status struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Status     string `json:"status"`
	Reason     string `json:"reason,omitempty"`
	Code       int    `json:"code"`
	Message    string `json:"message"`
	Hint       string `json:"hint,omitempty"`
}

// reasons are the Kubernetes reasons for the statuses.
var reasons = map[int]string{
	http.StatusBadRequest:            "BadRequest",
	http.StatusForbidden:             "Forbidden",
	http.StatusNotFound:              "NotFound",
	http.StatusMethodNotAllowed:      "MethodNotAllowed",
	http.StatusRequestEntityTooLarge: "RequestEntityTooLarge",
	http.StatusInternalServerError:   "InternalError",
	http.StatusServiceUnavailable:    "ServiceUnavailable",
	http.StatusGatewayTimeout:        "Timeout",
}

// Answer writes an answer. A write fails only when the client has gone.
func Answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(body)
}

// Fail answers with a problem.
func Fail(w http.ResponseWriter, p *Problem) {
	Answer(w, p.Status, status{"Status", "v1", "Failure", reasons[p.Status], p.Status, p.Message, p.Hint})
}

// Respond answers with body or, if err is not nil, with the problem that err is.
func Respond(w http.ResponseWriter, body any, err error) {
	if err == nil {
		Answer(w, http.StatusOK, body)
		return
	}
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		p = &Problem{Status: http.StatusInternalServerError, Message: err.Error(), Hint: "weir's log may say more."}
	}
	Fail(w, p)
}

// OnlyReads returns nil for a request that reads. For another request it returns a problem with
// this message and hint.
func OnlyReads(w http.ResponseWriter, r *http.Request, message, hint string) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	w.Header().Set("Allow", "GET, HEAD")
	return &Problem{Status: http.StatusMethodNotAllowed, Message: message, Hint: hint}
}

// problem reads an answer that is not the expected one: a Problem of weir, or an error of an API
// server or a proxy on the way.
func problem(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return fmt.Errorf("read answer %s: %w", resp.Status, err)
	}
	var s status
	if json.Unmarshal(body, &s) == nil && s.Message != "" {
		return &Problem{Status: resp.StatusCode, Message: s.Message, Hint: s.Hint}
	}
	text := strings.TrimSpace(string(body))
	if text == "" || strings.HasPrefix(text, "<") {
		text = resp.Status
	}
	return &Problem{Status: resp.StatusCode, Message: text}
}
