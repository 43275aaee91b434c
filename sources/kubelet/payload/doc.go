// Package payload has the code that the parsers of a kubelet's payloads share. Each endpoint has its
// own package next to this one, which turns bytes into samples and does no I/O.
//
//	request.go   Request: the read that a payload belongs to; it adds samples and values
//	scanner.go   Scanner: the lines of the Prometheus text format; labels.go their labels
//	number.go    Number: a decimal number without rounding; digits.go eight digits at a time
//	namecache.go NameCache: what raw bytes mean, so that an unchanged payload allocates nothing
//	errors.go    errors with the line, the offset and an excerpt
package payload
