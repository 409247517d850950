package tiff

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"math"
	"strings"

	"strata/pkg/xmltext"
)

// Stage holds the position of a microscope's stage when an image was taken.
type Stage struct {
	YX   [2]float64 // µm
	From string     // what recorded it: "OME-XML", "Micro-Manager" or "MetaMorph"
}

// stage returns a position if both numbers are finite.
func stage(y, x float64, from string) *Stage {
	if math.IsInf(y-y+x-x, 0) || math.IsNaN(y-y+x-x) {
		return nil
	}
	return &Stage{[2]float64{y, x}, from}
}

// microscope takes the size of pixels and the stage's position from the private tags of Micro-Manager and MetaMorph,
// where they are not known otherwise. What cannot be read is left out.
func (f *File) microscope(ctx context.Context) {
	p := f.Pages[0]
	text := p.Description(ctx)
	described := strings.Contains(text[:min(len(text), 1<<10)], "<MetaData")
	if len(f.Images) == 0 || !p.private && !described {
		return
	}
	im := f.Images[0]
	var found metamorph
	if described {
		found = parseMetaMorph(text)
	}
	if d, err := f.readDirectory(ctx, p.offset, p.Name()); err == nil && p.private {
		found.tags(ctx, d)
		found.microManager(ctx, d)
	}
	if im.VoxelUM[1] <= 0 && im.VoxelUM[2] <= 0 || im.Kind == "pages" && found.y > 0 && found.x > 0 {
		im.VoxelUM[1], im.VoxelUM[2] = found.y, found.x
		if found.y > 0 {
			im.VoxelFrom = found.from
		}
	}
	if im.VoxelUM[0] <= 0 {
		im.VoxelUM[0] = found.z
	}
	if im.Stage == nil {
		im.Stage = found.stage
	}
}

// metamorph holds the values of MetaMorph's private tags.
type metamorph struct {
	z, y, x float64 // µm; 0: unknown
	from    string
	stage   *Stage
}

// parseMetaMorph reads the description that MetaMorph 7 writes: <MetaData> with <prop id="…" value="…"/> anywhere below
// it.
func parseMetaMorph(text string) (m metamorph) {
	d := xmltext.NewDecoder([]byte(text))
	d.Strict = false
	value := map[string]string{}
	for {
		t, err := d.Token()
		if err != nil {
			break
		}
		e, ok := t.(xml.StartElement)
		if !ok || e.Name.Local != "prop" {
			continue
		}
		var id, v string
		for _, a := range e.Attr {
			switch a.Name.Local {
			case "id":
				id = a.Value
			case "value":
				v = a.Value
			}
		}
		if _, twice := value[id]; !twice {
			value[id] = v
		}
	}
	per := micrometres(value["spatial-calibration-units"])
	m.x, m.y, m.from = positive(per*number(value["spatial-calibration-x"])), positive(per*number(value["spatial-calibration-y"])), fromMetaMorph
	if x, y := value["stage-position-x"], value["stage-position-y"]; x != "" && y != "" {
		m.stage = stage(number(y), number(x), fromMetaMorph)
	}
	return m
}

// The names of the metadata that record positions.
const (
	fromOME          = "OME-XML"
	fromMicroManager = "Micro-Manager"
	fromMetaMorph    = "MetaMorph"
)

// number parses a number; NaN: it is none.
func number(text string) float64 {
	var v float64
	if json.Unmarshal([]byte(strings.TrimSpace(text)), &v) != nil {
		return math.NaN()
	}
	return v
}

// microManager reads the JSON text of Micro-Manager's tag.
func (m *metamorph) microManager(ctx context.Context, d *directory) {
	b, err := d.text(ctx, tagMicroManager, mostPrivate)
	if err != nil || len(b) == 0 {
		return
	}
	var v struct {
		X     *float64 `json:"XPositionUm"`
		Y     *float64 `json:"YPositionUm"`
		Pixel float64  `json:"PixelSizeUm"`
	}
	if json.Unmarshal([]byte(strings.TrimRight(string(b), "\x00")), &v) != nil {
		return
	}
	if um := positive(v.Pixel); um > 0 && m.y == 0 {
		m.y, m.x, m.from = um, um, fromMicroManager
	}
	if v.X != nil && v.Y != nil && m.stage == nil {
		m.stage = stage(*v.Y, *v.X, fromMicroManager)
	}
}

// mostPrivate bounds the bytes of private tags that are read.
const mostPrivate = 16 << 20

