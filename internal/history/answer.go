package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
)

// maxText is how many bytes of the server's message an error quotes.
const maxText = 300

// answer is the envelope of an answer of Prometheus' API.
type answer struct {
	Status    string          `json:"status"`
	ErrorType string          `json:"errorType"`
	Error     string          `json:"error"`
	Warnings  []string        `json:"warnings"`
	Data      json.RawMessage `json:"data"`
}

// queryResult is the data of an answer to a query.
type queryResult struct {
	Type   string          `json:"resultType"`
	Result json.RawMessage `json:"result"`
}

// point is a time in seconds and a value in text form.
type point struct {
	at    float64
	value float64
}

// UnmarshalJSON reads [1700000000.5, "12.5"].
func (p *point) UnmarshalJSON(data []byte) error {
	var at float64
	var text string
	pair := [...]any{&at, &text}
	all := pair[:]
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("read a value: %w", err)
	}
	if len(all) != 2 {
		return fmt.Errorf("read a value: %s is not a time and a number", data)
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("read a value: %w", err)
	}
	*p = point{at, value}
	return nil
}

// time returns the time in milliseconds, the server's resolution.
func (p point) time() time.Time { return time.UnixMilli(int64(math.Round(p.at * 1000))) }

func (p point) series(labels map[string]string) InstantValue {
	return InstantValue{Labels: labels, Value: p.value, Time: p.time()}
}

// envelope decodes an answer, and its data into data. It returns an error unless the query succeeded.
func envelope(status int, body []byte, data any) (warnings []string, err error) {
	var a answer
	err = json.Unmarshal(body, &a)
	if status/100 != 2 || err == nil && a.Status == "error" {
		if err != nil || a.Error == "" {
			return nil, &Error{Status: status, Text: humanize.Excerpt(string(body), maxText)}
		}
		return nil, &Error{Status: status, Kind: a.ErrorType, Text: humanize.Excerpt(a.Error, maxText)}
	}
	if err != nil {
		return nil, fmt.Errorf("read Prometheus' answer: %w: is it the address of a Prometheus?", err)
	}
	if a.Status != "success" {
		return nil, errors.New("read Prometheus' answer: it has no status: is it the address of a Prometheus?")
	}
	if err := json.Unmarshal(a.Data, data); err != nil {
		return nil, fmt.Errorf("read Prometheus' answer: %w", err)
	}
	return a.Warnings, nil
}

// decode decodes the answer of Query.
func decode(status int, body []byte) (*Answer, error) {
	var data queryResult
	warnings, err := envelope(status, body, &data)
	if err != nil {
		return nil, err
	}
	to := &Answer{Warnings: warnings}
	switch data.Type {
	case "scalar":
		var p *point
		if err := json.Unmarshal(data.Result, &p); err != nil {
			return nil, fmt.Errorf("read Prometheus' answer: %w", err)
		}
		if p == nil {
			return nil, errors.New("read Prometheus' answer: a scalar without a value")
		}
		to.Series = []InstantValue{p.series(nil)}
	case "vector":
		var vector []struct {
			Metric map[string]string `json:"metric"`
			Value  *point            `json:"value"`
		}
		if err := json.Unmarshal(data.Result, &vector); err != nil {
			return nil, fmt.Errorf("read Prometheus' answer: %w", err)
		}
		for _, s := range vector {
			if s.Value == nil {
				return nil, fmt.Errorf("the query returns a histogram instead of a number: put histogram_quantile(), histogram_count() or the like around it")
			}
			to.Series = append(to.Series, s.Value.series(s.Metric))
		}
	default:
		return nil, fmt.Errorf("the query returns a %q and not a number or a vector", data.Type)
	}
	return to, nil
}
