package czi

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strings"
)

// Attachment is a file within the file, such as a picture of the slide.
type Attachment struct {
	Name   string // such as "Thumbnail", "Label" or "SlidePreview"
	Type   string // of its content: "JPG", "CZI", "CZEVL" …
	GUID   [16]byte
	Offset int64 // of its segment
	Part   int
}

const (
	attachmentsHeader = segmentHeader + 256
	attachmentEntry   = 128
	mostAttachments   = 1 << 16
)

// Attachments reads the directory of attachments.
func (f *File) Attachments(ctx context.Context) ([]Attachment, error) {
	if f.header.attachments == 0 {
		return nil, nil
	}
	var head [segmentHeader + 4]byte
	s, err := f.readSegment(ctx, head[:], f.header.attachments, "attachment directory", idAttachments)
	if err != nil {
		return nil, err
	}
	n := int32(binary.LittleEndian.Uint32(head[segmentHeader:]))
	if n < 0 || n > mostAttachments {
		return nil, s.errorf("claims %d attachments (at most %d)", n, mostAttachments)
	}
	b, err := s.part(ctx, s.at+attachmentsHeader, int64(n)*attachmentEntry, "entries")
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	var all []Attachment
	for ; len(b) > 0; b = b[attachmentEntry:] {
		if b[0] != 'A' || b[1] != '1' {
			return all, s.errorf("entry %d: schema %q is not supported (must be \"A1\")", len(all), b[:2])
		}
		name, _, _ := bytes.Cut(b[48:attachmentEntry], []byte{0})
		kind, _, _ := bytes.Cut(b[40:48], []byte{0})
		a := Attachment{Name: strings.ToValidUTF8(string(name), "\ufffd"), Type: strings.ToValidUTF8(string(kind), "\ufffd"),
			Offset: int64(le.Uint64(b[12:])), Part: int(int32(le.Uint32(b[20:])))}
		copy(a.GUID[:], b[24:])
		all = append(all, a)
	}
	return all, nil
}

// ReadAttachment reads the content of an attachment.
func (f *File) ReadAttachment(ctx context.Context, a Attachment) ([]byte, error) {
	var head [segmentHeader + 8]byte
	what := fmt.Sprintf("attachment %q", a.Name)
	if a.Part != 0 {
		s := segment{f: f, what: what, at: a.Offset}
		return nil, s.errorf("%w: part %d", ErrPart, a.Part)
	}
	s, err := f.readSegment(ctx, head[:], a.Offset, what, idAttachment)
	if err != nil {
		return nil, err
	}
	return s.part(ctx, s.at+attachmentsHeader, int64(binary.LittleEndian.Uint64(head[segmentHeader:])), "content")
}
