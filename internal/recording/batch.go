package recording

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-metrics/weir/metric"
)

// catalogueIDs maps the numbers of groups, reasons and metrics in a file to those of this weir;
// -1 for a name that it does not know. The names are written in each Begin, because the
// catalogue grows.
type catalogueIDs struct{ groups, reasons, metrics []int16 }

const (
	maxGroups  = 16 // bits of a mask of groups
	maxMetrics = 1 << 12
)

func (c *codec) catalogue(first protowire.Number) {
	groups := make([]string, metric.NumGroups)
	for g := range groups {
		groups[g] = metric.Group(g).String()
	}
	reasons := make([]string, metric.NumReasons)
	for r := range reasons {
		reasons[r] = metric.Reason(r).String()
	}
	metrics := make([]string, metric.NumMetrics)
	for i := range metrics {
		metrics[i] = metric.Catalogue[i].Name
	}
	c.ids.groups = c.ownNumbers(first, groups, maxGroups)
	c.ids.reasons = c.ownNumbers(first+1, reasons, maxMetrics)
	c.ids.metrics = c.ownNumbers(first+2, metrics, maxMetrics)
}

// ownNumbers writes the names of this weir. Or it reads those of a file, and returns this
// weir's number for each.
func (c *codec) ownNumbers(n protowire.Number, own []string, most int) []int16 {
	if !c.decoding {
		for i := range own {
			text(c, n, &own[i])
		}
		return nil
	}
	var numbers []int16
	for c.next(n, protowire.BytesType) {
		if numbers = append(numbers, int16(slices.Index(own, string(c.bytes())))); len(numbers) > most {
			c.fail(fmt.Errorf("more than %d names of groups, reasons or metrics", most))
		}
	}
	return numbers
}

// ownNumber translates a number of the file. known is false if this weir does not know it.
func (c *codec) ownNumber(numbers []int16, n uint64) (own int, known bool) {
	if n >= uint64(len(numbers)) {
		c.fail(errReference)
		return 0, false
	}
	return int(max(numbers[n], 0)), numbers[n] >= 0
}

// reason is a field with a reason. One that this weir does not know becomes Unjudged.
func (c *codec) reason(n protowire.Number, r *metric.Reason) {
	u := uint64(*r)
	unsigned(c, n, &u)
	if c.decoding {
		own, _ := c.ownNumber(c.ids.reasons, u)
		*r = metric.Reason(own)
	}
}

// batch describes metric.Batch without Source and Node.
func (c *codec) batch(b *metric.Batch, isCrossCheck bool) {
	c.instant(1, &b.Began)
	c.instant(2, &b.Ended)
	ended := int64(0)
	if !b.Ended.IsZero() {
		ended = c.wall
	}
	signed(c, 3, &b.NodeTime)
	signed(c, 4, &b.Interval)
	signed(c, 5, &b.Resolution)
	c.boolean(6, &b.Exhaustive)
	c.double(7, &b.Cores)
	signed(c, 8, &b.Bytes)
	c.readFailure(9, &b.Err)
	if !c.decoding {
		for i := range b.Samples {
			outer, _ := c.begin(10)
			c.encodeSample(&b.Samples[i], ended)
			c.end(outer)
		}
	}
	for c.decoding {
		outer, ok := c.begin(10)
		if !ok {
			break
		}
		if len(b.Samples) == c.mostSamples { // smaller batches reuse memory
			if c.spend(sampleSize); c.err != nil {
				return
			}
			c.mostSamples++
		}
		c.decodeSample(b.Add(metric.Entity{}), ended)
		c.end(outer)
	}
	repeated(c, 11, &b.Verdicts, verdictSize, (*codec).verdict)
	if c.decoding {
		b.Verdicts = slices.DeleteFunc(b.Verdicts, func(v metric.Verdict) bool { return v.Group == unknownGroup })
	}
	if isCrossCheck || !c.decoding && b.CrossCheck == nil {
		return
	}
	if outer, ok := c.begin(12); ok {
		if c.decoding {
			b.CrossCheck = &metric.Batch{Source: b.Source, Node: b.Node}
			c.spend(sampleSize)
		}
		c.batch(b.CrossCheck, true)
		c.end(outer)
	}
}

