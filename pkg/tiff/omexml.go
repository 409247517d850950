package tiff

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"strata/pkg/dtype"
)

// OMEImage is an image whose planes are pages of a file that follow one another: depth fastest, then channels, then
// times.
type OMEImage struct {
	*Image
	Width, Height int
	Samples       int // per pixel
	Type          dtype.Type
}

// OMEXML returns the OME-XML document (schema 2016-06) of a file whose pages are the planes of images, one image after
// the other.
func OMEXML(images ...OMEImage) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" ` +
		`xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" ` +
		`xsi:schemaLocation="http://www.openmicroscopy.org/Schemas/OME/2016-06 http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd">`)
	for i, im := range images { // all instruments come first
		if im.Magnification > 0 {
			fmt.Fprintf(&b, `<Instrument ID="Instrument:%d"><Objective ID="Objective:%d" NominalMagnification="%s"/></Instrument>`, i, i, float(im.Magnification))
		}
	}
	page := 0
	for i, im := range images {
		im.write(&b, i, page)
		page += im.Times * im.Channels * im.Depths
	}
	b.WriteString("</OME>")
	return b.String()
}

// write writes the element of image number i, whose first plane is a page.
func (im *OMEImage) write(b *strings.Builder, i, page int) {
	name := im.Name
	if name == "" {
		name = "image"
	}
	fmt.Fprintf(b, `<Image ID="Image:%d" Name="%s">`, i, escape(name))
	if im.Magnification > 0 {
		fmt.Fprintf(b, `<InstrumentRef ID="Instrument:%d"/><ObjectiveSettings ID="Objective:%d"/>`, i, i)
	}
	fmt.Fprintf(b, `<Pixels ID="Pixels:%d" DimensionOrder="XYZCT" Type="%s" SizeX="%d" SizeY="%d" SizeZ="%d" SizeC="%d" SizeT="%d" Interleaved="%t" BigEndian="false"`,
		i, omeType(im.Type), im.Width, im.Height, im.Depths, im.Channels*im.Samples, im.Times, im.Samples > 1)
	for k, axis := range "ZYX" {
		if um := im.VoxelUM[k]; um > 0 {
			fmt.Fprintf(b, ` PhysicalSize%c="%s" PhysicalSize%cUnit="µm"`, axis, float(um), axis)
		}
	}
	if im.Interval > 0 {
		fmt.Fprintf(b, ` TimeIncrement="%s" TimeIncrementUnit="s"`, float(im.Interval))
	}
	b.WriteString(">")
	for c := range im.Channels {
		fmt.Fprintf(b, `<Channel ID="Channel:%d:%d" SamplesPerPixel="%d"`, i, c, im.Samples)
		if im.ChannelInfo != nil && im.Samples == 1 {
			if info := im.ChannelInfo[c]; info.Name != "" {
				b.WriteString(` Name="` + escape(info.Name) + `"`)
			}
			if v, err := strconv.ParseUint(im.ChannelInfo[c].Color, 16, 24); err == nil {
				fmt.Fprintf(b, ` Color="%d"`, int32(uint32(v)<<8|0xff))
			}
		}
		b.WriteString("/>")
	}
	fmt.Fprintf(b, `<TiffData IFD="%d" PlaneCount="%d"/></Pixels></Image>`, page, im.Times*im.Channels*im.Depths)
}

func float(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a builder does not fail
	return b.String()
}

// omeType returns OME's name of an element type.
func omeType(t dtype.Type) string {
	switch t {
	case dtype.Float32:
		return "float"
	case dtype.Float64:
		return "double"
	}
	return t.String()
}

// OMEHolds reports whether OME-XML can name an element type.
func OMEHolds(t dtype.Type) bool {
	switch t {
	case dtype.Int8, dtype.Int16, dtype.Int32, dtype.Uint8, dtype.Uint16, dtype.Uint32, dtype.Float32, dtype.Float64:
		return true
	}
	return false
}
