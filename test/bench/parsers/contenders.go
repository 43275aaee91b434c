package main

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
	"github.com/weir-metrics/weir/sources/kubelet/resource"
	"github.com/weir-metrics/weir/sources/kubelet/summary"
)

// decoder decodes one payload. It may keep memory and names for the next call.
type decoder func(body []byte) error

// contender is a parser that is compared.
type contender struct {
	name string
	new  func() decoder
}

// contenders returns all parsers that can read the endpoint. weir's is the
// first, and the floor is the last.
func contenders(e endpoint) []contender {
	list := []contender{{"weir", func() decoder { return weir(e) }}}
	if e == summaryEndpoint {
		list = slices.Concat(list, structs(), trees, walks)
	} else {
		list = append(list, expositions...)
	}
	return append(list, contender{"bytes.IndexByte", func() decoder { return floor }})
}

// parser is the interface of weir's parsers.
type parser interface {
	Parse(body []byte, req payload.Request, b *metric.Batch) error
}

func weirParser(e endpoint) parser {
	if e == summaryEndpoint {
		return summary.New()
	}
	return resource.New()
}

// weir returns weir's parser as a decoder. It fills one batch again and again,
// as the manager does.
func weir(e endpoint) decoder {
	p := weirParser(e)
	var b metric.Batch
	return func(body []byte) error {
		b.Reset()
		return p.Parse(body, payload.Request{Node: "n", Received: 1}, &b)
	}
}

// floor reads each byte once, to search for a byte that does not occur.
func floor(body []byte) error {
	if bytes.IndexByte(body, 0) >= 0 {
		return errors.New("a zero byte")
	}
	return nil
}

// expositions are other parsers of the text format.
var expositions = []contender{
	// As Prometheus scrapes a target with known series: the bytes of the series are
	// the key of its cache, and no labels are made.
	{"textparse", func() decoder {
		table := labels.NewSymbolTable()
		return func(body []byte) error { return textparsed(body, table, nil, func([]byte, int64, float64) {}) }
	}},
	{"textparse with labels", func() decoder {
		table := labels.NewSymbolTable()
		var l labels.Labels
		return func(body []byte) error { return textparsed(body, table, &l, func([]byte, int64, float64) {}) }
	}},
	{"common/expfmt", func() decoder {
		return func(body []byte) error {
			p := expfmt.NewTextParser(model.UTF8Validation)
			_, err := p.TextToMetricFamilies(bytes.NewReader(body))
			return err
		}
	}},
}

// textparsed calls do with each series, its time in milliseconds (0 if it has
// none) and its value. If l is not nil, it sets l to the labels first.
func textparsed(body []byte, table *labels.SymbolTable, l *labels.Labels, do func(series []byte, ms int64, v float64)) error {
	p := textparse.NewPromParser(body, table, false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		series, at, v := p.Series()
		if l != nil {
			p.Labels(l)
		}
		var ms int64
		if at != nil {
			ms = *at
		}
		do(series, ms, v)
	}
}
