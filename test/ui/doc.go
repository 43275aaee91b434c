// Package ui opens the page in a browser, Chromium without a window, and looks at
// what it made of it: what stands in the document, what it complained about,
// whether anything is wider than the window, and what it looks like, of which
// pictures are kept in bin/screenshots. make e2e builds the commands first.
package ui
