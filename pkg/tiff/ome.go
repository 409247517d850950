package tiff

import (
	"context"
	"encoding/xml"
	"fmt"
	"math"
	"path"
	"strings"

	"strata/pkg/xmltext"
)

// omeXML holds the parts of an OME-XML document that this package reads.
type omeXML struct {
	XMLName    xml.Name `xml:"OME"`
	BinaryOnly *struct {
		MetadataFile string `xml:"MetadataFile,attr"`
	} `xml:"BinaryOnly"`
	Instruments []struct {
		Objectives []struct {
			ID                   string  `xml:"ID,attr"`
			NominalMagnification float64 `xml:"NominalMagnification,attr"`
		} `xml:"Objective"`
	} `xml:"Instrument"`
	Images []struct {
		Name      string `xml:"Name,attr"`
		Objective struct {
			ID string `xml:"ID,attr"`
		} `xml:"ObjectiveSettings"`
		Pixels omePixels `xml:"Pixels"`
		Label  *struct {
			X     *float64 `xml:"X,attr"`
			Y     *float64 `xml:"Y,attr"`
			XUnit *string  `xml:"XUnit,attr"`
			YUnit *string  `xml:"YUnit,attr"`
		} `xml:"StageLabel"`
	} `xml:"Image"`
}

type omePixels struct {
	Order     string  `xml:"DimensionOrder,attr"`
	X         int     `xml:"SizeX,attr"`
	Y         int     `xml:"SizeY,attr"`
	Z         int     `xml:"SizeZ,attr"`
	C         int     `xml:"SizeC,attr"`
	T         int     `xml:"SizeT,attr"`
	XUM       float64 `xml:"PhysicalSizeX,attr"`
	YUM       float64 `xml:"PhysicalSizeY,attr"`
	ZUM       float64 `xml:"PhysicalSizeZ,attr"`
	XUnit     *string `xml:"PhysicalSizeXUnit,attr"`
	YUnit     *string `xml:"PhysicalSizeYUnit,attr"`
	ZUnit     *string `xml:"PhysicalSizeZUnit,attr"`
	Increment float64 `xml:"TimeIncrement,attr"`
	Channels  []struct {
		Name    string `xml:"Name,attr"`
		Color   *int64 `xml:"Color,attr"`
		Samples int    `xml:"SamplesPerPixel,attr"`
	} `xml:"Channel"`
	Data   []omeData  `xml:"TiffData"`
	Planes []omePlane `xml:"Plane"`
}

// omePlane holds where the stage stood.
type omePlane struct {
	X     *float64 `xml:"PositionX,attr"`
	Y     *float64 `xml:"PositionY,attr"`
	XUnit *string  `xml:"PositionXUnit,attr"`
	YUnit *string  `xml:"PositionYUnit,attr"`
}

// stage returns the position of the first plane that has one. A position without a unit, or in the schema's default
// unit "reference frame", is taken as µm, since microscopes mean it so.
func (px *omePixels) stage() *Stage {
	for _, p := range px.Planes {
		if p.X != nil && p.Y != nil {
			return stage(positionUM(*p.Y, p.YUnit), positionUM(*p.X, p.XUnit), fromOME)
		}
	}
	return nil
}

// positionUM returns a position in µm, or NaN if the unit is no length.
func positionUM(x float64, unit *string) float64 {
	if unit == nil || *unit == "" || *unit == "reference frame" {
		return x
	}
	if per := micrometres(*unit); per > 0 {
		return x * per
	}
	return math.NaN()
}

// omeData maps pages, beginning with IFD, to planes.
type omeData struct {
	IFD   *int `xml:"IFD,attr"`
	Z     int  `xml:"FirstZ,attr"`
	C     int  `xml:"FirstC,attr"`
	T     int  `xml:"FirstT,attr"`
	Count *int `xml:"PlaneCount,attr"`
	Old   *int `xml:"NumPlanes,attr"` // PlaneCount, in schemas before 2010
	UUID  *struct {
		FileName string `xml:"FileName,attr"`
	} `xml:"UUID"`
}