// The approximate size of one of each in memory, in bytes.
const (
	sampleSize  = 1024
	subjectSize = 256
	verdictSize = 1024
)

// unknownGroup marks a verdict of a group that this weir does not have.
const unknownGroup = metric.Group(255)

// entity describes metric.Entity, in six fields.
func (c *codec) entity(first protowire.Number, e *metric.Entity) {
	enum(c, first, &e.Kind, metric.NumKinds)
	name(c, first+1, &e.Node)
	name(c, first+2, &e.Namespace)
	name(c, first+3, &e.Pod)
	name(c, first+4, &e.Name)
	name(c, first+5, &e.Part)
}

// instance describes metric.Instance, in nine fields.
func (c *codec) instance(first protowire.Number, in *metric.Instance) {
	name(c, first, &in.UID)
	name(c, first+1, &in.ID)
	name(c, first+2, &in.Path)
	name(c, first+3, &in.Sandbox)
	unsigned(c, first+4, &in.Inode)
	signed(c, first+5, &in.Start)
	enum(c, first+6, &in.Origin, int(metric.StartRuntime)+1)
	signed(c, first+7, &in.Processes)
	unsigned(c, first+8, &in.Line)
}

// The fields of a sample. Groups and metrics are numbers of the file.
const (
	sampleStep                  = 1      // from the subject after the last sample's to this one
	sampleNew                   = 2      // a subject that is not in the table yet
	sampleProcesses             = 3      // plus 1
	sampleMetrics, sampleValues = 4, 5   // packed
	sampleTimed, sampleTimes    = 6, 7   // bit set of groups; packed, relative to ended
	sampleReceived, sampleLast  = 8, 9   // bit sets of groups
	sampleJudged, sampleReasons = 10, 11 // bit set of groups; packed
	sampleRated, sampleWindows  = 12, 13 // bit set of groups; packed, end relative to time and length
)

// subject is the entity and instance of a sample, without the number of processes.
type subject struct {
	entity   metric.Entity
	instance metric.Instance
}

// subjects is the table of subjects since the last Begin. Sources report the same subjects
// in the same order, so the subject after the one of the last sample is tried first.
type subjects struct {
	list  []subject
	index map[subject]int // when encoding
	next  int             // index after the subject of the last sample
}

// subject describes the entity and the instance of a sample.
func (c *codec) subject(s *metric.Sample) {
	t := &c.subjects
	key := subject{s.Entity, s.Instance}
	key.instance.Processes = 0
	at, isNew := t.next, false
	if !c.decoding && (at >= len(t.list) || t.list[at] != key) {
		var known bool
		if at, known = t.index[key]; !known {
			isNew, at = true, t.next
		}
	}
	step := int64(at - t.next)
	signed(c, sampleStep, &step)
	if c.decoding || isNew {
		outer, ok := c.begin(sampleNew)
		if ok {
			c.entity(1, &key.entity)
			c.instance(7, &key.instance)
			c.end(outer)
		}
		if isNew = ok; isNew {
			if c.spend(subjectSize); c.err != nil {
				return
			}
			at = len(t.list)
			t.list = append(t.list, key)
			if !c.decoding {
				t.index[key] = at
			}
		}
	}
	if c.decoding && !isNew {
		if at = t.next + int(step); at < 0 || at >= len(t.list) {
			c.fail(errReference)
			return
		}
		key = t.list[at]
	}
	t.next = at + 1
	processes := s.Instance.Processes + 1
	signed(c, sampleProcesses, &processes)
	if c.decoding {
		s.Entity, s.Instance = key.entity, key.instance
		s.Instance.Processes = processes - 1
	}
}

