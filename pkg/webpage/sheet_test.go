package webpage

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"
)

// A sheet is well formed, as high as its charts together, and leaves out those with nothing to draw.
func TestWriteSheet(t *testing.T) {
	chart := func(title string, y float64) *Chart {
		return &Chart{Title: title, Series: []Series{{Name: "a", Points: []Point{{X: 1, Y: y}}}, {Name: "b", Points: []Point{{X: 2, Y: y}}}}}
	}
	var one, b bytes.Buffer
	if err := WriteSheet(&one, "one", chart("first", 1)); err != nil {
		t.Fatal(err)
	}
	if err := WriteSheet(&b, "a < b", chart("first", 1), chart("nothing", math.NaN()), chart("second", 2)); err != nil {
		t.Fatal(err)
	}
	var heights []string
	for d := xml.NewDecoder(&b); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "svg" {
			for _, a := range e.Attr {
				if a.Name.Local == "height" {
					heights = append(heights, a.Value)
				}
			}
		}
	}
	if len(heights) != 5 || heights[0] == heights[1] || heights[1] != heights[3] { // each chart is a file around a drawing
		t.Errorf("heights %v", heights)
	}
	if !strings.Contains(one.String(), `height="`+heights[1]+`" viewBox`) {
		t.Errorf("a sheet of one chart is not as high as its chart, %s", heights[1])
	}
	if err := WriteSheet(&b, "empty", chart("nothing", math.NaN())); err == nil {
		t.Error("no error for a sheet of nothing")
	}
}
