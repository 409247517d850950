//go:build !nocuda

package kernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
)

func TestFuse(t *testing.T) {
	each(t, fusing[uint8, float32], fusing[int8, float32], fusing[uint16, float32], fusing[int16, float32], fusing[uint32, float64],
		fusing[int32, float64], fusing[uint64, float64], fusing[int64, float64], fusing[float32, float32], fusing[float64, float64])
}

// fusing adds three tiles to a cell, one of them at places between voxels, and a tile
// alone to another, in a column of which they fill a part.
func fusing[T dtype.Element, F float32 | float64](t *testing.T) {
	b := open(t)
	kind := dtype.Of[T]()
	const planes, ny, nx = 19, 9, 21       // of a tile
	const cy, cx, py, px = 6, 11, 12, 40   // of the cell and of the column
	const y, x = 3, 10                     // of the cell in the tile: it ends where the tile does
	const oy, ox, step = 5, 7, py * px     // and in the column
	box, size := int64(cy*cx), kind.Size() // both cells have the same
	shared, alone := int64((oy*px+ox)*size), int64((oy*px+20)*size)
	for _, choose := range []bool{false, true} {
		voxels := sample[T](planes * py * px)
		want := make([]T, len(voxels))
		copy(want, voxels)
		column := upload(b, voxels)
		var sums [2]gpu.Span
		for i := range sums {
			sums[i] = b.alloc(int(4 * box))
		}
		mean := b.alloc(planes * cy * cx * FuseType(kind).Size())
		acc, sum := make([]F, planes*cy*cx), make([]float32, cy*cx)
		for k, behind := range [][2]float32{{}, {0.25, -0.4}, {-0.3, 0.125}} {
			tile := sample[T](planes*ny*nx + k)[k:]
			weights := make([]float32, ny*nx)
			for i := range weights {
				weights[i] = float32((i*7+k*5)%13) + 0.5
			}
			var given gpu.Span
			if k != 1 { // all are 1
				given = upload(b, weights)
			} else {
				for i := range weights {
					weights[i] = 1
				}
			}
			both := [2]Cell{{
				Voxels: column.From(shared, column.Bytes()-shared), Pitch: px, Stride: step, Mean: mean, MeanPitch: cx, MeanStride: box,
				Before: sums[k%2], After: sums[1-k%2], Y: y, X: x, NY: cy, NX: cx, Do: CellSample,
			}, {Voxels: column.From(alone, column.Bytes()-alone), Pitch: px, Stride: step, Y: y, X: x, NY: cy, NX: cx, Do: CellSample | CellStore}}
			if k > 0 {
				both[0].Do |= CellBlend
			}
			if k == 2 {
				both[0].Do |= CellStore
			}
			if behind == [2]float32{} {
				both[1].Do = CellCopy
			}
			table := make([]byte, 2*CellBytes)
			for i := range both {
				PutCell(table, i, &both[i])
			}
			at := Tile{At: upload(b, tile), Type: kind, Planes: planes, NY: ny, NX: nx, Behind: behind}
			b.check(Fuse(b.stream, at, upload(b, table), 2, cy*cx, given, choose))

			for z := range planes {
				for r := range cy {
					v := shifted[T, F](tile[z*ny*nx:][:ny*nx], ny, nx, y+r, behind)[x : x+cx]
					to := acc[(z*cy+r)*cx:][:cx]
					own := want[(z*py+oy+r)*px:]
					if both[1].Do == CellCopy {
						copy(own[20:], tile[(z*ny+y+r)*nx+x:][:cx])
					} else {
						dtype.ConvertSlice(own[20:20+cx], dtype.Bytes(v), dtype.Of[F]())
					}
					alpha := make([]float32, cx)
					for i := range alpha {
						w, s := weights[(y+r)*nx+x+i], sum[r*cx+i]
						if choose && w > s {
							s, alpha[i] = w, 1
						} else if !choose {
							s += w
							alpha[i] = w / s
						}
						if z == planes-1 {
							sum[r*cx+i] = s
						}
					}
					if k == 0 {
						copy(to, v)
					} else {
						filter.Blend(to, v, alpha)
					}
					if k == 2 {
						dtype.ConvertSlice(own[ox:ox+cx], dtype.Bytes(to), dtype.Of[F]())
					}
				}
			}
			if k < 2 {
				equal(t, "sums of weights", download[float32](b, sums[1-k%2]), sum)
				equal(t, "running means", download[F](b, mean), acc)
			}
		}
		equal(t, "fused", download[T](b, column), want)

		// no tile of a cell is anything: zeros; the last of them is nothing: what the others say
		none := []Cell{{Voxels: column, Pitch: px, Stride: step, NY: cy, NX: cx, Do: CellStore},
			{Voxels: column.From(alone, column.Bytes()-alone), Pitch: px, Stride: step, Mean: mean, MeanPitch: cx, MeanStride: box, NY: cy, NX: cx, Do: CellStore | CellBlend}}
		table := make([]byte, 2*CellBytes)
		for i := range none {
			PutCell(table, i, &none[i])
		}
		b.check(Fuse(b.stream, Tile{At: column, Type: kind, Planes: planes, NY: ny, NX: nx}, upload(b, table), 2, cy*cx, gpu.Span{}, choose))
		acc = download[F](b, mean)
		for z := range planes {
			for r := range cy {
				clear(want[(z*py+r)*px:][:cx])
				dtype.ConvertSlice(want[(z*py+oy+r)*px+20:][:cx], dtype.Bytes(acc[(z*cy+r)*cx:][:cx]), dtype.Of[F]())
			}
		}
		equal(t, "what is nothing", download[T](b, column), want)
	}
}

