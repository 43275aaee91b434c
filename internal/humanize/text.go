package humanize

import "strings"

// Count formats a number with its noun in the singular or plural: "1 pod", "1,683 pods", "2
// processes". The noun's plural must be regular.
func Count[N ~int | ~int32 | ~int64 | ~uint64](n N, noun string) string {
	return Number(n) + " " + Plural(n, noun)
}

// Plural returns the plural of a noun, or the noun itself if n is 1.
func Plural[N ~int | ~int32 | ~int64 | ~uint64](n N, noun string) string {
	switch {
	case n == 1:
		return noun
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "x"), strings.HasSuffix(noun, "ch"):
		return noun + "es"
	case strings.HasSuffix(noun, "ry"):
		return strings.TrimSuffix(noun, "y") + "ies"
	}
	return noun + "s"
}

// IsAre returns "is" for 1, "are" for all other numbers.
func IsAre[N ~int | ~int32 | ~int64 | ~uint64](n N) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// HasHave returns "has" for 1, "have" for all other numbers.
func HasHave[N ~int | ~int32 | ~int64 | ~uint64](n N) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// List formats names with "and" before the last: "a", "a and b", "a, b and c". If there are more
// than most, it writes the first ones and counts the rest: "a, b and 3 more". A most of 0 means
// all.
func List(names []string, most int) string {
	if most > 0 && len(names) > most {
		return strings.Join(names[:most], ", ") + " and " + Number(len(names)-most) + " more"
	}
	return join(names, " and ")
}

// Or formats names with "or" before the last: "a, b or c".
func Or(names []string) string { return join(names, " or ") }

func join(names []string, last string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + last + names[len(names)-1]
}