// omeImages finds the images that OME-XML in the first page's description describes. It ignores unusable
// metadata with a warning, since the pages can still be read.
func (f *File) omeImages(ctx context.Context, o *opener) (bool, error) {
	text := f.Pages[0].Description(ctx)
	if !strings.Contains(text[:min(len(text), 1<<12)], "<OME") {
		return false, nil
	}
	doc, err := parseOME([]byte(text))
	if err == nil && doc.BinaryOnly != nil {
		doc, err = f.companion(ctx, o, doc.BinaryOnly.MetadataFile)
	}
	if err != nil {
		f.warn("OME-XML is left out: %v", err)
		return false, ctx.Err()
	}
	set := &omeFiles{f: f, o: o, open: map[string]*File{}, only: doc.onlyFile()}
	magnification := map[string]float64{}
	for _, i := range doc.Instruments {
		for _, ob := range i.Objectives {
			magnification[ob.ID] = positive(ob.NominalMagnification)
		}
	}
	for i := range doc.Images {
		im, err := set.image(ctx, &doc.Images[i].Pixels)
		if err != nil {
			f.warn("OME-XML: image %d is left out: %v", i, err)
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			continue
		}
		im.Name, im.Magnification = doc.Images[i].Name, magnification[doc.Images[i].Objective.ID]
		im.Stage = doc.Images[i].Pixels.stage()
		if l := doc.Images[i].Label; im.Stage == nil && l != nil && l.X != nil && l.Y != nil {
			im.Stage = stage(positionUM(*l.Y, l.YUnit), positionUM(*l.X, l.XUnit), fromOME)
		}
		f.Images = append(f.Images, im)
	}
	return len(f.Images) > 0, nil
}

// parseOME parses a document.
func parseOME(text []byte) (*omeXML, error) {
	doc := new(omeXML)
	if err := xmltext.Decode(text, doc); err != nil {
		return nil, err
	}
	return doc, nil
}

// onlyFile returns the name of the file that a document is about, "" if there are several.
func (doc *omeXML) onlyFile() string {
	only := ""
	for i := range doc.Images {
		for _, d := range doc.Images[i].Pixels.Data {
			switch {
			case d.UUID == nil || d.UUID.FileName == only:
			case only != "":
				return ""
			default:
				only = d.UUID.FileName
			}
		}
	}
	return only
}

// companion reads the file that holds the OME-XML of several files.
func (f *File) companion(ctx context.Context, o *opener, name string) (*omeXML, error) {
	src, err := o.open(ctx, name)
	if err != nil {
		return nil, err
	}
	if src.Size() > mostText {
		return nil, fmt.Errorf("%s: %d bytes of OME-XML, at most %d are read", name, src.Size(), mostText)
	}
	b := make([]byte, src.Size())
	if err := readFull(ctx, src, b, 0); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !IsTIFF(b) {
		return parseOME(b)
	}
	other, err := openPages(ctx, src, name)
	if err != nil {
		return nil, err
	}
	return parseOME([]byte(other.Pages[0].Description(ctx)))
}

