package stage

import (
	"fmt"
	"slices"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/gpu/cost"
	"strata/pkg/units"
	"strata/pkg/zarr/codec"
)

// Assumptions of an outlook about inputs: tiles of one chunk each, stored with the stages' defaults.
const (
	outlookTile   = 100 << 20 // bytes of 200 × 512 × 512 uint16
	outlookCodec  = "blosc-zstd:1"
	outlookStored = 0.7
	outlookLeast  = 1 << 30
	outlookMost   = 256 << 30
)

// Outlook says, by the model that decides, for which stages and from which sizes of the input one of the GPUs is taken
// on this machine, as the end of a sentence that begins "stages use GPU 0".
func Outlook(cores int, list []gpu.Info) (string, error) {
	m, err := newModel()
	if err != nil {
		return "", err
	}
	chain, err := codec.FromFlag(outlookCodec, dtype.Uint16, 3)
	if err != nil {
		return "", err
	}
	var from []int64 // sizes from which a GPU is taken
	by := map[int64][]string{}
	for _, name := range cost.Stages() {
		size, err := m.worthFrom(name, chain, cost.Host{Cores: cores, Figures: m.host}, list)
		if err != nil {
			return "", err
		}
		if size == 0 {
			continue
		}
		if by[size] == nil {
			from = append(from, size)
		}
		by[size] = append(by[size], name)
	}
	slices.Sort(from)
	than := units.Count(cores, "core")
	if from == nil {
		return fmt.Sprintf("only with --require_gpu: none is expected to be faster there than on %s", than), nil
	}
	var parts []string
	for _, size := range from {
		parts = append(parts, fmt.Sprintf("%s from %s", strings.Join(by[size], ", "), units.FormatSize(size)))
	}
	return fmt.Sprintf("where it is expected to be faster than %s: %s of voxels; --require_gpu always takes it", than, strings.Join(parts, "; ")), nil
}

// worthFrom returns the smallest of some sizes of the input from which on a stage takes a GPU, or 0 if it takes none.
func (m model) worthFrom(stage string, chain codec.Chain, h cost.Host, list []gpu.Info) (from int64, err error) {
	device := gpu.NVCOMPLibrary().Reason == ""
	for size := int64(outlookMost); size >= outlookLeast; size /= 2 {
		j := cost.Job{Stage: stage, In: coded(chain, outlookTile, device), Out: coded(chain, outlookTile, device)}
		j.In.Bytes, j.In.Stored = size, int64(outlookStored*float64(size))
		best, err := m.fastest(j, h, list, 1)
		if err != nil || !best.GPU {
			return from, err
		}
		from = size
	}
	return from, nil
}
