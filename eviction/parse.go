package eviction

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Config is how thresholds are written, with the names of KubeletConfiguration. Nothing
// is defaulted: an absent map is empty.
type Config struct {
	EvictionHard            map[string]string `json:"evictionHard,omitempty"`
	EvictionSoft            map[string]string `json:"evictionSoft,omitempty"`
	EvictionSoftGracePeriod map[string]string `json:"evictionSoftGracePeriod,omitempty"`
	EvictionMinimumReclaim  map[string]string `json:"evictionMinimumReclaim,omitempty"`
	EnforceNodeAllocatable  []string          `json:"enforceNodeAllocatable,omitempty"`
	// Pressure are thresholds the kubelet does not know: see ParsePressure.
	Pressure []string `json:"pressure,omitempty"`
}

// Parse returns the thresholds of a configuration, or all that is wrong with it.
func Parse(c *Config) ([]Threshold, error) {
	p := &parser{}
	list := p.thresholds(c.EvictionHard)
	soft := p.thresholds(c.EvictionSoft)
	graces := p.graces(c.EvictionSoftGracePeriod)
	reclaims := p.reclaims(c.EvictionMinimumReclaim)
	for i := range soft {
		grace, ok := graces[soft[i].Signal]
		if !ok {
			p.mistake("soft threshold %s has no grace period: give evictionSoftGracePeriod one for it", soft[i].Signal)
		}
		soft[i].Grace = grace
	}
	list = append(list, soft...)
	for i := range list {
		list[i].MinReclaim = reclaims[list[i].Signal]
	}
	if slices.Contains(c.EnforceNodeAllocatable, "pods") {
		// All pods together have a limit, and are to be evicted before they hit it.
		for _, t := range list {
			if t.Signal == MemoryAvailable && t.Hard() {
				t.Signal = AllocatableMemoryAvailable
				list = append(list, t)
			}
		}
	}
	for _, s := range c.Pressure {
		t, err := ParsePressure(s)
		if err != nil {
			p.mistakes = append(p.mistakes, err)
		}
		list = append(list, t)
	}
	if len(p.mistakes) > 0 {
		return nil, errors.Join(p.mistakes...)
	}
	return list, nil
}

// parser collects mistakes, so that all are told at once, and always in the same order.
type parser struct{ mistakes []error }

func (p *parser) mistake(format string, args ...any) {
	p.mistakes = append(p.mistakes, fmt.Errorf(format, args...))
}

// each calls f with the statements whose signal the kubelet knows, in its order.
func (p *parser) each(statements map[string]string, f func(Signal, string) error) {
	for _, s := range Signals() {
		if val, ok := statements[string(s)]; ok {
			if err := f(s, val); err != nil {
				p.mistake("%s %q: %w", s, val, err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(statements)) {
		if !slices.Contains(Signals(), Signal(name)) {
			p.mistake("%q is no signal the kubelet knows", name)
		}
	}
}

func (p *parser) thresholds(statements map[string]string) []Threshold {
	var list []Threshold
	p.each(statements, func(s Signal, val string) error {
		if val == "0%" || val == "100%" {
			return nil // how the kubelet is told to have none
		}
		v, err := parseValue(val)
		switch {
		case err != nil:
			return err
		case v.Quantity == nil && v.Fraction < 0, v.Quantity == nil && v.Fraction > 1:
			return errors.New("not between 0% and 100%")
		case v.Quantity != nil && v.Quantity.Sign() <= 0:
			return errors.New("not positive")
		}
		list = append(list, Threshold{Signal: s, Value: v})
		return nil
	})
	return list
}

func (p *parser) graces(statements map[string]string) map[Signal]time.Duration {
	m := map[Signal]time.Duration{}
	p.each(statements, func(s Signal, val string) error {
		grace, err := time.ParseDuration(val)
		switch {
		case err != nil:
			return fmt.Errorf("parse the grace period: %w", err)
		case grace < 0:
			return errors.New("a grace period cannot be negative")
		}
		m[s] = grace
		return nil
	})
	return m
}

func (p *parser) reclaims(statements map[string]string) map[Signal]*Value {
	m := map[Signal]*Value{}
	p.each(statements, func(s Signal, val string) error {
		v, err := parseValue(val)
		switch {
		case err != nil:
			return err
		case v.Quantity == nil && v.Fraction <= 0:
			return errors.New("a minimum reclaim in percent must be positive")
		case v.Quantity != nil && v.Quantity.Sign() < 0:
			return errors.New("a minimum reclaim cannot be negative")
		}
		m[s] = &v
		return nil
	})
	return m
}

// parseValue parses a quantity or a percentage. The division is one of 32-bit floats, as
// the kubelet's is.
func parseValue(val string) (Value, error) {
	if !strings.HasSuffix(val, "%") {
		if exponent(val) > 99 {
			return Value{}, errors.New("an exponent beyond 99") // with which the parser computes for minutes
		}
		q, err := resource.ParseQuantity(val)
		if err != nil {
			return Value{}, fmt.Errorf("parse the quantity: %w", err)
		}
		return Value{Quantity: &q}, nil
	}
	f, err := strconv.ParseFloat(strings.TrimRight(val, "%"), 32)
	if err != nil {
		return Value{}, fmt.Errorf("parse the percentage: %w", err)
	}
	if f != f {
		return Value{}, errors.New("not a number")
	}
	return Value{Fraction: float32(f) / 100}, nil
}

// exponent is that of a number like 1e3 or 1e-3, without its sign; zero if there is none.
func exponent(val string) int {
	i := strings.LastIndexAny(val, "eE")
	if i < 0 {
		return 0
	}
	n, err := strconv.Atoi(val[i+1:])
	if errors.Is(err, strconv.ErrRange) {
		return math.MaxInt
	}
	return max(n, -n)
}
