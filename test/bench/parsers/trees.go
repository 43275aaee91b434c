package main

import (
	"errors"

	"github.com/minio/simdjson-go"
	"github.com/valyala/fastjson"
)

// trees are the libraries that make a tree of the payload. The benchmark then
// adds up all numbers in the tree, except PSI's averages, which weir does not
// read either.
var trees = []contender{
	{"valyala/fastjson", func() decoder {
		var p fastjson.Parser
		return func(body []byte) error { _, err := fastSum(&p, body); return err }
	}},
	{"minio/simdjson-go", func() decoder {
		if !simdjson.SupportedCPU() {
			return func([]byte) error { return errors.New("this CPU lacks what simdjson-go needs") }
		}
		var tape *simdjson.ParsedJson
		return func(body []byte) (err error) { _, tape, err = simdSum(tape, body); return err }
	}},
}

// average reports whether key is one of PSI's averages.
func average(key []byte) bool { return len(key) > 3 && string(key[:3]) == "avg" }

// fastSum returns the sum of the numbers in body.
func fastSum(p *fastjson.Parser, body []byte) (uint64, error) {
	v, err := p.ParseBytes(body)
	if err != nil {
		return 0, err
	}
	return fastNumbers(v), nil
}

func fastNumbers(v *fastjson.Value) (sum uint64) {
	switch v.Type() {
	case fastjson.TypeObject:
		v.GetObject().Visit(func(key []byte, v *fastjson.Value) {
			if !average(key) {
				sum += fastNumbers(v)
			}
		})
	case fastjson.TypeArray:
		for _, v := range v.GetArray() {
			sum += fastNumbers(v)
		}
	case fastjson.TypeNumber:
		sum = v.GetUint64()
	}
	return sum
}

// simdSum is like fastSum, for simdjson-go. tape is the memory of an earlier
// call, or nil.
func simdSum(tape *simdjson.ParsedJson, body []byte) (uint64, *simdjson.ParsedJson, error) {
	tape, err := simdjson.Parse(body, tape, simdjson.WithCopyStrings(false))
	if err != nil {
		return 0, nil, err
	}
	iter := tape.Iter()
	iter.AdvanceInto()
	_, root, err := iter.Root(nil)
	if err != nil {
		return 0, nil, err
	}
	sum, err := simdNumbers(root)
	return sum, tape, err
}

func simdNumbers(i *simdjson.Iter) (sum uint64, err error) {
	switch i.Type() {
	case simdjson.TypeObject:
		var object simdjson.Object
		if _, err := i.Object(&object); err != nil {
			return 0, err
		}
		var member simdjson.Iter
		for {
			key, kind, err := object.NextElementBytes(&member)
			if err != nil {
				return 0, err
			}
			if kind == simdjson.TypeNone {
				return sum, nil
			}
			if average(key) {
				continue
			}
			n, err := simdNumbers(&member)
			if err != nil {
				return 0, err
			}
			sum += n
		}
	case simdjson.TypeArray:
		var array simdjson.Array
		if _, err := i.Array(&array); err != nil {
			return 0, err
		}
		array.ForEach(func(i simdjson.Iter) {
			n, inner := simdNumbers(&i)
			sum, err = sum+n, errors.Join(err, inner)
		})
	case simdjson.TypeInt, simdjson.TypeUint:
		return i.Uint()
	}
	return sum, err
}
