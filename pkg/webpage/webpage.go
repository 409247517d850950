// Package webpage holds the common parts of our HTML pages: one style, for light and dark screens and for paper;
// charts as SVG; and the formatting of numbers. Pages are self-contained and load nothing.
package webpage

import (
	_ "embed"
	"html/template"
)

//go:embed page.css
var style string

// CSS is the style of a page and of its charts; a page's own rules follow it.
var CSS = template.CSS(style)