// open opens another file of the same folder.
func (o *opener) open(ctx context.Context, name string) (Source, error) {
	if o.sibling == nil || name == "" || name != path.Base(name) || strings.Contains(name, `\`) || name == ".." || name == "." {
		return nil, fmt.Errorf("%q cannot be opened from here", name)
	}
	return o.sibling(ctx, name)
}

// omeFiles holds the files of a set, opened on demand.
type omeFiles struct {
	f    *File
	o    *opener
	open map[string]*File
	only string // the name that this file had when it was written, whatever it is now
}

// mostSiblings is the maximum number of other files of an image that are kept open.
const mostSiblings = 4096

// file returns the file of a name; nil: it is not there.
func (s *omeFiles) file(ctx context.Context, name string) *File {
	if name == "" || name == s.only || name == path.Base(strings.ReplaceAll(s.f.Name, `\`, "/")) {
		return s.f
	}
	if f, ok := s.open[name]; ok {
		return f
	}
	if len(s.open) >= mostSiblings {
		return nil
	}
	var f *File
	src, err := s.o.open(ctx, name)
	if err == nil {
		f, err = openPages(ctx, src, path.Join(path.Dir(s.f.Name), name))
	}
	if err != nil {
		s.f.warn("OME-XML names %q, whose planes are left out: %v", name, err)
	} else {
		s.f.Warnings = append(s.f.Warnings, f.Warnings...)
	}
	s.open[name] = f
	return f
}

// image puts the pages of an image in order.
func (s *omeFiles) image(ctx context.Context, px *omePixels) (*Image, error) {
	im := &Image{Kind: "ome", Times: px.T, Channels: px.C, Depths: px.Z, Interval: positive(px.Increment)}
	samples := 1
	if len(px.Channels) > 0 && px.Channels[0].Samples > 1 {
		samples = px.Channels[0].Samples
	}
	if px.T < 1 || px.C < 1 || px.Z < 1 || px.C%samples != 0 || px.T > mostPlanes || px.C > mostPlanes || px.Z > mostPlanes ||
		px.T*px.C > mostPlanes || px.T*px.C*px.Z > mostPlanes {
		return nil, fmt.Errorf("%d × %d × %d planes of %d samples (times, channels, depths)", px.T, px.C, px.Z, samples)
	}
	im.Channels /= samples
	planes, err := s.planes(ctx, px, im)
	if err != nil {
		return nil, err
	}
	im.Levels = []Level{{Pages: planes}}
	l := im.Levels[0].Layout()
	if l == nil {
		return nil, fmt.Errorf("none of its %d planes is there", len(planes))
	}
	if l.Samples != samples || l.Width != px.X || l.Height != px.Y {
		return nil, fmt.Errorf("%d × %d pixels of %d samples, its pages have %d × %d of %d", px.X, px.Y, samples, l.Width, l.Height, l.Samples)
	}
	im.subLevels()
	for _, c := range px.Channels {
		info := Channel{Name: c.Name}
		if c.Color != nil { // red is in the highest byte, alpha in the lowest
			info.Color = fmt.Sprintf("%06X", uint32(*c.Color)>>8)
		}
		for range max(c.Samples, 1) {
			im.ChannelInfo = append(im.ChannelInfo, info)
		}
	}
	if len(im.ChannelInfo) != px.C {
		im.ChannelInfo = nil
	}
	im.VoxelUM = [3]float64{unitUM(px.ZUM, px.ZUnit), unitUM(px.YUM, px.YUnit), unitUM(px.XUM, px.XUnit)}
	return im, nil
}

// planes finds the page of each plane.
func (s *omeFiles) planes(ctx context.Context, px *omePixels, im *Image) ([]*Page, error) {
	order := px.Order
	switch order {
	case "XYZCT", "XYZTC", "XYCZT", "XYCTZ", "XYTZC", "XYTCZ":
	default:
		order = "XYZCT"
	}
	size := map[byte]int{'Z': im.Depths, 'C': im.Channels, 'T': im.Times}
	total := im.Depths * im.Channels * im.Times
	samples := px.C / im.Channels
	planes := make([]*Page, total)
	var layout *Layout
	put := func(number int, p *Page) error { // number counts planes in the order of the document
		at := map[byte]int{}
		for _, axis := range []byte(order[2:]) {
			at[axis] = number % size[axis]
			number /= size[axis]
		}
		if layout == nil {
			layout = p.Layout
		}
		switch {
		case p.Err != nil:
			return p.Err
		case *p.Layout != *layout:
			return fmt.Errorf("%s has %d × %d pixels of %s, stored otherwise than those of the first plane", p.Name(), p.Width, p.Height, p.Type)
		}
		planes[(at['T']*im.Channels+at['C'])*im.Depths+at['Z']] = p
		return nil
	}
	if len(px.Data) == 0 {
		for i := range min(total, len(s.f.Pages)) {
			if err := put(i, s.f.Pages[i]); err != nil {
				return nil, err
			}
		}
	}
	for _, d := range px.Data {
		name := ""
		if d.UUID != nil {
			name = d.UUID.FileName
		}
		f := s.file(ctx, name)
		if f == nil {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			continue
		}
		first := map[byte]int{'Z': d.Z, 'C': d.C / samples, 'T': d.T}
		number, step := 0, 1
		for _, axis := range []byte(order[2:]) {
			if first[axis] < 0 || first[axis] >= size[axis] {
				return nil, fmt.Errorf("TiffData begins at plane %d along %c (there are %d)", first[axis], axis, size[axis])
			}
			number += first[axis] * step
			step *= size[axis]
		}
		ifd, count := 0, len(f.Pages)
		if d.IFD != nil {
			ifd, count = *d.IFD, 1
		}
		switch {
		case d.Count != nil:
			count = *d.Count
		case d.Old != nil:
			count = *d.Old
		}
		if ifd < 0 || count < 0 || ifd > len(f.Pages) || d.IFD != nil && ifd == len(f.Pages) && count > 0 {
			return nil, fmt.Errorf("TiffData names IFD %d of a file of %d", ifd, len(f.Pages))
		}
		for i := range min(count, len(f.Pages)-ifd, total-number) {
			if err := put(number+i, f.Pages[ifd+i]); err != nil {
				return nil, err
			}
		}
	}
	return planes, nil
}

// unitUM returns a physical size in µm; without a unit it is in µm.
func unitUM(x float64, unit *string) float64 {
	if unit == nil {
		return positive(x)
	}
	return positive(x * micrometres(*unit))
}

// micrometres returns the length of a unit in µm, or 0 if the unit is no length. It knows OME's symbols (UnitsLength)
// and the names that ImageJ writes.
func micrometres(unit string) float64 {
	return map[string]float64{
		"µm": 1, "μm": 1, "um": 1, "micron": 1, "microns": 1, "micrometer": 1, "nm": 1e-3, "nanometer": 1e-3, "pm": 1e-6, "Å": 1e-4, "mm": 1e3, "millimeter": 1e3,
		"cm": 1e4, "centimeter": 1e4, "dm": 1e5, "m": 1e6, "meter": 1e6, "km": 1e9, "in": 25400, "inch": 25400, "ft": 304800, "yd": 914400,
	}[strings.TrimSpace(unit)]
}
