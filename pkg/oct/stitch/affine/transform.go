// Package affine holds the matrix that puts the tiles of a mosaic grid to their places, and the files that store it.
package affine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/npy"
	"strata/pkg/oct"
	"strata/pkg/smallfile"
)

// Matrix maps the nominal position (y, x) of a tile to its place in the image:
// (M[0][0]·y + M[0][1]·x, M[1][0]·y + M[1][1]·x).
type Matrix [2][2]float64

// Identity leaves positions unchanged.
var Identity = Matrix{{1, 0}, {0, 1}}

// Check returns an error for matrices that cannot place tiles.
func (m Matrix) Check() error {
	for _, row := range m {
		for _, v := range row {
			if !(math.Abs(v) <= 1e6) {
				return fmt.Errorf("matrix %v has an element that is not a number within ±1e6", m)
			}
		}
	}
	if math.Abs(m.det()) < 1e-6 {
		return fmt.Errorf("matrix %v is singular: it puts all tiles on a line", m)
	}
	return nil
}

func (m Matrix) det() float64 { return m[0][0]*m[1][1] - m[0][1]*m[1][0] }

func (m Matrix) String() string {
	return fmt.Sprintf("[[%.6g %.6g] [%.6g %.6g]]", m[0][0], m[0][1], m[1][0], m[1][1])
}

// Transform is a matrix as stored in a file, with its origin.
type Transform struct {
	Matrix  Matrix  `json:"matrix"`          // acts on (y, x)
	Overlap float64 `json:"overlap"`         // overlap of the positions that it acts on; negative: unknown
	Pairs   int     `json:"pairs,omitempty"` // number of pairs of neighbouring tiles in the estimate
	Of      int     `json:"of,omitempty"`    // number of pairs that were compared
	Spread  float64 `json:"spread_px,omitempty"`
	Rules   Rules   `json:"rules,omitempty"` // of the estimate; "": unknown
	// Voxel is the size (y, x) in micrometres of the pixels on which the matrix was estimated; zero: unknown.
	Voxel [2]float64 `json:"voxel_um,omitzero"`
}

// On returns the matrix for pixels of another size (y, x) in micrometres. It differs if their aspect ratio does.
func (t Transform) On(voxel [2]float64) Matrix {
	m := t.Matrix
	if !(min(t.Voxel[0], t.Voxel[1], voxel[0], voxel[1]) > 0) {
		return m
	}
	k := (t.Voxel[0] / voxel[0]) / (t.Voxel[1] / voxel[1])
	if math.Abs(k-1) < 1e-9 {
		return m
	}
	m[0][1], m[1][0] = m[0][1]*k, m[1][0]/k
	return m
}

// Overlaps returns the parts (y, x) of a tile that its neighbours also cover.
func (t Transform) Overlaps() [2]float64 {
	m, n := t.Matrix, 1-t.Overlap
	return [2]float64{1 - n*math.Hypot(m[0][0], m[1][0]), 1 - n*math.Hypot(m[0][1], m[1][1])}
}

// Summary says in one line what was estimated.
func (t Transform) Summary() string {
	if t.Rules == RulesReference {
		return t.summary() + ", " + ByReference
	}
	return t.summary()
}

func (t Transform) summary() string {
	if t.Pairs == 0 {
		return fmt.Sprintf("tiles overlap by %s as stated: 0 of %d pairs show by how much", Percent(t.Overlap), t.Of)
	}
	o := t.Overlaps()
	text := "tiles overlap by " + Percent(o[0])
	if math.Abs(o[0]-o[1]) >= 0.01 {
		text += " along y and " + Percent(o[1]) + " along x"
	}
	if max(math.Abs(o[0]-t.Overlap), math.Abs(o[1]-t.Overlap)) >= 0.01 {
		text += ", not " + Percent(t.Overlap)
	}
	return fmt.Sprintf("%s: %d of %d pairs, spread %.2g px", text, t.Pairs, t.Of, t.Spread)
}

// Percent formats an overlap.
func Percent(v float64) string { return fmt.Sprintf("%.3g %%", math.Round(1000*v)/10) }

// MarshalJSON omits an unknown overlap.
func (t Transform) MarshalJSON() ([]byte, error) {
	type fields Transform // without this method
	out := struct {
		fields
		Overlap *float64 `json:"overlap,omitempty"`
	}{fields: fields(t)}
	if t.Overlap >= 0 {
		out.Overlap = &t.Overlap
	}
	return json.Marshal(out)
}

