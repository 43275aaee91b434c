//go:build !weir_plain_tls

package tlsmemory

const compiledIn = true