// tags reads MetaMorph's tags (Universal Imaging, "STK image file format"): UIC1 has pairs of identifiers and values or
// their places, UIC2 six numbers per plane, UIC4 identifiers with their values behind them.
func (m *metamorph) tags(ctx context.Context, d *directory) {
	u32 := func(at int64, n int) []uint32 {
		b := make([]byte, 4*n)
		if at < 0 || d.f.blocks.read(ctx, b, at) != nil {
			return make([]uint32, n)
		}
		out := make([]uint32, n)
		for i := range out {
			out[i] = d.f.order.Uint32(b[4*i:])
		}
		return out
	}
	const sane = 1 << 12 // pairs: there are some fifty identifiers
	var y, x, per float64
	if v := d.fields[tagUIC1]; v.kind == 4 && v.count > 0 && v.count < sane && v.at+8*v.count <= d.f.blocks.src.Size() {
		for i := range v.count {
			switch e := u32(v.at+8*i, 2); e[0] {
			case 4, 5: // XCalibration, YCalibration
				r := u32(int64(e[1]), 2)
				um := positive(float64(r[0]) / float64(r[1]))
				if e[0] == 4 {
					x = um
				} else {
					y = um
				}
			case 6: // CalibrationUnits
				per = micrometres(d.uicText(ctx, int64(e[1])))
			}
		}
	}
	if x, y := positive(float64(x*per)), positive(float64(y*per)); x > 0 && y > 0 {
		m.x, m.y, m.from = x, y, fromMetaMorph
	}
	planes := int64(1)
	if v := d.fields[tagUIC2]; v.kind == 5 && v.count > 0 {
		planes = v.count
		if e := u32(v.at, 2); planes > 1 {
			m.z = positive(float64(e[0]) / float64(e[1]))
		}
	}
	if v := d.fields[tagUIC4]; v.kind == 4 && v.count > 0 && m.stage == nil {
		m.stage = d.uicStage(ctx, v.at, planes)
	}
}

// uicText reads a text that begins with its length.
func (d *directory) uicText(ctx context.Context, at int64) string {
	n := make([]byte, 4)
	if at <= 0 || d.f.blocks.read(ctx, n, at) != nil {
		return ""
	}
	b := make([]byte, min(d.f.order.Uint32(n), 64))
	if d.f.blocks.read(ctx, b, at+4) != nil {
		return ""
	}
	text, _, _ := strings.Cut(string(b), "\x00")
	return strings.ReplaceAll(text, "\xb5", "µ")
}

// uicStage looks for the stage's position of the first plane: identifier 28, with numerator and denominator of x and of
// y for each plane. Identifiers of known length may come before it.
func (d *directory) uicStage(ctx context.Context, at, planes int64) *Stage {
	for range 8 {
		b := make([]byte, 2)
		if d.f.blocks.read(ctx, b, at) != nil {
			return nil
		}
		at += 2
		switch d.f.order.Uint16(b) {
		case 28:
			v := make([]byte, 16)
			if d.f.blocks.read(ctx, v, at) != nil {
				return nil
			}
			part := func(i int) float64 {
				return float64(int32(d.f.order.Uint32(v[8*i:]))) / float64(int32(d.f.order.Uint32(v[8*i+4:])))
			}
			return stage(part(1), part(0), fromMetaMorph)
		case 29: // CameraChipOffset
			at += 16 * planes
		case 40: // AbsoluteZ
			at += 8 * planes
		case 41: // AbsoluteZValid
			at += 4 * planes
		default:
			return nil
		}
		if at > d.f.blocks.src.Size() {
			return nil
		}
	}
	return nil
}

// metaMorphStack finds the planes of a MetaMorph stack. The only directory describes the first plane; the samples of
// the others follow it.
func (f *File) metaMorphStack(ctx context.Context) bool {
	p := f.Pages[0]
	if len(f.Pages) != 1 || p.Err != nil || !p.private || p.Compression != compressionNone || p.Tiled || p.Separate {
		return false
	}
	d, err := f.readDirectory(ctx, p.offset, p.Name())
	if err != nil {
		return false
	}
	v := d.fields[tagUIC2]
	if v.kind != 5 || v.count < 2 || v.count > mostPlanes {
		return false
	}
	start, _, err := p.Segment(ctx, 0)
	if err != nil {
		return false
	}
	last, bytes, err := p.Segment(ctx, p.segments-1)
	each := last + bytes - start
	if err != nil || each < p.Packed(p.Height) || v.count > (f.blocks.src.Size()-start)/each {
		f.warn("MetaMorph's tags tell of %d planes, which do not lie in the file", v.count)
		return false
	}
	pages := []*Page{p}
	for i := int64(1); i < v.count; i++ {
		q := *p
		q.shift = i * each
		pages = append(pages, &q)
	}
	f.Images = append(f.Images, stack("metamorph", pages))
	return true
}
