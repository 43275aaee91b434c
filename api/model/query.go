package model

import (
	"math"
	"net/url"
	"strings"
	"time"
)

// query is what a request for points may say.
type query struct {
	from, to int64 // nanoseconds since the Unix epoch, both included
	// labels choose a part of the entity; nil for the entity itself.
	labels map[string]string
}

// parseQuery reads start, end and labels; other parameters are passed over, as
// Heapster did.
func parseQuery(raw string, now time.Time) (query, *problem) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return query{}, badRequest("the query is malformed: %v", err)
	}
	q := query{to: now.UnixNano()}
	if q.from, err = moment(values.Get("start"), 0); err != nil {
		return query{}, badTime("start", values.Get("start"))
	}
	if q.to, err = moment(values.Get("end"), now.UnixNano()); err != nil {
		return query{}, badTime("end", values.Get("end"))
	}
	if values.Get("start") != "" && values.Get("end") != "" && q.from > q.to {
		return query{}, badRequest("start %s is after end %s: swap them", values.Get("start"), values.Get("end"))
	}
	list := values.Get("labels")
	if list == "" {
		return q, nil
	}
	q.labels = map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		key, value, ok := strings.Cut(pair, ":")
		if !ok || key == "" || value == "" {
			return query{}, badRequest("%q in labels is no pair: write labels=resource_id:/dev/vda1", pair)
		}
		q.labels[key] = value
	}
	return q, nil
}

// moment reads an RFC 3339 time, as far as nanoseconds since the Unix epoch
// reach; otherwise where there is none.
func moment(s string, otherwise int64) (int64, error) {
	if s == "" {
		return otherwise, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	switch {
	case err != nil:
		return 0, err
	case t.Unix() <= 0:
		return 0, nil
	case t.Unix() >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64, nil
	}
	return t.UnixNano(), nil
}

func badTime(name, value string) *problem {
	hint := ""
	if strings.Contains(value, " ") {
		hint = `; in a query a "+" is written %2B`
	}
	return badRequest("%s=%q is no time: write it as %s=2026-01-02T15:04:05Z%s", name, value, name, hint)
}
