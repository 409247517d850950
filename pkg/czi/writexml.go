package czi

import (
	"encoding/xml"
	"fmt"
	"image"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// imageSize collects the size of the whole image from its tiles.
type imageSize struct {
	rect            image.Rectangle
	z, t, scenes, m int
	channels        map[int]PixelType
}

func (s *imageSize) add(t *Tile) {
	s.z, s.t, s.scenes = max(s.z, t.Z+1), max(s.t, t.T+1), max(s.scenes, t.Scene+1)
	if t.Factor == 1 {
		s.m = max(s.m, t.M+1)
		s.rect = s.rect.Union(image.Rect(t.X, t.Y, t.X+t.Width, t.Y+t.Height))
		if _, ok := s.channels[t.C]; !ok {
			s.channels[t.C] = t.Pixels
		}
	}
}

// xml returns the metadata document of an image.
func (m *Metadata) xml(size *imageSize) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p(`<?xml version="1.0" encoding="UTF-8"?><ImageDocument><Metadata><Information>`)
	if m.Name != "" {
		p(`<Document><Name>%s</Name></Document>`, escape(m.Name))
	}
	p(`<Image><SizeX>%d</SizeX><SizeY>%d</SizeY><SizeC>%d</SizeC><SizeZ>%d</SizeZ><SizeT>%d</SizeT><SizeS>%d</SizeS>`,
		size.rect.Dx(), size.rect.Dy(), len(size.channels), size.z, size.t, size.scenes)
	if size.m > 0 {
		p(`<SizeM>%d</SizeM>`, size.m)
	}
	numbers := slices.Sorted(maps.Keys(size.channels))
	if len(numbers) > 0 {
		p(`<PixelType>%s</PixelType>`, size.channels[numbers[0]])
	}
	if m.Acquired != "" {
		p(`<AcquisitionDateAndTime>%s</AcquisitionDateAndTime>`, escape(m.Acquired))
	}
	p(`<Dimensions><Channels>`)
	for _, c := range numbers {
		info := m.channel(c)
		p(`<Channel Id="Channel:%d" Name="%s"><PixelType>%s</PixelType>`, c, escape(info.Name), size.channels[c])
		element(&b, "Fluor", info.Fluor)
		element(&b, "ExcitationWavelength", float(info.ExcitationNM))
		element(&b, "EmissionWavelength", float(info.EmissionNM))
		p(`</Channel>`)
	}
	p(`</Channels>`)
	if len(m.Scenes) > 0 {
		p(`<S><Scenes>`)
		for _, s := range m.Scenes {
			p(`<Scene Index="%d" Name="%s">`, s.Index, escape(s.Name))
			if s.Centered {
				p(`<CenterPosition>%s,%s</CenterPosition>`, strconv.FormatFloat(s.CenterUM[0], 'g', -1, 64), strconv.FormatFloat(s.CenterUM[1], 'g', -1, 64))
			}
			p(`</Scene>`)
		}
		p(`</Scenes></S>`)
	}
	p(`</Dimensions>`)
	o := &m.Objective
	if *o != (Objective{}) {
		p(`<ObjectiveSettings><ObjectiveRef Id="Objective:1"/></ObjectiveSettings>`)
	}
	p(`</Image>`)
	if *o != (Objective{}) {
		p(`<Instrument><Objectives><Objective Id="Objective:1" Name="%s">`, escape(o.Name))
		element(&b, "LensNA", float(o.NA))
		element(&b, "NominalMagnification", float(o.Magnification))
		p(`</Objective></Objectives></Instrument>`)
	}
	p(`</Information><Scaling><Items>`)
	for i, axis := range "ZYX" {
		if um := m.VoxelUM[i]; um > 0 {
			p(`<Distance Id="%c"><Value>%s</Value><DefaultUnitFormat>µm</DefaultUnitFormat></Distance>`, axis, float(rounded(um/1e6)))
		}
	}
	p(`</Items></Scaling><DisplaySetting><Channels>`)
	for _, c := range numbers {
		info := m.channel(c)
		p(`<Channel Id="Channel:%d" Name="%s">`, c, escape(info.Name))
		if info.Color != "" {
			p(`<Color>#FF%s</Color>`, escape(info.Color))
		}
		p(`</Channel>`)
	}
	p(`</Channels></DisplaySetting></Metadata></ImageDocument>`)
	return b.String()
}

// channel returns the known properties of a channel.
func (m *Metadata) channel(c int) Channel {
	if c >= 0 && c < len(m.Channels) {
		return m.Channels[c]
	}
	return Channel{Name: fmt.Sprintf("C%d", c)}
}

// xml returns the metadata of a tile, "" for nil.
func (s *Stage) xml() string {
	if s == nil {
		return ""
	}
	focus := ""
	if s.HasZ {
		focus = "<FocusPosition>" + strconv.FormatFloat(s.Z, 'f', -1, 64) + "</FocusPosition>"
	}
	return "<METADATA><Tags><StageXPosition>" + strconv.FormatFloat(s.X, 'f', -1, 64) + "</StageXPosition><StageYPosition>" +
		strconv.FormatFloat(s.Y, 'f', -1, 64) + "</StageYPosition>" + focus + "</Tags></METADATA>"
}

// element writes an element unless it is empty.
func element(b *strings.Builder, name, text string) {
	if text != "" {
		fmt.Fprintf(b, "<%s>%s</%s>", name, escape(text), name)
	}
}

// float writes a number, "" for 0: unknown.
func float(x float64) string {
	if x == 0 {
		return ""
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a builder does not fail
	return b.String()
}
