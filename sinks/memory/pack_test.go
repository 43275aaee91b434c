package memory

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Packed rounds have the content that they had when they were open.
func FuzzPack(f *testing.F) {
	f.Add([]byte{12, 3, 0xff, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(bytes.Repeat([]byte{12, 5, 15, 2, 64, 65, 66, 77, 200, 3, 0, 130, 66}, 60))
	f.Add([]byte{5, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		next := func() (b byte) {
			if len(in) > 0 {
				b, in = in[0], in[1:]
			}
			return b
		}
		metrics := historyMetrics([]metric.ID{metric.CPUUsageRate, metric.MemoryUsage, metric.MemoryWorkingSet, metric.NetworkRxRate})
		rounds := int(next())%packRounds + 1
		o := &openRounds{first: 100, unit: int64(time.Millisecond)}
		var rows []historyRow
		ids := uint32(0)
		for range next()%6 + 1 {
			// Each metric has its own clock, all share one, or something in between.
			l := rowLayout{mask: uint64(next()%15 + 1), timestamps: next()%2 + 1}
			for j := range metrics {
				l.timestampIndexes[metrics[j].key] = uint8(j % int(l.timestamps))
			}
			l.setWidth()
			ids += uint32(next() % 3) // some IDs belong to other rows
			rows = append(rows, historyRow{layout: &l, firstRound: 98 + uint32(next()%6), id: ids})
			ids++
		}
		before := map[[2]int]float24{}
		for k := range rounds {
			o.stamps[k] = roundTime{int64(k), int64(k)}
			data := make([]byte, 4*ids)
			for n, r := range rows {
				begin, at := len(data), data[4*r.id:]
				switch next() % 8 {
				case 0: // no point
					continue
				case 1:
					binary.LittleEndian.PutUint32(at, indexSum)
					continue
				}
				binary.LittleEndian.PutUint32(at, uint32(begin))
				end := int(r.layout.tagBytes) + 2*int(r.layout.timestamps)
				data = append(data, make([]byte, r.layout.width)...)
				row := data[begin:]
				for j := range metrics {
					if r.layout.mask>>j&1 == 0 {
						continue
					}
					code := float24(next())
					switch {
					case code < 64:
						code = before[[2]int{n, j}]
					case code < 128:
						code %= 4
					default:
						code = code<<16 | float24(next())<<8 | float24(next())
					}
					before[[2]int{n, j}] = code
					end = r.layout.setValue(row, end, j, code)
					clock := row[int(r.layout.tagBytes)+2*int(r.layout.timestampIndexes[metrics[j].key]):]
					binary.LittleEndian.PutUint16(clock, uint16(next())<<8|uint16(next()))
				}
				data = data[:begin+end]
			}
			o.data[k] = data
		}
		packed, _ := o.pack(rounds, rows, ids, nil)
		if !slices.Equal(packed.stamps, o.stamps[:rounds]) {
			t.Errorf("stamps: got %v, want %v", packed.stamps, o.stamps[:rounds])
		}
		for n := range rows {
			for j := range metrics {
				if rows[n].layout.mask>>j&1 == 0 {
					continue
				}
				var got, want pointSeries
				packed.read(&rows[n], metrics[j].key, j, &got)
				o.read(rounds, &rows[n], metrics[j].key, j, &want)
				for k := range want.codes {
					// The clock of an absent value or of a sum has no meaning.
					if want.codes[k] == float24Absent || want.codes[k] == float24Sum {
						got.offsets[k], want.offsets[k] = 0, 0
					}
				}
				if got != want {
					t.Errorf("row %d metric %d:\n got %v\nwant %v", n, j, got, want)
				}
			}
		}
	})
}

// Columns of every width are unpacked to what was packed, and have the expected size.
func TestColumn(t *testing.T) {
	for name, c := range map[string]struct {
		values []uint32
		size   uint
		bits   int
	}{
		"still":           {[]uint32{7, 7, 7, 7}, 24, 6 + 24},
		"one":             {[]uint32{1<<24 - 1}, 24, 6 + 24},
		"wavering":        {[]uint32{100, 107, 101, 106}, 16, 6 + 16 + 4*3},
		"climbing":        {[]uint32{1000, 2000, 3000, 4000}, 24, 6 + 24 + 3*11},
		"falling":         {[]uint32{4000, 3000, 2000, 1000}, 24, 6 + 24 + 3*11},
		"all there is":    {[]uint32{0, 1<<24 - 1}, 24, 6 + 24 + 25},
		"all of a clock":  {[]uint32{1<<16 - 1, 0}, 16, 6 + 16 + 17},
		"a climb by ones": {[]uint32{8, 9, 10, 11, 12, 13}, 16, 6 + 16 + 5*2},
	} {
		var w bitWriter
		w.writeBits(1, 3) // so that the column does not begin at a byte
		w.writeColumn(c.values, c.size)
		w.flush()
		data := binary.LittleEndian.AppendUint64(w.data, ^uint64(0))
		got := make([]uint32, len(c.values))
		end := readColumn(data, 3, len(c.values), int(c.size), got)
		if !slices.Equal(got, c.values) || end-3 != c.bits {
			t.Errorf("%s: got %v in %d bits, want %v in %d", name, got, end-3, c.values, c.bits)
		}
		if skipped := readColumn(data, 3, len(c.values), int(c.size), nil); skipped != end {
			t.Errorf("%s: skipped to %d, want %d", name, skipped, end)
		}
	}
}
