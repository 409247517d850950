package webpage

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"strings"
)

// WriteSheet writes charts below each other as one SVG file, each with its title and key, on white. Charts with nothing
// to draw are left out; without any the sheet is an error.
func WriteSheet(w io.Writer, title string, charts ...*Chart) error {
	var b strings.Builder
	var width, height float64
	for _, c := range charts {
		if c.SVG() == "" {
			continue
		}
		var one bytes.Buffer
		if err := c.File(&one); err != nil {
			return err
		}
		rest, _ := strings.CutPrefix(one.String(), "<svg ")
		var size [2]float64
		if _, err := fmt.Sscanf(rest, `xmlns="http://www.w3.org/2000/svg" width="%f" height="%f"`, &size[0], &size[1]); err != nil {
			return err
		}
		fmt.Fprintf(&b, "<svg y=\"%s\" %s", Num(height), rest)
		width, height = max(width, size[0]), height+size[1]
	}
	if height == 0 {
		return fmt.Errorf("%s: nothing to draw", title)
	}
	_, err := fmt.Fprintf(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%s\" height=\"%s\" viewBox=\"0 0 %s %s\">\n<title>%s</title>\n%s</svg>\n",
		Num(width), Num(height), Num(width), Num(height), html.EscapeString(title), b.String())
	return err
}