func (c *codec) encodeSample(s *metric.Sample, ended int64) {
	c.subject(s)
	ids, values := c.packed[:0], c.packed2[:0]
	for id, v := range s.Values.All() {
		ids = protowire.AppendVarint(ids, uint64(id))
		values = protowire.AppendFixed64(values, math.Float64bits(v))
	}
	c.appendPacked(sampleMetrics, ids)
	c.appendPacked(sampleValues, values)
	c.packed, c.packed2 = ids, values
	var timed, judged, rated uint16
	times := c.packed[:0]
	for g, t := range s.Times {
		if t != 0 {
			timed |= 1 << g
			times = protowire.AppendVarint(times, protowire.EncodeZigZag(t-ended))
		}
		if s.Reasons[g] != metric.Unjudged {
			judged |= 1 << g
		}
		if s.Rates[g] != (metric.Window{}) {
			rated |= 1 << g
		}
	}
	unsigned(c, sampleTimed, &timed)
	c.appendPacked(sampleTimes, times)
	unsigned(c, sampleReceived, &s.Received)
	unsigned(c, sampleLast, &s.LastKnown)
	c.packed = times
	if judged != 0 {
		reasons := c.packed[:0]
		eachBit(judged, func(g int) { reasons = protowire.AppendVarint(reasons, uint64(s.Reasons[g])) })
		unsigned(c, sampleJudged, &judged)
		c.appendPacked(sampleReasons, reasons)
		c.packed = reasons
	}
	if rated != 0 {
		windows := c.packed[:0]
		eachBit(rated, func(g int) {
			windows = protowire.AppendVarint(windows, protowire.EncodeZigZag(s.Rates[g].End-s.Times[g]))
			windows = protowire.AppendVarint(windows, protowire.EncodeZigZag(int64(s.Rates[g].Length)))
		})
		unsigned(c, sampleRated, &rated)
		c.appendPacked(sampleWindows, windows)
		c.packed = windows
	}
}

func (c *codec) decodeSample(s *metric.Sample, ended int64) {
	c.subject(s)
	ids := c.packedField(sampleMetrics)
	values := c.packedField(sampleValues)
	for len(ids) > 0 && c.err == nil {
		id, known := c.ownNumber(c.ids.metrics, c.takeVarint(&ids))
		v, size := protowire.ConsumeFixed64(values)
		if size < 0 {
			c.fail(errShort)
			return
		}
		values = values[size:]
		if known {
			s.Values.Set(metric.ID(id), math.Float64frombits(v))
		}
	}
	var mask uint16
	var all [maxGroups]int64 // times by the groups of the file
	unsigned(c, sampleTimed, &mask)
	packed := c.packedField(sampleTimes)
	eachBit(mask, func(g int) {
		all[g] = protowire.DecodeZigZag(c.takeVarint(&packed)) + ended
		if own, known := c.ownNumber(c.ids.groups, uint64(g)); known {
			s.Times[own] = all[g]
		}
	})
	unsigned(c, sampleReceived, &s.Received)
	unsigned(c, sampleLast, &s.LastKnown)
	s.Received, s.LastKnown = c.ownMask(s.Received), c.ownMask(s.LastKnown)
	unsigned(c, sampleJudged, &mask)
	packed = c.packedField(sampleReasons)
	eachBit(mask, func(g int) {
		r, _ := c.ownNumber(c.ids.reasons, c.takeVarint(&packed))
		if own, known := c.ownNumber(c.ids.groups, uint64(g)); known {
			s.Reasons[own] = metric.Reason(r)
		}
	})
	unsigned(c, sampleRated, &mask)
	packed = c.packedField(sampleWindows)
	eachBit(mask, func(g int) {
		w := metric.Window{End: protowire.DecodeZigZag(c.takeVarint(&packed)) + all[g]}
		w.Length = time.Duration(protowire.DecodeZigZag(c.takeVarint(&packed)))
		if own, known := c.ownNumber(c.ids.groups, uint64(g)); known {
			s.Rates[own] = w
		}
	})
}

