package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"sigs.k8s.io/yaml"
)

// The formats of --output that have an argument after the name, as kubectl's have.
const (
	jsonPath = "jsonpath="
	// CustomColumns is for commands that print lists.
	CustomColumns = "custom-columns="
)

// Output returns an error unless value is a format of --output: one of formats, "json", "yaml" or
// "jsonpath=TEMPLATE"; with "custom-columns=" in formats also "custom-columns=TITLE:PATH,...".
// formats may have "" for the default.
func Output(value string, formats ...string) error {
	format, argument, ok := strings.Cut(value, "=")
	var err error
	switch {
	case ok && format+"=" == jsonPath:
		_, err = parseJSONPath(argument)
	case ok && format+"=" == CustomColumns && slices.Contains(formats, CustomColumns):
		_, err = parseColumns(argument)
	default:
		return OneOf("--output", value, append(slices.Clone(formats), "json", "yaml", jsonPath)...)
	}
	if err != nil {
		return Usage(fmt.Errorf("--output %s: %w", value, err))
	}
	return nil
}

// WriteDocument writes body for programs, in a format that Output accepts: as YAML, as its template
// of JSONPath or its columns define, else as JSON. It escapes control characters of terminals, because
// people read documents too.
func WriteDocument(w io.Writer, format string, body any) error {
	text, err := document(format, body)
	if err == nil {
		_, err = w.Write(text)
	}
	if err != nil {
		name, _, _ := strings.Cut(format, "=")
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func document(format string, body any) ([]byte, error) {
	if template, ok := strings.CutPrefix(format, jsonPath); ok {
		return fillTemplate(template, body)
	}
	if columns, ok := strings.CutPrefix(format, CustomColumns); ok {
		return fillColumns(columns, body)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(body); err != nil {
		return nil, err
	}
	if format == "yaml" {
		// JSONToYAML does not understand surrogate pairs and does not read control characters.
		return yaml.JSONToYAML(escaped(out.Bytes(), 0xffff))
	}
	return escaped(out.Bytes(), unicode.MaxRune), nil
}

// escaped escapes the characters of JSON, up to last, that are not printable. They occur only in
// strings: between strings the encoder writes no such character except line ends.
func escaped(text []byte, last rune) []byte {
	unsafe := func(r rune) bool { return r != '\n' && r <= last && !unicode.IsPrint(r) }
	if bytes.IndexFunc(text, unsafe) < 0 {
		return text
	}
	safe := make([]byte, 0, len(text)+64)
	for _, r := range string(text) {
		switch {
		case !unsafe(r):
			safe = append(safe, string(r)...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			safe = fmt.Appendf(safe, `\u%04x\u%04x`, high, low)
		default:
			safe = fmt.Appendf(safe, `\u%04x`, r)
		}
	}
	return safe
}
