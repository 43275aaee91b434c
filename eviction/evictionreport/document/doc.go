// Package document is what there is to say of evictions on a node: the document that
// the API serves, and its text for people.
//
// Package report makes it. The two are apart so that who only reads it, as kubectl weir,
// does not carry along all that evicts.
package document
