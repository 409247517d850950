package nrrd

import (
	"fmt"
	"strings"

	"strata/pkg/volumes"
)

// Header returns the header of a file of one volume whose voxels follow it, x fastest, then y, z, t and channels,
// little-endian, compressed by gzip or not. Lengths are in mm, in the space right-anterior-superior.
func Header(v *volumes.Volume, gzip bool) ([]byte, error) {
	name := ""
	for n, t := range types {
		if t == v.Type && !strings.ContainsAny(n, " _") && (strings.HasPrefix(n, "int") && n != "int" || strings.HasPrefix(n, "uint") && n != "uint" || n == "float" || n == "double") {
			name = n
		}
	}
	if name == "" {
		return nil, fmt.Errorf("NRRD has no type %s", v.Type)
	}
	if err := v.Check(); err != nil {
		return nil, err
	}
	a := &v.Space
	column := func(c int) string { return fmt.Sprintf("(%g,%g,%g)", a[0][c], a[1][c], a[2][c]) }
	sizes, directions, kinds := []int{v.Width, v.Height, v.Depth}, []string{column(0), column(1), column(2)}, []string{"domain", "domain", "domain"}
	if v.Times > 1 {
		sizes, directions, kinds = append(sizes, v.Times), append(directions, "none"), append(kinds, "time")
	}
	if v.Channels > 1 {
		sizes, directions, kinds = append(sizes, v.Channels), append(directions, "none"), append(kinds, "vector")
	}
	encoding := map[bool]string{false: "raw", true: "gzip"}[gzip]
	var b strings.Builder
	fmt.Fprintf(&b, "NRRD0005\n# written by strata\ntype: %s\ndimension: %d\nspace: right-anterior-superior\nsizes: %s\nspace directions: %s\nkinds: %s\n",
		name, len(sizes), strings.Trim(fmt.Sprint(sizes), "[]"), strings.Join(directions, " "), strings.Join(kinds, " "))
	if v.Type.Size() > 1 {
		b.WriteString("endian: little\n")
	}
	fmt.Fprintf(&b, "encoding: %s\nspace units: \"mm\" \"mm\" \"mm\"\nspace origin: %s\n\n", encoding, column(3))
	return []byte(b.String()), nil
}
