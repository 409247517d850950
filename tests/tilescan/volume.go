package tilescan

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Volume is a volume of tissue, from 0 to 1, with nothing around it.
type Volume struct {
	planes []*Picture
	factor int // by which it is enlarged
}

// specimens is the folder of nilearn's wheel with its volumes.
const specimens = "nilearn/datasets/data/"

// nothing is the brightness below which a voxel is not tissue.
const nothing = 0.05

// volume returns a volume whose planes have sides of at least so many pixels: a smaller one is enlarged by a whole
// factor.
func (p *Pictures) volume(name string, least int) (*Volume, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.volumes[name]
	if v == nil {
		f, err := p.open(specimens + name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if v, err = readNIfTI(f); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		p.volumes[name] = v
	}
	side := min(v.planes[0].H, v.planes[0].W)
	return &Volume{v.planes, max((least+side-1)/side, 1)}, nil
}

// readNIfTI reads a compressed NIfTI-1 file of one volume of uint8, as nilearn's templates are.
func readNIfTI(r io.Reader) (*Volume, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	var header [352]byte // with the four bytes that announce extensions
	if _, err := io.ReadFull(z, header[:]); err != nil {
		return nil, err
	}
	little := binary.LittleEndian
	if little.Uint32(header[:]) != 348 || string(header[344:347]) != "n+1" {
		return nil, errors.New("is no little-endian NIfTI-1 file")
	}
	var n [3]int // x, y, z
	for d := range n {
		n[d] = int(int16(little.Uint16(header[42+2*d:])))
	}
	kind, offset := little.Uint16(header[70:]), math.Float32frombits(little.Uint32(header[108:]))
	if kind != 2 || offset != float32(len(header)) || min(n[0], n[1]) < 2 || n[2] < 2 {
		return nil, fmt.Errorf("has data of type %d and shape %v from byte %g, want a volume of uint8 from byte %d", kind, n, offset, len(header))
	}
	v := &Volume{factor: 1}
	raw := make([]byte, n[0]*n[1])
	for range n[2] {
		if _, err := io.ReadFull(z, raw); err != nil {
			return nil, err
		}
		plane := &Picture{make([]float32, len(raw)), n[1], n[0]}
		for i, b := range raw {
			plane.V[i] = float32(b) / math.MaxUint8
		}
		v.planes = append(v.planes, plane)
	}
	return v, nil
}

func (v *Volume) size() (h, w int) { return v.planes[0].H * v.factor, v.planes[0].W * v.factor }

// spread returns mean and standard deviation of the plane in the middle.
func (v *Volume) spread() (mean, deviation float64) { return v.planes[len(v.planes)/2].spread() }

// at returns the volume between its voxels, linearly along z and by the cubic of pictures in the plane.
func (v *Volume) at(z, y, x float64) (value float64, tissue bool) {
	f := float64(v.factor)
	z = min(max(z/f, 0), float64(len(v.planes)-1))
	below := min(int(z), len(v.planes)-2)
	t := z - float64(below)
	value = (1-t)*float64(v.planes[below].At(y/f, x/f)) + t*float64(v.planes[below+1].At(y/f, x/f))
	return value, value > nothing
}

// depth returns the plane, in px of the enlarged volume, that lies at a part of its depth.
func (v *Volume) depth(part float64) float64 { return part * float64((len(v.planes)-1)*v.factor) }
