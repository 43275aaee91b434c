// Package ui opens the page in a browser, Chromium without a window, and checks
// the content of the document, the browser's messages, and that nothing is
// wider than the window. It stores pictures of the pages in bin/screenshots, and
// make pictures those of docs/page.md.
// make e2e builds the commands first.
package ui
