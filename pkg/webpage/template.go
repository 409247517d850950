package webpage

import (
	_ "embed"
	"html/template"
)

//go:embed head.html
var head string

// Template parses a page whose beginning, up to its body, is {{template "head" .}}: it shows the fields Tool, Version,
// Title and CSS.
func Template(text string, funcs template.FuncMap) *template.Template {
	return template.Must(template.Must(template.New("page").Funcs(funcs).Parse(text)).New("head").Parse(head)).Lookup("page")
}
