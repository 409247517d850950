package deb

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const arMagic = "!<arch>\n"

// arReader reads the members of an ar archive one after the other.
type arReader struct {
	r    io.Reader
	left int64 // of the member that is being read, with its padding
	pad  int64
	at   int64
}

func newArReader(r io.Reader) (*arReader, error) {
	magic := make([]byte, len(arMagic))
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != arMagic {
		return nil, errors.New("not an ar archive")
	}
	return &arReader{r: r, at: int64(len(arMagic))}, nil
}

// next skips the rest of a member and returns the name of the following one; io.EOF at the end.
func (a *arReader) next() (string, error) {
	if n, err := io.CopyN(io.Discard, a.r, a.left+a.pad); err != nil && !(errors.Is(err, io.EOF) && n == a.left) {
		return "", fmt.Errorf("byte %d: a member is cut off: %w", a.at, io.ErrUnexpectedEOF)
	}
	a.at += a.left + a.pad
	a.left, a.pad = 0, 0
	header := make([]byte, 60)
	if _, err := io.ReadFull(a.r, header); err != nil {
		if errors.Is(err, io.EOF) {
			return "", io.EOF
		}
		return "", fmt.Errorf("byte %d: a header is cut off: %w", a.at, err)
	}
	if string(header[58:]) != "`\n" {
		return "", fmt.Errorf("byte %d: not a member's header", a.at)
	}
	field := strings.TrimRight(string(header[48:58]), " ")
	size, err := strconv.ParseInt(field, 10, 64)
	if err != nil || size < 0 {
		return "", fmt.Errorf("byte %d: %q is not a size", a.at, field)
	}
	a.at += int64(len(header))
	a.left, a.pad = size, size%2
	return strings.TrimSuffix(strings.TrimRight(string(header[:16]), " "), "/"), nil
}

// Read reads the member that next found.
func (a *arReader) Read(p []byte) (int, error) {
	if a.left == 0 {
		return 0, io.EOF
	}
	n, err := a.r.Read(p[:min(int64(len(p)), a.left)])
	a.left -= int64(n)
	a.at += int64(n)
	if errors.Is(err, io.EOF) && a.left > 0 {
		err = fmt.Errorf("byte %d: a member is cut off: %w", a.at, io.ErrUnexpectedEOF)
	}
	if errors.Is(err, io.EOF) && n > 0 {
		err = nil
	}
	return n, err
}
