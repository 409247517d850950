package tiff

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"strata/pkg/dtype"
)

// OMEXML returns the OME-XML document (schema 2016-06) of a file whose pages are the planes of one image:
// depth fastest, then channels, then times. samples is the number of samples per pixel.
func OMEXML(im *Image, width, height, samples int, t dtype.Type) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" ` +
		`xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" ` +
		`xsi:schemaLocation="http://www.openmicroscopy.org/Schemas/OME/2016-06 http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd">`)
	objective := ""
	if im.Magnification > 0 {
		objective = `<ObjectiveSettings ID="Objective:0"/>`
		fmt.Fprintf(&b, `<Instrument ID="Instrument:0"><Objective ID="Objective:0" NominalMagnification="%s"/></Instrument>`, float(im.Magnification))
	}
	name := im.Name
	if name == "" {
		name = "image"
	}
	b.WriteString(`<Image ID="Image:0" Name="` + escape(name) + `">`)
	if objective != "" {
		b.WriteString(`<InstrumentRef ID="Instrument:0"/>` + objective)
	}
	fmt.Fprintf(&b, `<Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="%s" SizeX="%d" SizeY="%d" SizeZ="%d" SizeC="%d" SizeT="%d" Interleaved="%t" BigEndian="false"`,
		omeType(t), width, height, im.Depths, im.Channels*samples, im.Times, samples > 1)
	for i, axis := range "ZYX" {
		if um := im.VoxelUM[i]; um > 0 {
			fmt.Fprintf(&b, ` PhysicalSize%c="%s" PhysicalSize%cUnit="µm"`, axis, float(um), axis)
		}
	}
	if im.Interval > 0 {
		fmt.Fprintf(&b, ` TimeIncrement="%s" TimeIncrementUnit="s"`, float(im.Interval))
	}
	b.WriteString(">")
	for c := range im.Channels {
		fmt.Fprintf(&b, `<Channel ID="Channel:0:%d" SamplesPerPixel="%d"`, c, samples)
		if im.ChannelInfo != nil && samples == 1 {
			if info := im.ChannelInfo[c]; info.Name != "" {
				b.WriteString(` Name="` + escape(info.Name) + `"`)
			}
			if v, err := strconv.ParseUint(im.ChannelInfo[c].Color, 16, 24); err == nil {
				fmt.Fprintf(&b, ` Color="%d"`, int32(uint32(v)<<8|0xff))
			}
		}
		b.WriteString("/>")
	}
	fmt.Fprintf(&b, `<TiffData IFD="0" PlaneCount="%d"/></Pixels></Image></OME>`, im.Times*im.Channels*im.Depths)
	return b.String()
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
