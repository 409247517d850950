// Package colormap maps numbers between 0 and 1 to colours, with published maps that readers of scientific
// pictures know: gray; the perceptually uniform viridis, magma, inferno and plasma; and turbo, for small
// differences over a wide range.
package colormap

import (
	"encoding/hex"
	"fmt"
	"image/color"
	"slices"
	"strings"
	"sync"
)

// Map holds 256 opaque colours from the smallest to the largest value.
type Map [256]color.RGBA

// names are the maps in the order in which they are offered.
var names = []string{"gray", "viridis", "magma", "inferno", "plasma", "turbo"}

// Names returns the names of all maps; the first is the plainest.
func Names() []string { return slices.Clone(names) }

var decoded sync.Map // name → *Map

// ByName returns the map with the given name.
func ByName(name string) (*Map, error) {
	if m, ok := decoded.Load(name); ok {
		return m.(*Map), nil
	}
	m := new(Map)
	switch table, ok := tables[name]; {
	case name == "gray":
		for i := range m {
			m[i] = color.RGBA{uint8(i), uint8(i), uint8(i), 255}
		}
	case !ok:
		return nil, fmt.Errorf("no colormap %q: there are %s", name, strings.Join(names, ", "))
	default:
		b, err := hex.DecodeString(table)
		if err != nil || len(b) != 3*len(m) {
			return nil, fmt.Errorf("colormap %s: table of %d bytes: %w", name, len(b), err)
		}
		for i := range m {
			m[i] = color.RGBA{b[3*i], b[3*i+1], b[3*i+2], 255}
		}
	}
	decoded.Store(name, m)
	return m, nil
}

// At returns the colour of t: the first for t ≤ 0 and NaN, the last for t ≥ 1, and otherwise the nearest of
// the 256.
func (m *Map) At(t float64) color.RGBA {
	switch {
	case !(t > 0):
		return m[0]
	case t >= 1:
		return m[255]
	}
	return m[int(t*255+0.5)]
}
