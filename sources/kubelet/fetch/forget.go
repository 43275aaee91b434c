package fetch

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"reflect"
	"unsafe"
)

// forget takes from a connection what only its handshake needed, and crypto/tls keeps: the
// certificates that the server showed, parsed, the messages they came in, and a
// configuration that differs from the shared one in the server's name. That is more
// than half of what a connection takes up whose buffer is lent. Nobody asks for the state of c from here on, no session is resumed
// and nothing is negotiated anew, which is all they would serve.
func forget(c *tls.Conn, shared *tls.Config) {
	if hand := field[bytes.Buffer](c, "hand"); hand != nil && hand.Len() == 0 {
		*hand = bytes.Buffer{}
	}
	if shown := field[[]*x509.Certificate](c, "peerCertificates"); shown != nil {
		*shown = nil
	}
	if chains := field[[][]*x509.Certificate](c, "verifiedChains"); chains != nil {
		*chains = nil
	}
	if config := field[*tls.Config](c, "config"); config != nil {
		*config = shared
	}
}

// field returns where a tls.Conn keeps the field of that name; nil if it has none of type T.
func field[T any](c *tls.Conn, name string) *T {
	f := reflect.ValueOf(c).Elem().FieldByName(name)
	if !f.IsValid() || f.Type() != reflect.TypeFor[T]() {
		return nil
	}
	return (*T)(unsafe.Pointer(f.UnsafeAddr()))
}
