// Package dice makes choices from bytes, for tests that build random inputs. Each choice uses one
// byte; when no byte is left, it is the first alternative. A fuzzer can therefore search the inputs,
// and every input can be built.
package dice

// Dice makes choices from Bytes.
type Dice struct{ Bytes []byte }

// Roll returns a number from 0 to sides-1.
func (d *Dice) Roll(sides int) int {
	if len(d.Bytes) == 0 {
		return 0
	}
	b := d.Bytes[0]
	d.Bytes = d.Bytes[1:]
	return int(b) % sides
}

// Chance returns true in one of n cases.
func (d *Dice) Chance(n int) bool { return d.Roll(n) == n-1 }

// Pick returns one of the alternatives.
func Pick[T any](d *Dice, alternatives ...T) T { return alternatives[d.Roll(len(alternatives))] }
