// Package page is what our HTML pages have in common: one style, for screens in
// the light and in the dark and for paper, charts as SVG, and how numbers are
// written. Pages stand for themselves: they load nothing.
package page

import (
	_ "embed"
	"html/template"
)

//go:embed page.css
var style string

// CSS is the style of a page and of its charts; a page's own rules follow it.
var CSS = template.CSS(style)