// ownMask translates a bit set of groups.
func (c *codec) ownMask(mask uint16) (own uint16) {
	eachBit(mask, func(g int) {
		if n, known := c.ownNumber(c.ids.groups, uint64(g)); known {
			own |= 1 << n
		}
	})
	return own
}

// verdict describes metric.Verdict.
func (c *codec) verdict(v *metric.Verdict) {
	c.entity(1, &v.Entity)
	c.instance(7, &v.Instance)
	group := uint64(v.Group)
	unsigned(c, 16, &group)
	if c.decoding {
		own, known := c.ownNumber(c.ids.groups, group)
		if v.Group = metric.Group(own); !known {
			v.Group = unknownGroup
		}
	}
	c.reason(17, &v.Reason)
	ev := &v.Evidence
	name(c, 18, &ev.Rule)
	name(c, 19, &ev.Name)
	c.reason(20, &ev.Cause)
	c.double(21, &ev.Limit)
	signed(c, 22, &ev.Due)
	c.readFailure(23, &ev.Err)
	for i, r := range [...]*metric.CounterReading{&ev.Got, &ev.Other} {
		if !c.decoding && *r == (metric.CounterReading{}) {
			continue
		}
		if outer, ok := c.begin(24 + protowire.Number(i)); ok {
			signed(c, 1, &r.Time)
			signed(c, 2, &r.Start)
			c.double(3, &r.Value)
			name(c, 4, &r.UID)
			name(c, 5, &r.ID)
			name(c, 6, &r.Path)
			c.end(outer)
		}
	}
}

// The forms of an error.
const (
	formText      uint8 = iota // any other error
	formReadError              // a *metric.ReadError
	formWrapping               // an error that wraps a *metric.ReadError
	numForms
)

// readFailure describes an error: its text, the reason in it, and whether a deadline has passed.
func (c *codec) readFailure(n protowire.Number, err *error) {
	if !c.decoding && *err == nil {
		return
	}
	outer, ok := c.begin(n)
	if !ok {
		*err = nil
		return
	}
	var form uint8
	var read *metric.ReadError
	var deadline bool
	var message string
	if !c.decoding {
		direct, isDirect := (*err).(*metric.ReadError) //nolint:errorlint // whether it is wrapped is the question
		switch deadline = errors.Is(*err, context.DeadlineExceeded); {
		case isDirect:
			if form, read = formReadError, direct; direct.Err != nil {
				message = direct.Err.Error()
			}
		case errors.As(*err, &read):
			form, message = formWrapping, (*err).Error()
		default:
			message = (*err).Error()
		}
	}
	if read == nil {
		read = &metric.ReadError{}
	}
	enum(c, 1, &form, int(numForms))
	c.boolean(2, &deadline)
	c.reason(3, &read.Reason)
	text(c, 4, &message)
	c.end(outer)
	if !c.decoding {
		return
	}
	recorded := &recordedError{text: message, deadline: deadline}
	switch *err = recorded; form {
	case formReadError:
		read.Err = recorded
		*err = read
	case formWrapping:
		recorded.read = read
	}
}

// recordedError is an error that was read from a recording.
type recordedError struct {
	text     string
	read     *metric.ReadError // nil if it wraps none
	deadline bool
}

// Error returns the text of the error.
func (e *recordedError) Error() string { return e.text }

// As finds the *metric.ReadError.
func (e *recordedError) As(target any) bool {
	if p, ok := target.(**metric.ReadError); ok && e.read != nil {
		*p = e.read
		return true
	}
	return false
}

// Is reports whether the recorded error was a passed deadline.
func (e *recordedError) Is(target error) bool {
	return e.deadline && target == context.DeadlineExceeded
}
