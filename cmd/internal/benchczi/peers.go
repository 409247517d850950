package benchczi

import (
	"context"
	_ "embed"

	"strata/cmd/internal/benchkit"
	"strata/pkg/czi"
)

// peersScript is the Python script that does what a peer is asked for.
//
//go:embed peers.py
var peersScript string

var peerKinds = []benchkit.PeerKind{
	{Key: "aicspylibczi", Name: "aicspylibczi", Packages: "numpy aicspylibczi"},
	{Key: "pylibCZIrw", Name: "pylibCZIrw", Packages: "numpy pylibCZIrw"},
	{Key: "czifile", Name: "czifile", Packages: "numpy czifile imagecodecs"},
	{Key: "bioio-czi", Name: "bioio-czi", Packages: "numpy bioio-czi"},
}

// Operations.
const (
	opTiles  = "tiles"
	opMosaic = "mosaic"
	opOpen   = "open"
)

// question is a request to a peer.
type question struct {
	Do      string       `json:"do"`
	Op      string       `json:"op"`
	File    string       `json:"file"`
	Tiles   []peerTile   `json:"tiles"`
	Plane   *mosaicPlane `json:"plane,omitempty"`
	Overlap bool         `json:"overlap"`
}

// peerTile describes a tile to peers.
type peerTile struct {
	X  int            `json:"x"`
	Y  int            `json:"y"`
	W  int            `json:"w"`
	H  int            `json:"h"`
	At map[string]int `json:"at"`
	N  int            `json:"n"`
}

// mosaicPlane is a plane to be composed.
type mosaicPlane struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
	C int
	Z int
	T int
}

// tilesFor describes tiles to peers.
func (s *scan) tilesFor(tiles []int) []peerTile {
	out := make([]peerTile, 0, len(tiles))
	for _, i := range tiles {
		sb := s.file.SubBlock(i)
		t := peerTile{sb.Rect.Min.X, sb.Rect.Min.Y, sb.Rect.Dx(), sb.Rect.Dy(), map[string]int{}, i}
		for name, at := range map[byte]int{'C': sb.C, 'Z': sb.Z, 'T': sb.T, 'S': sb.S, 'M': sb.M, 'R': sb.R, 'I': sb.I, 'H': sb.H, 'V': sb.V, 'B': sb.B} {
			if sb.Has(name) {
				t.At[string(name)] = at
			}
		}
		out = append(out, t)
	}
	return out
}

// peer does an operation with another program.
type peer struct {
	*benchkit.Peer
	scan *scan
	op   string
}

func (p peer) question(do string, tiles []int) question {
	q := question{Do: do, Op: p.op, File: p.scan.path}
	switch p.op {
	case opTiles:
		q.Tiles, q.Overlap = p.scan.tilesFor(tiles), p.scan.overlap()
	case opMosaic:
		r := p.scan.mosaic()
		q.Plane = &mosaicPlane{r.Rect.Min.X, r.Rect.Min.Y, r.Rect.Dx(), r.Rect.Dy(), r.Plane.C, r.Plane.Z, r.Plane.T}
	}
	return q
}

func (p peer) check(ctx context.Context, tiles []int) (uint32, error) {
	_, sum, err := p.Do(ctx, p.question("check", tiles))
	return sum, err
}

func (p peer) round(ctx context.Context) (benchkit.Sample, error) {
	s, _, err := p.Do(ctx, p.question("read", p.scan.tiles))
	return s, err
}

// mosaic returns the plane to be composed: that of the first tile, of all scenes or the chosen one.
func (s *scan) mosaic() czi.Region {
	scene := czi.AllScenes
	if s.scene >= 0 {
		scene = s.scene
	}
	return czi.Region{Plane: s.file.SubBlock(s.tiles[0]).Plane(), Scene: scene, Rect: s.file.Bounds(scene)}
}
