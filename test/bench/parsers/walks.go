package main

import (
	"encoding/json"
	"fmt"

	"github.com/buger/jsonparser"
	"github.com/bytedance/sonic/ast"
	"github.com/go-faster/jx"
)

// walks are the libraries that go from value to value and make no tree. The
// benchmark adds up the numbers, as for trees.
var walks = []contender{
	{"go-faster/jx", func() decoder {
		d := jx.DecodeBytes(nil)
		return func(body []byte) error {
			d.ResetBytes(body)
			_, err := jxSum(d)
			return err
		}
	}},
	{"buger/jsonparser", func() decoder {
		return func(body []byte) error { _, err := jsonparserSum(body, jsonparser.Object); return err }
	}},
	{"bytedance/sonic, visitor", func() decoder {
		return func(body []byte) error { _, err := visitorSum(body); return err }
	}},
}

// jxSum returns the sum of the numbers in the next value of d.
func jxSum(d *jx.Decoder) (sum uint64, err error) {
	switch d.Next() {
	case jx.Object:
		err = d.ObjBytes(func(d *jx.Decoder, key []byte) error {
			if average(key) {
				return d.Skip()
			}
			n, err := jxSum(d)
			sum += n
			return err
		})
	case jx.Array:
		err = d.Arr(func(d *jx.Decoder) error {
			n, err := jxSum(d)
			sum += n
			return err
		})
	case jx.Number:
		sum, err = d.UInt64()
	default:
		err = d.Skip()
	}
	return sum, err
}

// jsonparserSum returns the sum of the numbers in value.
func jsonparserSum(value []byte, kind jsonparser.ValueType) (sum uint64, err error) {
	switch kind {
	case jsonparser.Object:
		err = jsonparser.ObjectEach(value, func(key, value []byte, kind jsonparser.ValueType, _ int) error {
			if average(key) {
				return nil
			}
			n, err := jsonparserSum(value, kind)
			sum += n
			return err
		})
	case jsonparser.Array:
		var inner error
		_, err = jsonparser.ArrayEach(value, func(value []byte, kind jsonparser.ValueType, _ int, _ error) {
			n, err := jsonparserSum(value, kind)
			if sum += n; err != nil {
				inner = err
			}
		})
		if err == nil {
			err = inner
		}
	case jsonparser.Number:
		var n int64
		n, err = jsonparser.ParseInt(value)
		sum = uint64(n)
	}
	return sum, err
}

// visitor adds up the numbers that it visits.
type visitor struct {
	sum     uint64
	average bool // the next value is one of PSI's averages
}

func visitorSum(body []byte) (uint64, error) {
	var v visitor
	if err := ast.Preorder(string(body), &v, nil); err != nil {
		return 0, fmt.Errorf("visit: %w", err)
	}
	return v.sum, nil
}

func (v *visitor) OnObjectKey(key string) error {
	v.average = average([]byte(key))
	return nil
}

func (v *visitor) OnInt64(n int64, _ json.Number) error {
	if !v.average {
		v.sum += uint64(n)
	}
	return nil
}

func (v *visitor) OnFloat64(float64, json.Number) error { return nil }
func (v *visitor) OnNull() error                        { return nil }
func (v *visitor) OnBool(bool) error                    { return nil }
func (v *visitor) OnString(string) error                { return nil }
func (v *visitor) OnObjectBegin(int) error              { return nil }
func (v *visitor) OnObjectEnd() error                   { return nil }
func (v *visitor) OnArrayBegin(int) error               { return nil }
func (v *visitor) OnArrayEnd() error                    { return nil }
