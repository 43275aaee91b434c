//go:build goexperiment.jsonv2

package main

import jsonv2 "encoding/json/v2"

func init() {
	unmarshalers = append(unmarshalers, unmarshaler{"encoding/json/v2", func(body []byte, v any) error { return jsonv2.Unmarshal(body, v) }})
}
