package czi

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"strata/pkg/xmltext"
)

// Metadata holds the parts of a file's XML document that this package reads.
type Metadata struct {
	Name     string // of the document; "" where it has none
	Acquired string // date and time, as written
	Channels []Channel
	// VoxelUM is the size of a voxel in µm along z, y and x; 0: unknown.
	VoxelUM   [3]float64
	Objective Objective
	Scenes    []SceneInfo
}

// Channel describes a channel.
type Channel struct {
	Name                     string
	Color                    string // "RRGGBB"; "": unknown
	Fluor                    string
	ExcitationNM, EmissionNM float64 // wavelengths; 0: unknown
}

// Objective describes the lens.
type Objective struct {
	Name          string
	Magnification float64 // 0: unknown
	NA            float64
}

// SceneInfo names and places a scene.
type SceneInfo struct {
	Index    int
	Name     string
	CenterUM [2]float64 // stage position x, y of its centre in µm
	Centered bool       // CenterUM is known
}

// metadataCache keeps the parsed document.
type metadataCache struct {
	mu   sync.Mutex
	done bool
	m    *Metadata
	err  error
}

// XML reads the metadata document unchanged; it returns nil if the file has none.
func (f *File) XML(ctx context.Context) ([]byte, error) {
	if f.header.metadata == 0 {
		return nil, nil
	}
	var head [segmentHeader + 8]byte
	s, err := f.readSegment(ctx, head[:], f.header.metadata, "metadata", idMetadata)
	if err != nil {
		return nil, err
	}
	n := int32(binary.LittleEndian.Uint32(head[segmentHeader:]))
	if n < 0 {
		return nil, s.errorf("claims %d bytes of XML", n)
	}
	b, err := s.part(ctx, s.at+segmentHeader+256, int64(n), "XML")
	return bytes.TrimPrefix(bytes.TrimRight(b, "\x00"), []byte("\xef\xbb\xbf")), err
}

// Metadata reads and parses the metadata document once. Without a document, and with an error, it is empty
// but not nil.
func (f *File) Metadata(ctx context.Context) (*Metadata, error) {
	c := &f.meta
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return c.m, c.err
	}
	m := new(Metadata)
	text, err := f.XML(ctx)
	if err == nil && len(text) > 0 {
		if m, err = parseMetadata(text); err != nil {
			s := segment{f: f, what: "metadata", at: f.header.metadata}
			err = s.errorf("%w", err)
		}
	}
	if ctx.Err() != nil {
		return m, ctx.Err()
	}
	c.done, c.m, c.err = true, m, err
	return m, err
}

// document is the XML of a file.
type document struct {
	XMLName  xml.Name `xml:"ImageDocument"`
	Document struct {
		Name, Title, CreationDate string
	} `xml:"Metadata>Information>Document"`
	Image struct {
		Acquired  string       `xml:"AcquisitionDateAndTime"`
		Channels  []xmlChannel `xml:"Dimensions>Channels>Channel"`
		Scenes    []xmlScene   `xml:"Dimensions>S>Scenes>Scene"`
		Objective struct {
			ID string `xml:"Id,attr"`
		} `xml:"ObjectiveSettings>ObjectiveRef"`
	} `xml:"Metadata>Information>Image"`
	Objectives []struct {
		ID            string `xml:"Id,attr"`
		Name          string `xml:"Name,attr"`
		Model         string `xml:"Manufacturer>Model"`
		Magnification string `xml:"NominalMagnification"`
		NA            string `xml:"LensNA"`
	} `xml:"Metadata>Information>Instrument>Objectives>Objective"`
	Distances []struct {
		ID    string `xml:"Id,attr"`
		Value string `xml:"Value"`
	} `xml:"Metadata>Scaling>Items>Distance"`
	Display []xmlChannel `xml:"Metadata>DisplaySetting>Channels>Channel"`
}

type xmlChannel struct {
	ID         string `xml:"Id,attr"`
	Name       string `xml:"Name,attr"`
	Color      string `xml:"Color"`
	Fluor      string `xml:"Fluor"`
	Dye        string `xml:"DyeName"`
	Excitation string `xml:"ExcitationWavelength"`
	Emission   string `xml:"EmissionWavelength"`
}

type xmlScene struct {
	Index  string `xml:"Index,attr"`
	Name   string `xml:"Name,attr"`
	Center string `xml:"CenterPosition"`
}

