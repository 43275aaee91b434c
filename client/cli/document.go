package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"

	"sigs.k8s.io/yaml"
)

// WriteDocument writes body for programs, as YAML if format is "yaml", else as JSON. It escapes
// control characters of terminals, because people read documents too.
func WriteDocument(w io.Writer, format string, body any) error {
	text, err := document(format, body)
	if err == nil {
		_, err = w.Write(text)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", format, err)
	}
	return nil
}

func document(format string, body any) ([]byte, error) {
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