// WriteTransform writes a transform as JSON.
func WriteTransform(w io.Writer, t Transform) error {
	b, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// ReadTransform reads a 2×2 matrix that acts on (y, x): JSON, either {"matrix": [[a, b], [c, d]]} or the bare
// rows, or a 2×2 array in .npy. The overlap is negative if the file does not state it. Errors wrap [oct.ErrInput]
// and call the file name.
func ReadTransform(r io.Reader, name string) (Transform, error) {
	b, err := smallfile.All(r, name)
	if err != nil {
		return Transform{}, oct.InputFault(err)
	}
	t, err := parseTransform(b)
	if err == nil {
		err = t.Matrix.Check()
	}
	if err != nil {
		return Transform{}, oct.BadInput("%s: %w", name, err)
	}
	return t, nil
}

func parseTransform(b []byte) (Transform, error) {
	if bytes.HasPrefix(b, []byte("\x93NUMPY")) {
		m, err := parseMatrixNpy(b)
		return Transform{Matrix: m, Overlap: -1}, err
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) // of editors on Windows
	text := bytes.TrimSpace(b)
	if len(text) == 0 {
		return Transform{}, errors.New("the file is empty: want a 2×2 matrix as JSON or .npy")
	}
	t := Transform{Overlap: -1}
	var rows [][]float64
	if text[0] == '[' {
		if err := json.Unmarshal(text, &rows); err != nil {
			return t, jsonError(b, err)
		}
	} else {
		var file struct {
			Matrix  [][]float64 `json:"matrix"`
			Overlap *float64    `json:"overlap"`
			Pairs   int         `json:"pairs"`
			Of      int         `json:"of"`
			Spread  float64     `json:"spread_px"`
			Voxel   []float64   `json:"voxel_um"`
		}
		if err := json.Unmarshal(text, &file); err != nil {
			return t, jsonError(b, err)
		}
		if file.Matrix == nil {
			return t, errors.New(`no "matrix": want {"matrix": [[a, b], [c, d]]} or the bare rows`)
		}
		rows = file.Matrix
		t.Pairs, t.Of, t.Spread = file.Pairs, file.Of, file.Spread
		if v := file.Voxel; v != nil {
			if len(v) != 2 || !(min(v[0], v[1]) > 0 && max(v[0], v[1]) < 1e9) {
				return t, fmt.Errorf("voxel_um %v: want two positive numbers", v)
			}
			t.Voxel = [2]float64(v)
		}
		if o := file.Overlap; o != nil {
			if !(*o >= 0 && *o < 1) {
				return t, fmt.Errorf("overlap %g is not within 0…1, 1 excluded", *o)
			}
			t.Overlap = *o
		}
	}
	if len(rows) != 2 || len(rows[0]) != 2 || len(rows[1]) != 2 {
		return t, fmt.Errorf("a matrix with rows %v: want two rows of two numbers", rows)
	}
	t.Matrix = Matrix{{rows[0][0], rows[0][1]}, {rows[1][0], rows[1][1]}}
	return t, nil
}

// jsonError adds the line number to a JSON error.
func jsonError(b []byte, err error) error {
	at := smallfile.JSONOffset(err)
	if at < 0 {
		return err
	}
	at += int64(len(b) - len(bytes.TrimLeft(b, " \t\r\n"))) // offsets count from the first byte that is no space
	return fmt.Errorf("line %d: %w: want a 2×2 matrix as JSON", 1+bytes.Count(b[:min(int(at), len(b))], []byte{'\n'}), err)
}

func parseMatrixNpy(b []byte) (m Matrix, err error) {
	r := bytes.NewReader(b)
	h, err := npy.ReadHeader(r)
	if err != nil {
		return m, err
	}
	if len(h.Shape) != 2 || h.Shape[0] != 2 || h.Shape[1] != 2 {
		return m, fmt.Errorf("an array of shape %v: want (2, 2)", h.Shape)
	}
	if !(h.Type.IsInteger() || h.Type == dtype.Float32 || h.Type == dtype.Float64) {
		return m, fmt.Errorf("an array of %v: want numbers", h.Type)
	}
	n := h.Type.Size()
	raw := make([]byte, 4*n)
	if r.Len() != len(raw) {
		return m, fmt.Errorf("%d bytes after the header: want %d", r.Len(), len(raw))
	}
	copy(raw, b[len(b)-len(raw):])
	if h.BigEndian {
		for i := 0; i < len(raw); i += n {
			for k := range n / 2 {
				raw[i+k], raw[i+n-1-k] = raw[i+n-1-k], raw[i+k]
			}
		}
	}
	var v []float64
	dtype.Each(raw, h.Type, func(f float64) { v = append(v, f) })
	m = Matrix{{v[0], v[1]}, {v[2], v[3]}}
	if h.Fortran {
		m[0][1], m[1][0] = m[1][0], m[0][1]
	}
	return m, nil
}

// Rules selects how the matrix is estimated.
type Rules string

// Values of Rules.
const (
	// RulesConsensus looks for tiles wherever they may overlap, and lets pairs check each other.
	RulesConsensus Rules = "consensus"
	// RulesReference compares the middle planes of the stated overlaps and takes the mean of all pairs, like linumpy.
	RulesReference Rules = "reference"
)

// AllRules lists all values of [Rules].
var AllRules = []string{string(RulesConsensus), string(RulesReference)}

// ByReference says that an estimate followed the reference's rules.
const ByReference = "by the reference's rules"
