package provenance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// files makes files in a folder, which becomes the current one.
func files(t testing.TB, texts map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for name, text := range texts {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// run is a record of a program that made one file of others, in a minute of a day.
func run(tool string, minute int, out string, in ...string) string {
	inputs := []string{}
	for _, name := range in {
		inputs = append(inputs, fmt.Sprintf(`{"path":%q,"bytes":4,"modified":"2040-01-01T00:00:00Z"}`, name))
	}
	return fmt.Sprintf(`{"tool":%q,"version":"1.2.0","settings":[],"started":"2026-01-02T03:%02d:00Z","wall_seconds":1,"outputs":[{"path":%q,"bytes":4}],"inputs":[%s]}`,
		tool, minute, out, strings.Join(inputs, ","))
}

func trace(t testing.TB, path string, o Options) *History {
	t.Helper()
	h, err := Trace(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(h); err != nil {
		t.Fatal(err)
	}
	return h
}

// steps are the images of a history with their programs and problems.
func steps(h *History) (out []string) {
	for _, im := range h.Images {
		s := im.Path + " " + im.Kind
		if im.Run != nil {
			s += " " + im.Run.Program
		}
		for _, p := range im.Problems {
			s += " " + p.Kind
		}
		out = append(out, s)
	}
	return out
}

func TestTrace(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		image string
		want  []string
	}{
		"a chain": {map[string]string{"c": "data", "b": "data", "a": "data", "reports/1.json": run("crop", 1, "b", "a"), "reports/2.json": run("smooth", 2, "c", "b")},
			"c", []string{"c made smooth", "b made crop", "a source"}},
		"a file that each slice had for a time": {map[string]string{"v": "data", "r1": "data", "r2": "data",
			"1.json": run("crop", 1, "tmp", "r1"), "2.json": run("smooth", 2, "s1", "tmp"), "3.json": run("crop", 3, "tmp", "r2"), "4.json": run("smooth", 4, "s2", "tmp"),
			"5.json": run("stack", 5, "v", "s1", "s2")},
			"v", []string{"v made stack input_missing input_missing", "s1 missing smooth input_missing", "tmp missing crop", "r1 source", "s2 missing smooth input_missing", "tmp missing crop", "r2 source"}},
		"one input of two, used twice": {map[string]string{"d": "data", "c": "data", "b": "data", "a": "data",
			"1.json": run("crop", 1, "b", "a"), "2.json": run("crop", 2, "c", "a"), "3.json": run("stack", 3, "d", "b", "c", "b")},
			"d", []string{"d made stack", "b made crop", "a source", "c made crop"}},
		"the later record counts, and none of a run that failed": {map[string]string{"b": "data", "a": "data", "1.json": run("crop", 5, "b", "a"), "2.json": run("smooth", 2, "b", "a"),
			"3.json": strings.Replace(run("align", 9, "b", "a"), `"tool":"align"`, `"tool":"align","exit_code":1`, 1)},
			"b", []string{"b made crop", "a source"}},
		"made again": {map[string]string{"c": "data", "b": "data", "1.json": run("crop", 3, "b"), "2.json": run("smooth", 2, "c", "b")},
			"c", []string{"c made smooth input_changed", "b made crop"}},
		"another size": {map[string]string{"c": "data", "b": "other data", "2.json": run("smooth", 2, "c", "b")},
			"c", []string{"c made smooth input_changed", "b source"}},
		"changed itself": {map[string]string{"c": "other data", "b": "data", "2.json": run("smooth", 2, "c", "b")},
			"c", []string{"c made smooth image_changed", "b source"}},
		"deleted": {map[string]string{"c": "data", "a": "data", "1.json": run("crop", 1, "b", "a"), "2.json": run("smooth", 2, "c", "b")},
			"c", []string{"c made smooth input_missing", "b missing crop", "a source"}},
		"a cycle": {map[string]string{"a": "data", "b": "data", "1.json": run("crop", 1, "b", "a"), "2.json": run("smooth", 2, "a", "b")},
			"a", []string{"a made smooth", "b made crop cycle"}},
		"changed in place": {map[string]string{"a": "data", "b": "data", "1.json": run("crop", 1, "b", "a"), "2.json": run("zarr-tool", 2, "b", "b")},
			"b", []string{"b made zarr-tool", "b made crop", "a source"}},
		"on another server": {map[string]string{"a": "data", "1.json": run("crop", 1, "a", "https://127.0.0.1:1/in.ome.zarr", "s3://b/in.ome.zarr?X-Amz-Signature=xxxxx")},
			"a", []string{"a made crop", "https://127.0.0.1:1/in.ome.zarr unseen unseen", "s3://b/in.ome.zarr?X-Amz-Signature=xxxxx unseen unseen"}},
		"a level of an image": {map[string]string{"i.zarr/x": "data", "a": "data", "1.json": run("crop", 1, "i.zarr", "a"), "b": "data", "2.json": run("smooth", 2, "b", "i.zarr/0")},
			"b", []string{"b made smooth", "i.zarr made crop", "a source"}},
		"a folder of inputs": {map[string]string{"b": "data", "t/1": "data", "t/2": "data", "t/raw": "data", "r1.json": run("register", 1, "t/1"), "r2.json": run("register", 1, "t/2"), "r3.json": run("stack", 2, "b", "t")},
			"b", []string{"b made stack input_changed", "t folder", "t/1 made register", "t/2 made register"}},
		"published": {map[string]string{ // the folders of the tasks are gone
			"results/a/x.csv": "data", "results/b/x.csv": "data",
			"results/reports/x.1.json": strings.Replace(run("crop", 1, "a/x.csv"), `"tool"`, `"tool":"crop","folder":"/nowhere/ab/1","x"`, 1),
			"results/reports/x.2.json": strings.Replace(run("smooth", 2, "b/x.csv", "input/x.csv"), `"tool"`, `"tool":"smooth","folder":"/nowhere/ab/2","x"`, 1)},
			"results/b/x.csv", []string{"results/b/x.csv made smooth", "results/a/x.csv made crop"}},
	} {
		t.Run(name, func(t *testing.T) {
			files(t, c.files)
			h := trace(t, c.image, Options{})
			if got := steps(h); !slices.Equal(got, c.want) {
				t.Errorf("%q\nwant %q", got, c.want)
			}
			if stale := strings.Contains(fmt.Sprint(c.want), InputChanged); h.Stale != stale {
				t.Errorf("stale: %v", h.Stale)
			}
		})
	}
}

// The time at which an input was modified counts, unless it was moved.
func TestModified(t *testing.T) {
	record := strings.Replace(run("smooth", 2, "c", "b"), "2040-01-01", "2026-01-01", 1)
	dir := files(t, map[string]string{"c": "data", "b": "data", "r.json": strings.Replace(record, `"tool"`, `"folder":"FOLDER","tool"`, 1)})
	text, err := os.ReadFile("r.json")
	if err != nil {
		t.Fatal(err)
	}
	for folder, stale := range map[string]bool{dir: true, "/nowhere": false} {
		made := strings.Replace(string(text), `"folder":"FOLDER","tool":"smooth"`, `"tool":"smooth","folder":"`+folder+`"`, 1)
		if err := os.WriteFile("r.json", []byte(made), 0o666); err != nil {
			t.Fatal(err)
		}
		if h := trace(t, "c", Options{}); h.Stale != stale || h.Images[0].Run == nil {
			t.Errorf("%s: %q", folder, steps(h))
		}
	}
	if err := os.Chtimes("b", time.Time{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("r.json", []byte(strings.Replace(string(text), `"folder":"FOLDER","tool":"smooth"`, `"tool":"smooth","folder":"`+dir+`"`, 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	if h := trace(t, "c", Options{}); h.Stale {
		t.Errorf("%q", steps(h))
	}
}

// A history ends somewhere, however deep or wide the records make it.
func TestLimits(t *testing.T) {
	texts := map[string]string{"0": "data"}
	for i := range mostDepth + 50 {
		texts[fmt.Sprintf("reports/%d.json", i)] = run("crop", 1, fmt.Sprintf("f%d", i), fmt.Sprintf("f%d", i+1))
	}
	var many []string
	for i := range mostImages + 50 {
		many = append(many, fmt.Sprintf("n%d", i))
	}
	texts["reports/wide.json"] = run("stack", 1, "wide", many...)
	files(t, texts)
	for image, most := range map[string]int{"f0": mostDepth + 1, "wide": mostImages} {
		if h := trace(t, image, Options{}); len(h.Images) != most || h.Complete || !strings.Contains(strings.Join(steps(h), " "), " "+Limit) {
			t.Errorf("%s: %d images, complete %v", image, len(h.Images), h.Complete)
		}
	}
}

// What is no record is passed over, and texts of records show no secrets and are not endless.
func TestHostile(t *testing.T) {
	texts := map[string]string{"b": "data", "reports/no.json": "{", "reports/other.json": `{"tool":1}`, "x.json": `[]`, "big.json": `{"tool":"crop","x":"` + strings.Repeat("y", mostRecordBytes) + `"}`}
	texts["r.json"] = `{"tool":"crop","version":"` + strings.Repeat("9", 1e5) + `","wall_seconds":-1e308,"started":"0001-01-01T00:00:00Z","arguments":["https://u:s3cr3t@h/a?token=s3cr3t"],
		"warnings":["at https://u:s3cr3t@h/a?token=s3cr3t"` + strings.Repeat(`,"w"`, 1000) + `],"outputs":[{"path":"b","bytes":-9223372036854775808,"shape":[-1]}],
		"inputs":[{"path":""},{"path":"/"},{"path":"/dev/zero"},{"path":"https://u:s3cr3t@h/a?token=s3cr3t"},{"path":"a\u0000b"},{"path":"0/0/0"}]}`
	files(t, texts)
	h := trace(t, "b", Options{})
	if h.Images[0].Run == nil {
		t.Fatalf("%q", steps(h))
	}
	text, err := json.Marshal(h)
	if err != nil || strings.Contains(string(text), "s3cr3t") || len(text) > 50_000 {
		t.Errorf("%.5000s, %v", text, err)
	}
	if n := len(h.Images[0].Run.Warnings); n != mostWarnings+1 {
		t.Errorf("%d warnings", n)
	}
	for _, named := range []string{"nowhere", "x.json"} {
		if _, err := Trace(t.Context(), "b", Options{Records: []string{named}}); err == nil {
			t.Errorf("%s counts as a record", named)
		}
	}
}

func FuzzTrace(f *testing.F) {
	f.Add([]byte(run("crop", 1, "b", "a")), []byte(run("smooth", 2, "a", "b")))
	f.Add([]byte(`{"tool":"crop","inputs":[{"path":"b/0"}],"outputs":[{"path":"b"}],"files":[{"path":"b"}]}`), []byte(`{"tool":""}`))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		files(t, map[string]string{"b": "data", "1.json": string(one), "2.json": string(two)})
		h := trace(t, "b", Options{})
		for _, im := range h.Images {
			for _, id := range im.Inputs {
				if id < 0 || id >= len(h.Images) {
					t.Fatalf("image %d has the input %d of %d", im.ID, id, len(h.Images))
				}
			}
		}
	})
}
