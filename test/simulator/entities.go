package simulator

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

var (
	namespaces = [...]string{"shop", "data", "payments", "search", "media"}
	apps       = [...]string{"web", "cart", "checkout", "catalogue", "invoice", "mailer", "search", "thumbs", "ledger", "orders", "stock", "feed", "login", "export", "quotes", "billing"}
	// containers names a pod's containers in order.
	containerNames = [...]string{"app", "proxy", "log-shipper", "metrics", "sync"}
)

// suffixAlphabet is the one Kubernetes draws name suffixes from: no vowels, so
// no words.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

func (k key) suffix(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteByte(suffixAlphabet[k.num(int64(i)).between("letter", 0, int64(len(suffixAlphabet)))])
	}
	return b.String()
}

// uid returns a random-looking version 4 UUID.
func (k key) uid() string {
	a, b := uint64(k.with("uid a")), uint64(k.with("uid b"))
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&0xffffffffffff)
}

// hash returns 32 hexadecimal digits, as the kubelet hashes a manifest.
func (k key) hash() string { return string(k.appendHash(make([]byte, 0, 32))) }

// id returns a container ID of 64 hexadecimal digits.
func (k key) id() string {
	return string(k.with("id b").appendHash(k.with("id a").appendHash(make([]byte, 0, 64))))
}

func (k key) appendHash(dst []byte) []byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(k.with("hash a")))
	binary.BigEndian.PutUint64(b[8:], uint64(k.with("hash b")))
	return hex.AppendEncode(dst, b[:])
}

func containerName(i int) string {
	if i < len(containerNames) {
		return containerNames[i]
	}
	return fmt.Sprintf("side-%d", i-len(containerNames)+1)
}

// owner is what a pod belongs to: its kind and name, and how its pods are named.
type owner struct{ kind, name string }

// nameOf returns the namespace, name and owner of the pth pod of a node:
// a DaemonSet's first, then a static pod's, then mostly Deployments', every
// fifth a StatefulSet's. attempt draws another suffix if the name is taken.
func nameOf(k key, node string, index, p, attempt int) (namespace, name string, of owner) {
	switch {
	case p == 0:
		return "kube-system", "node-agent-" + k.num(int64(attempt)).suffix(5), owner{"DaemonSet", "node-agent"}
	case p == 1:
		return "kube-system", "kube-proxy-" + node, owner{"Node", node}
	}
	app := apps[(p*7+index)%len(apps)]
	namespace = namespaces[(p*3+index/len(apps))%len(namespaces)]
	if p%5 == 4 {
		// The ordinal is unique: the slot names the set, the node the ordinal.
		set := fmt.Sprintf("%s-store-%d", apps[p%len(apps)], p/5)
		return namespaces[p%len(namespaces)], fmt.Sprintf("%s-%d", set, index), owner{"StatefulSet", set}
	}
	replicaSet := app + "-" + key(0).with(namespace).with(app).suffix(10)
	return namespace, replicaSet + "-" + k.num(int64(attempt)).suffix(5), owner{"ReplicaSet", replicaSet}
}
