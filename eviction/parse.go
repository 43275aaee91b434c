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

// ThresholdConfig has thresholds in the form of KubeletConfiguration. There are no defaults: an
// absent map is empty.
type ThresholdConfig struct {
	EvictionHard            map[string]string `json:"evictionHard,omitempty"`
	EvictionSoft            map[string]string `json:"evictionSoft,omitempty"`
	EvictionSoftGracePeriod map[string]string `json:"evictionSoftGracePeriod,omitempty"`
	EvictionMinimumReclaim  map[string]string `json:"evictionMinimumReclaim,omitempty"`
	EnforceNodeAllocatable  []string          `json:"enforceNodeAllocatable,omitempty"`
	// OwnSignals allows thresholds of OwnSignals, which the kubelet refuses.
	OwnSignals bool `json:"ownSignals,omitempty"`
	// Pressure has thresholds that the kubelet does not have: see ParsePressure.
	Pressure []string `json:"pressure,omitempty"`
}

// Parse returns the thresholds of a configuration, or one error that joins all mistakes, always in
// the same order.
func Parse(c *ThresholdConfig) ([]Threshold, error) {
	accepted := Signals()
	if c.OwnSignals {
		accepted = append(accepted, OwnSignals()...)
	}
	hard, mistakes := parseEach(accepted, c.EvictionHard, parseLimit)
	soft, wrong := parseEach(accepted, c.EvictionSoft, parseLimit)
	mistakes = append(mistakes, wrong...)
	graces, wrong := parseEach(accepted, c.EvictionSoftGracePeriod, parseGracePeriod)
	mistakes = append(mistakes, wrong...)
	reclaims, wrong := parseEach(accepted, c.EvictionMinimumReclaim, parseMinReclaim)
	mistakes = append(mistakes, wrong...)

	var list []Threshold
	for _, s := range accepted {
		if v := hard[s]; v != nil {
			list = append(list, Threshold{Signal: s, Value: *v, MinReclaim: reclaims[s]})
		}
	}
	for _, s := range accepted {
		v := soft[s]
		if v == nil {
			continue
		}
		grace, ok := graces[s]
		if !ok {
			mistakes = append(mistakes, fmt.Errorf("soft threshold %s has no grace period: add one to evictionSoftGracePeriod", s))
		}
		list = append(list, Threshold{Signal: s, Value: *v, Grace: grace, MinReclaim: reclaims[s]})
	}
	if slices.Contains(c.EnforceNodeAllocatable, "pods") {
		// All pods together have a limit, so pods must be evicted before they reach it.
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
			mistakes = append(mistakes, err)
		}
		list = append(list, t)
	}
	if len(mistakes) > 0 {
		return nil, errors.Join(mistakes...)
	}
	return list, nil
}

// parseEach parses the value of each of the accepted signals. Another signal is a mistake.
func parseEach[T any](accepted []Signal, statements map[string]string, parse func(string) (T, error)) (values map[Signal]T, mistakes []error) {
	values = map[Signal]T{}
	for _, s := range accepted {
		text, ok := statements[string(s)]
		if !ok {
			continue
		}
		value, err := parse(text)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s %q: %w", s, text, err))
			continue
		}
		values[s] = value
	}
	for _, name := range slices.Sorted(maps.Keys(statements)) {
		if !slices.Contains(accepted, Signal(name)) {
			mistakes = append(mistakes, fmt.Errorf("%q is not a signal of the kubelet", name))
		}
	}
	return values, mistakes
}

// parseLimit parses the value of a threshold. It returns nil if the value means that there is none.
func parseLimit(text string) (*ThresholdValue, error) {
	if text == "0%" || text == "100%" {
		return nil, nil // this means no threshold, as in the kubelet
	}
	v, err := parseValue(text)
	switch {
	case err != nil:
		return nil, err
	case v.Quantity == nil && v.Fraction < 0, v.Quantity == nil && v.Fraction > 1:
		return nil, errors.New("not between 0% and 100%")
	case v.Quantity != nil && v.Quantity.Sign() <= 0:
		return nil, errors.New("not positive")
	}
	return &v, nil
}

func parseGracePeriod(text string) (time.Duration, error) {
	grace, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("parse the grace period: %w", err)
	case grace < 0:
		return 0, errors.New("a grace period cannot be negative")
	}
	return grace, nil
}

func parseMinReclaim(text string) (*ThresholdValue, error) {
	v, err := parseValue(text)
	switch {
	case err != nil:
		return nil, err
	case v.Quantity == nil && v.Fraction <= 0:
		return nil, errors.New("a minimum reclaim in percent must be positive")
	case v.Quantity != nil && v.Quantity.Sign() < 0:
		return nil, errors.New("a minimum reclaim cannot be negative")
	}
	return &v, nil
}

// parseValue parses a quantity or a percentage. It divides 32-bit floats, as the kubelet does.
func parseValue(val string) (ThresholdValue, error) {
	if !strings.HasSuffix(val, "%") {
		if decimalExponent(val) > 99 {
			return ThresholdValue{}, errors.New("an exponent beyond 99") // ParseQuantity would need minutes for it
		}
		q, err := resource.ParseQuantity(val)
		if err != nil {
			return ThresholdValue{}, fmt.Errorf("parse the quantity: %w", err)
		}
		return ThresholdValue{Quantity: &q}, nil
	}
	f, err := strconv.ParseFloat(strings.TrimRight(val, "%"), 32)
	if err != nil {
		return ThresholdValue{}, fmt.Errorf("parse the percentage: %w", err)
	}
	if f != f {
		return ThresholdValue{}, errors.New("not a number")
	}
	return ThresholdValue{Fraction: float32(f) / 100}, nil
}

// decimalExponent returns the exponent of a number like 1e3 or 1e-3, without its sign. It returns
// zero if there is none.
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
