package webpage

import (
	"fmt"
	"strings"
	"testing"
)

// linkAll returns a page with its places linked: to images that are called a and b, whatever folder they are in.
func linkAll(page string) string {
	return string(LinkSpots([]byte(page), func(s *Spot) string {
		for _, name := range []string{s.Image, s.Overlay} {
			if name != "" && name != "a" && name != `b "&' ü` {
				return ""
			}
		}
		return fmt.Sprintf("../#image=%s", s.Image[:1]) + s.Query()
	}))
}

// A marked text becomes a link to what is there, and all numbers arrive.
func TestSpot(t *testing.T) {
	volume := &Spot{Image: "a", At: [3]float64{7, Middle, Middle}, Panel: "xz"}
	join := &Spot{Image: "a", Overlay: `b "&' ü`, At: [3]float64{40.5, Middle, 3}, Lay: []float64{-0.25, 1, 2, 3, 4, 1e6, 6}, Width: 64, Or: volume}
	here := `<a class="view" href="../#image=a&amp;mode=checkerboard&amp;voxel=40.5,,3&amp;lay=-0.25,1,2,3,4,1000000,6&amp;width=64">0–1 &lt;</a>`
	if got := linkAll("<td>" + string(join.Mark("0–1 <")) + "</td>"); got != "<td>"+here+"</td>" {
		t.Errorf("a join: %s", got)
	}
	join.Overlay = "not there"
	there := `<a class="view" href="../#image=a&amp;mode=checkerboard&amp;voxel=7,,&amp;panel=xz">0–1</a>`
	if got := linkAll(string(join.Mark("0–1"))); got != there {
		t.Errorf("a join whose overlay is not there: %s", got)
	}
	volume.Image = "nor this"
	if page := string(join.Mark("0–1")); linkAll(page) != page {
		t.Errorf("a join without images: %s", linkAll(page))
	}
	if got := (*Spot)(nil).Mark("<b>"); got != "&lt;b&gt;" {
		t.Errorf("no place: %s", got)
	}
	spot := &Spot{Image: "a", At: [3]float64{1, 2, 3}}
	chart := &Chart{Title: "joins", Series: []Series{{Name: "overlap", Points: []Point{{X: 0, Y: 1, Tip: "<0>", Spot: spot, Bad: true}, {X: 1, Y: 2}}}}}
	if got := linkAll(string(chart.SVG())); strings.Count(got, `<a class="view" href="../#image=a&amp;mode=checkerboard&amp;voxel=1,2,3"><circle`) != 1 || strings.Count(got, "</a></g>") != 1 {
		t.Errorf("a chart: %s", got)
	}
}

// Marks that Mark does not write stay as they are, so that a page can bring nothing into a link.
func TestSpotHostile(t *testing.T) {
	for _, mark := range []string{
		`<span class="view">a</span>`,
		`<span class="view" data-image="">x</span>`,
		`<span class="view" data-image="c">x</span>`,
		`<span class="view" data-at="1,2,3">x</span>`,
		`<span class="view" data-image="a" data-at="1,2">x</span>`,
		`<span class="view" data-image="a" data-at="1,2,x">x</span>`,
		`<span class="view" data-image="a" data-at="1,2,1e99">x</span>`,
		`<span class="view" data-image="a" data-at="1,2,NaN">x</span>`,
		`<span class="view" data-image="a" data-at="1,2,3&amp;overlay=4">x</span>`,
		`<span class="view" data-image="a" data-lay="1,2,3,4,5,6">x</span>`,
		`<span class="view" data-image="a" data-lay="1,2,3,4,5,6,">x</span>`,
		`<span class="view" data-image="a" data-width="0">x</span>`,
		`<span class="view" data-image="a" data-width="-1">x</span>`,
		`<span class="view" data-image="a" data-panel="all&quot; onclick=&quot;x">x</span>`,
		`<span class="view" data-image="a" data-href="javascript:x">x</span>`,
		`<span class="view" data-image="a" data-or-at="1,2,3">x</span>`,
		`<span class="view" data-image="a" onclick="x">x</span>`,
		`<span class="view" data-image="a"onclick="x">x</span>`,
		`<span class="view" data-image='a'>x</span>`,
		`<span class="view" data-image="a"><img src=x onerror=y></span>`,
		`<span class="view" data-image="a>x</span>`,
		`<g class="view" data-image="a"><script>x</script></g>`,
		`<g class="view" data-image="a"><a href="javascript:x"><circle/></a></g>`,
	} {
		if got := linkAll(mark); got != mark {
			t.Errorf("%s becomes %s", mark, got)
		}
	}
}
