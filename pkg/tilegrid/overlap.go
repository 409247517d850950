package tilegrid

import "encoding/json"

// attribute is the member of a mosaic grid's attributes that describes the scan.
const attribute = "mosaic"

// scanned is what a mosaic grid says of its scan.
type scanned struct {
	Overlap *float64 `json:"overlap,omitempty"` // fraction of a tile that its neighbour covers, too
}

// Attributes returns the attributes of a mosaic grid whose tiles were scanned with an overlap: the fraction of a tile
// that its neighbour covers, too.
func Attributes(overlap float64) map[string]any {
	return map[string]any{attribute: scanned{&overlap}}
}

// Overlap returns the overlap that a mosaic grid's attributes state; ok is false if they state none from 0 to below 1.
func Overlap(attributes map[string]json.RawMessage) (overlap float64, ok bool) {
	var s scanned
	if json.Unmarshal(attributes[attribute], &s) != nil || s.Overlap == nil || !(*s.Overlap >= 0 && *s.Overlap < 1) {
		return 0, false
	}
	return *s.Overlap, true
}
