// Package regions writes the parts of a document that programs measure. People write the rest of the same file, so
// that every sentence stands once. A region lies between two marks,
//
//	<!-- NAME: begin --> and <!-- NAME: end -->
//
// either inside a line, or as whole lines between marks that take a line each.
package regions

import (
	"fmt"
	"os"
	"strings"
)

// Fill returns a page with new texts of the regions that texts names, wherever they stand. The text of whole lines
// ends with a line break. It fails for a region that the page lacks, and for one inside a line that starts the line:
// Markdown takes such a line for HTML.
func Fill(page string, texts map[string]string) (string, error) {
	for name, text := range texts {
		var filled strings.Builder
		rest := page
		for places := 0; ; places++ {
			before, _, after, found := cut(rest, name)
			if !found {
				if places == 0 {
					return "", missing(name)
				}
				break
			}
			// Whole lines begin behind the mark's own.
			if head, inside := strings.CutSuffix(before, begin(name)); inside && (strings.HasSuffix(head, "\n") || head+filled.String() == "") {
				return "", fmt.Errorf("region %s starts a line that goes on: move it behind a word", name)
			}
			filled.WriteString(before + text)
			rest = after
		}
		page = filled.String() + rest
	}
	return page, nil
}

// Text returns the text of a region.
func Text(page, name string) (string, error) {
	_, text, _, found := cut(page, name)
	if !found {
		return "", missing(name)
	}
	return text, nil
}

// Write writes page, a copy of the file form with new texts of regions; they may be the same file. An empty page
// means standard output.
func Write(form, page string, texts map[string]string) error {
	text, err := os.ReadFile(form)
	if err != nil {
		return err
	}
	filled, err := Fill(string(text), texts)
	if err != nil {
		return fmt.Errorf("%s: %w", form, err)
	}
	if page == "" {
		_, err := os.Stdout.WriteString(filled)
		return err
	}
	return os.WriteFile(page, []byte(filled), 0o666)
}

func begin(name string) string { return "<!-- " + name + ": begin -->" }
func end(name string) string   { return "<!-- " + name + ": end -->" }

func missing(name string) error { return fmt.Errorf("no %q and %q behind it", begin(name), end(name)) }

// cut splits a page around the text of the first region of a name. The marks stay with what is around it.
func cut(page, name string) (before, text, after string, found bool) {
	at := strings.Index(page, begin(name))
	if at < 0 {
		return "", "", "", false
	}
	from := at + len(begin(name))
	if strings.HasPrefix(page[from:], "\n") {
		from++
	}
	n := strings.Index(page[from:], end(name))
	if n < 0 {
		return "", "", "", false
	}
	return page[:from], page[from : from+n], page[from+n:], true
}
