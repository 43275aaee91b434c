// Package topcmd is the "top" command of weir and of kubectl's plugin: who uses how
// much, as a table for people or a document for programs. Both commands differ
// only in how they find a weir to ask.
//
// A number that is missing is shown as "-"; the wide table and the documents
// say why it is missing.
package topcmd