// parseMetadata parses a document.
func parseMetadata(text []byte) (*Metadata, error) {
	m := new(Metadata)
	var doc document
	if err := xmltext.Decode(text, &doc); err != nil {
		return m, fmt.Errorf("XML: %w", err)
	}
	m.Name = first(doc.Document.Name, doc.Document.Title)
	m.Acquired = first(doc.Image.Acquired, doc.Document.CreationDate)
	display := map[string]xmlChannel{}
	for _, c := range doc.Display {
		display[c.ID] = c
	}
	for i, c := range doc.Image.Channels {
		shown, ok := display[c.ID]
		if !ok && i < len(doc.Display) && doc.Display[i].ID == "" {
			shown = doc.Display[i]
		}
		m.Channels = append(m.Channels, Channel{Name: first(c.Name, shown.Name), Color: first(color(shown.Color), color(c.Color)),
			Fluor: first(c.Fluor, shown.Dye), ExcitationNM: number(c.Excitation), EmissionNM: number(c.Emission)})
	}
	for _, v := range doc.Distances {
		if axis := strings.Index("ZYX", v.ID); axis >= 0 && len(v.ID) == 1 {
			m.VoxelUM[axis] = rounded(number(v.Value) * 1e6)
		}
	}
	for i, o := range doc.Objectives {
		if o.ID == doc.Image.Objective.ID || i == 0 {
			m.Objective = Objective{Name: first(o.Name, o.Model), Magnification: number(o.Magnification), NA: number(o.NA)}
		}
	}
	for _, s := range doc.Image.Scenes {
		info := SceneInfo{Name: s.Name}
		var err error
		if info.Index, err = strconv.Atoi(s.Index); err != nil {
			continue
		}
		if x, y, ok := strings.Cut(s.Center, ","); ok {
			cx, errX := strconv.ParseFloat(strings.TrimSpace(x), 64)
			cy, errY := strconv.ParseFloat(strings.TrimSpace(y), 64)
			info.CenterUM, info.Centered = [2]float64{cx, cy}, errX == nil && errY == nil
		}
		m.Scenes = append(m.Scenes, info)
	}
	return m, nil
}

func first(texts ...string) string {
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			return t
		}
	}
	return ""
}

// number parses a number above 0; all else is 0: unknown.
func number(text string) float64 {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(x > 0) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

// rounded removes the error that a conversion of units adds to a decimal number.
func rounded(x float64) float64 {
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 15, 64), 64)
	return x
}

// color turns #AARRGGBB or #RRGGBB into RRGGBB.
func color(text string) string {
	text = strings.TrimPrefix(strings.TrimSpace(text), "#")
	if len(text) == 8 {
		text = text[2:]
	}
	if _, err := strconv.ParseUint(text, 16, 32); err != nil || len(text) != 6 {
		return ""
	}
	return strings.ToUpper(text)
}

// Stage holds the stage position at which a tile was taken, in µm.
type Stage struct {
	X, Y, Z float64
	HasZ    bool
}

// tags is the part of a sub-block's metadata that has stage positions.
type tags struct {
	X     string `xml:"Tags>StageXPosition"`
	Y     string `xml:"Tags>StageYPosition"`
	Focus string `xml:"Tags>FocusPosition"`
}

// Stage reads the stage position in a sub-block's metadata; ok is false if there is none.
func (f *File) Stage(ctx context.Context, i int) (Stage, bool, error) {
	text, err := f.SubBlockMetadata(ctx, i)
	if err != nil || len(text) == 0 {
		return Stage{}, false, err
	}
	var t tags
	if err := xmltext.Decode(bytes.TrimRight(text, "\x00"), &t); err != nil {
		s := segment{f: f, what: fmt.Sprintf("sub-block %d", i), at: f.entries[i].pos}
		return Stage{}, false, s.errorf("metadata: XML: %w", err)
	}
	var s Stage
	x, errX := strconv.ParseFloat(strings.TrimSpace(t.X), 64)
	y, errY := strconv.ParseFloat(strings.TrimSpace(t.Y), 64)
	if errX != nil || errY != nil {
		return Stage{}, false, nil
	}
	s.X, s.Y = x, y
	if z, err := strconv.ParseFloat(strings.TrimSpace(t.Focus), 64); err == nil {
		s.Z, s.HasZ = z, true
	}
	return s, true, nil
}
