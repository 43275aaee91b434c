// Package payload holds what the parsers of a kubelet's answers share: which
// read an answer belongs to (Request), numbers without rounding (Number), the
// memory of names that makes an unchanged answer cost no allocation (Names), the
// layout that stays while samples come in the same order (Order), and errors that
// point at the spot (Bad).
//
// It knows no format: each format is a sibling package, which turns bytes into
// samples and does no I/O.
package payload
