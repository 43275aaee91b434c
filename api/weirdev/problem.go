package weirdev

import (
	"bytes"
	"context"
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
	// Hint is what to do about it. Weir sends one whenever it does not have what the caller asks
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

// Answer writes body as JSON with an HTTP status. It encodes before it writes: if body cannot be
// encoded, the answer is a Problem with status 500. A write fails only when the client has gone.
func Answer(w http.ResponseWriter, code int, body any) {
	text, err := encode(body)
	if err != nil {
		code = http.StatusInternalServerError
		text, _ = encode(newStatus(internalError(fmt.Errorf("encode the answer: %w", err)))) // has only text
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

func encode(body any) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	err := enc.Encode(body)
	return text.Bytes(), err
}

// Fail answers with a problem.
func Fail(w http.ResponseWriter, p *Problem) { Answer(w, p.Status, newStatus(p)) }

func newStatus(p *Problem) status {
	return status{"Status", "v1", "Failure", reasons[p.Status], p.Status, p.Message, p.Hint}
}

func internalError(err error) *Problem {
	return &Problem{Status: http.StatusInternalServerError, Message: err.Error(), Hint: "weir's log may have more."}
}

// NotMeasured is the problem before the first round.
func NotMeasured() *Problem {
	return &Problem{Status: http.StatusServiceUnavailable, Message: "nothing has been measured yet",
		Hint: "Ask again in a few seconds; weir's /readyz shows what weir is waiting for."}
}

// Respond answers with body or, if err is not nil, with the problem that err is.
func Respond(w http.ResponseWriter, body any, err error) {
	if err == nil {
		Answer(w, http.StatusOK, body)
		return
	}
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		p = internalError(err)
	}
	Fail(w, p)
}

// ReadHandler returns a handler of requests that only read. A request with another method gets
// readOnly, a sentence, as its error. Other requests are parsed and answered.
func ReadHandler[Q, A any](readOnly string, parse func(*http.Request) (Q, error), answer func(context.Context, Q) (A, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := OnlyReads(w, r, readOnly); p != nil {
			Fail(w, p)
			return
		}
		request, err := parse(r)
		if err != nil {
			Respond(w, nil, err)
			return
		}
		body, err := answer(r.Context(), request)
		Respond(w, body, err)
	})
}

// OnlyReads returns nil for a request that reads. For another request it returns a problem with
// this message.
func OnlyReads(w http.ResponseWriter, r *http.Request, message string) *Problem {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	w.Header().Set("Allow", "GET, HEAD")
	return &Problem{Status: http.StatusMethodNotAllowed, Message: message, Hint: "Use GET."}
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
