package golden

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// Image unpacks the input of a case, a zip file with one image of any name, and returns the image's path.
func Image(t testing.TB, c Case) string {
	t.Helper()
	var p struct{ Input string }
	if err := json.Unmarshal(c.Params, &p); err != nil || p.Input == "" {
		t.Fatalf("%s: no input: %v", c.Name, err)
	}
	found, err := filepath.Glob(filepath.Join(Unpack(t, p.Input), "*.ome.zarr"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %s holds %v, %v", c.Name, p.Input, found, err)
	}
	return found[0]
}
