// Package tlsmemory frees memory that an idle client connection of crypto/tls keeps and never uses
// again. crypto/tls has no option for this, so the package changes private fields of tls.Conn with
// reflection and unsafe.
//
// BenchmarkCost of sources/kubelet (heap-kB/conn) measures the benefit: a node that is read over an
// idle connection keeps 13 kB of heap with this package and 54 kB without it. At 5,000 nodes the
// difference is 205 MB, and the heap may grow to twice as much before the garbage collector runs.
//
// The package is off if the build tag weir_plain_tls is set, if the Go version is not one of
// testedVersions, or if a field does not have the expected name and type. Then every method does
// nothing and connections keep their memory; nothing else changes.
package tlsmemory

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"unsafe"
)

// testedVersions are the Go releases with which the tests of this package have passed.
// When Go is upgraded, run the tests and add the release.
var testedVersions = []string{"go1.26"}

// Enabled reports whether this build frees memory of connections.
func Enabled() bool { return compiledIn && isTested(runtime.Version()) }

// isTested reports whether version, such as "go1.26.3", belongs to a tested release.
func isTested(version string) bool {
	return slices.ContainsFunc(testedVersions, func(release string) bool {
		rest, ok := strings.CutPrefix(version, release)
		return ok && (rest == "" || rest[0] == '.')
	})
}

// Buffer is the read buffer of one connection. The zero Buffer belongs to no connection
// and does nothing.
//
// A tls.Conn never frees the buffer that it reads records into: about 32 kB, which are empty
// between two requests. GiveMemory gives it memory while an answer is read; TakeBack takes the
// memory for the next connection. Call them only while no goroutine reads from the connection.
type Buffer struct {
	records *bytes.Buffer // encrypted records as received
	plain   *bytes.Reader // decrypted bytes of the first record, in the memory of records
}

// BufferOf returns the read buffer of c, or the zero Buffer if this package is off.
func BufferOf(c *tls.Conn) Buffer {
	if !Enabled() {
		return Buffer{}
	}
	b := Buffer{records: field[bytes.Buffer](c, "rawInput"), plain: field[bytes.Reader](c, "input")}
	if b.records == nil || b.plain == nil {
		return Buffer{}
	}
	return b
}

// CanGiveMemory reports whether the connection accepts memory: its fields were found, and it has no
// unread bytes.
func (b Buffer) CanGiveMemory() bool { return b.records != nil && b.IsEmpty() }

// GiveMemory makes the connection read records into memory. Call it only if CanGiveMemory is true.
func (b Buffer) GiveMemory(memory []byte) { *b.records = *bytes.NewBuffer(memory[:0]) }

// IsEmpty reports whether everything that arrived has been read. It is true for the zero
// Buffer.
func (b Buffer) IsEmpty() bool {
	return b.records == nil || b.records.Len() == 0 && b.plain.Len() == 0
}

// TakeBack takes the memory from the connection: the memory that was given, or a larger one that
// replaced it. It returns nil for the zero Buffer. Call it only if IsEmpty is true.
func (b Buffer) TakeBack() []byte {
	if b.records == nil {
		return nil
	}
	b.records.Reset()
	memory := b.records.AvailableBuffer()
	*b.records, *b.plain = bytes.Buffer{}, bytes.Reader{}
	return memory
}

// FreeHandshake frees what only the handshake of c needed: the parsed certificates of the server,
// the messages that carried them, and the connection's copy of the configuration, which shared
// replaces. Afterwards sessions must not be resumed or renegotiated, and ConnectionState has no
// certificates.
func FreeHandshake(c *tls.Conn, shared *tls.Config) {
	if !Enabled() {
		return
	}
	if hand := field[bytes.Buffer](c, "hand"); hand != nil && hand.Len() == 0 {
		*hand = bytes.Buffer{}
	}
	if certificates := field[[]*x509.Certificate](c, "peerCertificates"); certificates != nil {
		*certificates = nil
	}
	if chains := field[[][]*x509.Certificate](c, "verifiedChains"); chains != nil {
		*chains = nil
	}
	if config := field[*tls.Config](c, "config"); config != nil {
		*config = shared
	}
}

// field returns the address of the field with that name in c, or nil if c has no such field of type
// T.
func field[T any](c *tls.Conn, name string) *T {
	f := reflect.ValueOf(c).Elem().FieldByName(name)
	if !f.IsValid() || f.Type() != reflect.TypeFor[T]() {
		return nil
	}
	return (*T)(unsafe.Pointer(f.UnsafeAddr()))
}