// shifted is row y of a plane that lies behind its place.
func shifted[T dtype.Element, F float32 | float64](plane []T, ny, nx, y int, behind [2]float32) []F {
	row := func(y int) []F {
		out := make([]F, nx)
		for x, v := range plane[min(max(y, 0), ny-1)*nx:][:nx] {
			out[x] = F(v)
		}
		return out
	}
	v := row(y)
	if f := behind[0]; f > 0 {
		filter.Between(v, v, row(y-1), F(f))
	} else if f < 0 {
		filter.Between(v, v, row(y+1), F(-f))
	}
	out := append([]F(nil), v...)
	if f := behind[1]; f > 0 {
		filter.Between(out[1:], v[1:], v, F(f))
	} else if f < 0 {
		filter.Between(out[:nx-1], v[:nx-1], v[1:], F(-f))
	}
	return out
}

func TestSeams(t *testing.T) {
	each(t, seamSums[uint8, float32], seamSums[int8, float32], seamSums[uint16, float32], seamSums[int16, float32], seamSums[uint32, float64],
		seamSums[int32, float64], seamSums[uint64, float64], seamSums[int64, float64], seamSums[float32, float32], seamSums[float64, float64])
}

const seamPlanes, seamRows, seamColumns = 23, 20, 33

// seamSums compares tiles of noise, and of odd numbers of either sign: sums of their products get so large that
// products lie in the middle between two numbers, and other sums are now above 0, now below.
func seamSums[T dtype.Element, F float32 | float64](t *testing.T) {
	const n = seamPlanes * seamRows * seamColumns
	tile, other := sample[T](n), sample[F](n)
	if dtype.Of[T]().IsFloat() { // the first is none, and neither is a row
		tile[0] = T(math.NaN())
		for i := range seamColumns {
			other[12*seamRows*seamColumns+i] = F(math.Inf(1))
		}
	}
	compareSeams(t, tile, other)
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range n {
		v, w := F(rng.IntN(1<<23)*2+1), F(rng.IntN(1<<23)*2+1)
		if i%2 == 0 {
			v, w = -v, -w
		}
		other[i] = v
		if dtype.Of[T]().IsFloat() {
			tile[i] = T(w)
		}
	}
	compareSeams(t, tile, other)
	if v := []F{1<<53 - 1}; v[0] != v[0]+1 { // of float64: a sum that comes to a power of two, below which it is rounded otherwise
		clear(tile)
		clear(other)
		other[1], other[512], other[513] = 1<<52+1, -0.7, -0.3
		compareSeams(t, tile, other)
	}
}

// compareSeams compares two tiles in seams of two cells, of one, and of two, of which one has as many voxels as come at
// a time and the other one, whose planes come at two times.
func compareSeams[T dtype.Element, F float32 | float64](t *testing.T, tile []T, other []F) {
	t.Helper()
	b := open(t)
	kind := dtype.Of[T]()
	const planes, ny, nx, piece, cut = seamPlanes, seamRows, seamColumns, 7, 9
	boxes := [][4]int{{0, 0, 19, 33}, {19, 2, 1, 30}, {5, 7, 3, 4}, {1, 1, 16, 32}, {19, 32, 1, 1}} // y, x, ny, nx
	of := [][2]int{{0, 2}, {2, 3}, {3, 5}}                                                          // boxes of a seam
	behind := [2]float32{0, 0.25}
	sums := b.alloc(len(of) * SeamState)
	b.stream.Zero(sums)
	mean := upload(b, other)
	for _, z := range [][2]int{{0, cut}, {cut, planes}} {
		cells := make([]Cell, len(boxes))
		table := make([]byte, len(boxes)*CellBytes)
		for i, r := range boxes {
			from := int64(((z[0]*ny+r[0])*nx + r[1]) * FuseType(kind).Size())
			cells[i] = Cell{Mean: mean.From(from, mean.Bytes()-from), MeanPitch: nx, MeanStride: ny * nx, Y: r[0], X: r[1], NY: r[2], NX: r[3]}
			PutCell(table, i, &cells[i])
		}
		seams := make([]byte, len(of)*SeamBytes)
		for i, c := range of {
			PutSeam(seams, i, sums.From(int64(i*SeamState), SeamState), c[0], c[1]-c[0])
		}
		at := Tile{At: upload(b, tile[z[0]*ny*nx:z[1]*ny*nx]), Type: kind, Planes: z[1] - z[0], NY: ny, NX: nx, Behind: behind}
		b.check(Seams(b.stream, at, upload(b, table), upload(b, seams), len(of), z[0], piece))
	}
	want := make([]float64, 8*len(of))
	for k, c := range of {
		s, cells := want[8*k:][:8], boxes[c[0]:c[1]]
		for _, part := range [][2]int{{0, 7}, {7, 9}, {9, 14}, {14, 21}, {21, 23}} {
			for _, r := range cells {
				for z := (part[0] + 3) / 4 * 4; z < part[1]; z += 4 {
					for y := r[0]; y < r[0]+r[2]; y++ {
						v := shifted[T, F](tile[z*ny*nx:][:ny*nx], ny, nx, y, behind)
						for x := r[1]; x < r[1]+r[3]; x++ {
							p, q := float64(other[(z*ny+y)*nx+x]), float64(v[x])
							d := p - q
							if d-d != 0 {
								continue
							}
							if s[0] == 0 {
								s[7] = p
							}
							p, q = p-s[7], q-s[7]
							for i, term := range []float64{1, math.Abs(d), p, q, p * p, q * q, p * q} {
								s[i] += term
							}
						}
					}
				}
			}
		}
	}
	equal(t, "sums of seams", download[float64](b, sums), want)
}
