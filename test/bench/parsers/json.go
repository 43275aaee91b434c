package main

import (
	"encoding/json"

	"github.com/bytedance/sonic"
	jsonexp "github.com/go-json-experiment/json"
	goccy "github.com/goccy/go-json"
	jsoniter "github.com/json-iterator/go"
	segmentio "github.com/segmentio/encoding/json"

	"github.com/weir-metrics/weir/test/bench/parsers/document"
)

// unmarshaler is a library that decodes into a document.Summary.
type unmarshaler struct {
	name      string
	unmarshal func(body []byte, v any) error
}

var unmarshalers = []unmarshaler{
	{"encoding/json", json.Unmarshal},
	{"go-json-experiment", func(body []byte, v any) error { return jsonexp.Unmarshal(body, v) }},
	{"goccy/go-json", goccy.Unmarshal},
	{"goccy/go-json, no escape", func(body []byte, v any) error { return goccy.UnmarshalNoEscape(body, v) }},
	{"segmentio/encoding", segmentio.Unmarshal},
	{"segmentio/encoding, zero copy", func(body []byte, v any) error {
		_, err := segmentio.Parse(body, v, segmentio.ZeroCopy)
		return err
	}},
	{"json-iterator", jsoniter.ConfigFastest.Unmarshal},
	{"bytedance/sonic", sonic.Unmarshal},
	// It does not validate the content of strings.
	{"bytedance/sonic, fastest", sonic.ConfigFastest.Unmarshal},
}

// structs returns the unmarshalers as contenders. Each keeps its document from
// payload to payload, so that slices do not grow again.
func structs() []contender {
	var list []contender
	for _, u := range unmarshalers {
		list = append(list, contender{u.name, func() decoder {
			var s document.Summary
			return func(body []byte) error { return u.unmarshal(body, &s) }
		}})
	}
	return list
}
