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

// Config are thresholds as KubeletConfiguration has them. There are no defaults: an absent map is
// empty.
type Config struct {
	EvictionHard            map[string]string `json:"evictionHard,omitempty"`
	EvictionSoft            map[string]string `json:"evictionSoft,omitempty"`
	EvictionSoftGracePeriod map[string]string `json:"evictionSoftGracePeriod,omitempty"`
	EvictionMinimumReclaim  map[string]string `json:"evictionMinimumReclaim,omitempty"`
	EnforceNodeAllocatable  []string          `json:"enforceNodeAllocatable,omitempty"`
	// Pressure are thresholds that the kubelet does not have: see ParsePressure.
	Pressure []string `json:"pressure,omitempty"`
}

// Parse returns the thresholds of a configuration, or one error that joins all mistakes.
func Parse(c *Config) ([]Threshold, error) {
	p := &configParser{}
	list := p.parseThresholds(c.EvictionHard)
	soft := p.parseThresholds(c.EvictionSoft)
	graces := p.parseGracePeriods(c.EvictionSoftGracePeriod)
	reclaims := p.parseMinReclaims(c.EvictionMinimumReclaim)
	for i := range soft {
		grace, ok := graces[soft[i].Signal]
		if !ok {
			p.addMistake("soft threshold %s has no grace period: give evictionSoftGracePeriod one for it", soft[i].Signal)
		}
		soft[i].Grace = grace
	}
	list = append(list, soft...)
	for i := range list {
		list[i].MinReclaim = reclaims[list[i].Signal]
	}
	if slices.Contains(c.EnforceNodeAllocatable, "pods") {
		// All pods together have a limit: evict before they reach it.
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

// configParser collects mistakes, so that Parse can report all of them, always in the same order.
type configParser struct{ mistakes []error }

func (p *configParser) addMistake(format string, args ...any) {
	p.mistakes = append(p.mistakes, fmt.Errorf(format, args...))
}

// eachSignal calls f for each statement, in the order of Signals. An unknown signal is a mistake.
func (p *configParser) eachSignal(statements map[string]string, f func(Signal, string) error) {
	for _, s := range Signals() {
		if val, ok := statements[string(s)]; ok {
			if err := f(s, val); err != nil {
				p.addMistake("%s %q: %w", s, val, err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(statements)) {
		if !slices.Contains(Signals(), Signal(name)) {
			p.addMistake("%q is no signal the kubelet knows", name)
		}
	}
}

func (p *configParser) parseThresholds(statements map[string]string) []Threshold {
	var list []Threshold
	p.eachSignal(statements, func(s Signal, val string) error {
		if val == "0%" || val == "100%" {
			return nil // means no threshold, as in the kubelet
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

func (p *configParser) parseGracePeriods(statements map[string]string) map[Signal]time.Duration {
	m := map[Signal]time.Duration{}
	p.eachSignal(statements, func(s Signal, val string) error {
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

func (p *configParser) parseMinReclaims(statements map[string]string) map[Signal]*Value {
	m := map[Signal]*Value{}
	p.eachSignal(statements, func(s Signal, val string) error {
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

// parseValue parses a quantity or a percentage. The division is of 32-bit floats, as in the
// kubelet.
func parseValue(val string) (Value, error) {
	if !strings.HasSuffix(val, "%") {
		if decimalExponent(val) > 99 {
			return Value{}, errors.New("an exponent beyond 99") // which would keep ParseQuantity busy for minutes
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

// decimalExponent returns the exponent of a number like 1e3 or 1e-3, without its sign; zero if
// there is none.
func decimalExponent(val string) int {
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
