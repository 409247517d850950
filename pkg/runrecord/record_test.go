package runrecord

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"strata/pkg/address"
	"strata/pkg/host"
	"strata/pkg/meter"
)

func TestRoundTrip(t *testing.T) {
	cpus, memory := 2.5, int64(1<<30)
	r := &Record{
		Tool: "aip", Version: "1", Commit: "abc", Arguments: []address.Address{"in", "out"}, Started: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		Host: "h", Platform: "linux/amd64", CPUModel: "c", Cgroup: host.Limits{CPUs: &cpus, Memory: &memory},
		GPU:    &GPU{"n", "u", "d", 7, 8, 9, 10, 11, map[string]int64{"gds": 9}, 12, []string{"b"}, []Trial{{"read", "a/0", map[string]float64{"nvcomp": 1e9, "host": 2e9}, "host"}}},
		Choice: &Choice{"gpu", 3, 2, "figures"}, Threads: 2, Mem: 3,
		Inputs:   []Dataset{{Path: "in", Shape: []int{1, 2}, DType: "uint16", Chunks: []int{1, 1}, Shard: []int{1, 2}, Codecs: []string{"zstd"}, Format: 3, Bytes: 4}},
		Outputs:  []Dataset{},
		Found:    map[string]any{"agreement": map[string]any{"votes": 3.0}},
		Warnings: []string{"w"}, Fallback: &Fallback{"gpu", "cpu", "r"}, Error: "e", ExitCode: 3,
		WallSeconds: 1.5, PeakResidentBytes: 5, PeakDeviceBytes: 6,
	}
	var m meter.Meter
	m.Since(meter.Decode, time.Now().Add(-time.Hour))
	m.AddRead(10)
	m.AddWritten(11)
	m.AddNonFinite(12)
	r.Measure(&m)
	if r.Phases.Decode < 3600 || r.Phases.Read != 0 || r.BytesRead != 10 || r.BytesWritten != 11 || r.NonFinite != 12 {
		t.Errorf("measured %+v", r)
	}
	path := filepath.Join(t.TempDir(), "sub", "r.json")
	for range 2 { // an existing record is replaced
		if err := r.Write(path, true); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(t.Context(), path)
	if err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%+v, %v", got, err)
	}
}

// Lists are never null: readers in other languages need not care.
func TestEmptyLists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	if err := (&Record{Tool: "aip"}).Write(path, true); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"arguments": []`, `"inputs": []`, `"outputs": []`, `"warnings": []`, `"gpu": null`, `"choice": null`, `"fallback": null`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{"": "record", "{}": "field tool is missing", "[1]": "record", `{"tool": 3}`: "tool"} {
		path := filepath.Join(dir, "r.json")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Read(t.Context(), filepath.Join(dir, "missing")); !os.IsNotExist(err) {
		t.Error(err)
	}
	if err := Check(dir, true); err == nil {
		t.Error("a folder was accepted")
	}
	if err := (&Record{}).Write(dir, true); err == nil {
		t.Error("a folder was accepted")
	}
}

func TestOnDisk(t *testing.T) {
	dir := t.TempDir()
	for name, n := range map[string]int{"a/b/c": 100, "a/d": 20, "e": 3} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, n), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	newest := time.Date(2040, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(dir, "a/d"), newest, newest); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int64{dir: 123, filepath.Join(dir, "a"): 120, filepath.Join(dir, "e"): 3, filepath.Join(dir, "x"): -1, "http://h/x": -1} {
		got, modified := OnDisk(path, 0)
		if got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
		if n, _ := OnDisk(path, 1); want >= 120 && n != -1 {
			t.Errorf("%s: %d bytes of more files than one", path, n)
		}
		if is := modified.Equal(newest); is != (want == 123 || want == 120) || modified.IsZero() != (want < 0) {
			t.Errorf("%s: modified %v", path, modified)
		}
	}
}

// The digest of metadata depends on what they say, not on how they are written.
func TestMetadataDigest(t *testing.T) {
	a := map[string]json.RawMessage{"b": []byte(`{"x": 1}`), "a": []byte("[1,\n2]")}
	same := map[string]json.RawMessage{"a": []byte("[1,2]"), "b": []byte(`{"x":1}`)}
	want := MetadataDigest(a, []int{1, 2}, "uint8")
	if got := MetadataDigest(same, []int{1, 2}, "uint8"); got != want {
		t.Error("spaces count")
	}
	for _, other := range []string{
		MetadataDigest(a, []int{12}, "uint8"), MetadataDigest(a, []int{1, 2}, "uint16"),
		MetadataDigest(map[string]json.RawMessage{"a": []byte("[1,2]")}, []int{1, 2}, "uint8"),
		MetadataDigest(map[string]json.RawMessage{"a": []byte("broken"), "b": nil}, []int{1, 2}, "uint8"),
	} {
		if other == want {
			t.Error("differences do not count")
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"tool":"aip","phases":{"read":1}}`))
	f.Add([]byte(`{"tool":"aip","inputs":[{"shape":[1e99]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "r.json")
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
		if r, err := Read(t.Context(), path); err == nil && r.Tool == "" {
			t.Error("a record without a tool")
		}
	})
}

// The digest of metrics is that of what a run found: another time or place gives the same, another number does not.
// What version 0.10.0 noted is recognised.
func TestDigestOfMetrics(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	digest := func(path string) string {
		d, err := Digest(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	text := func(time, out, number string) string {
		return "{\n  \"step_name\": \"s\",\n  \"timestamp\": \"" + time + "\",\n  \"metrics\": {\"output_volume\": {\"value\": \"" + out + "\"}, \"mean\": {\"value\": " + number + "}}\n}\n"
	}
	first := digest(write("a", text("2026-01-02", "o", "1.0")))
	if again := digest(write("b", text("2026-01-03", "p", "1.0"))); again != first {
		t.Errorf("%s at another time and place, %s before", again, first)
	}
	for _, other := range []string{text("2026-01-02", "o", "1.5"), strings.Replace(text("2026-01-02", "o", "1.0"), `"s"`, `"t"`, 1), text("2026-01-02", "o", "1.0")[1:],
		text("2026-01-02", "o", "1.0") + "x"} {
		if digest(write("c", other)) == first {
			t.Errorf("the same digest for %s", other)
		}
	}
	plain := write("d", "{\n  \"time\": 1}")
	sum := sha256.Sum256([]byte("{\n  \"time\": 1}"))
	if d := digest(plain); d != "sha256:"+hex.EncodeToString(sum[:]) {
		t.Errorf("a file that is no metrics: %s", d)
	}
	old := sha256.Sum256([]byte(text("2026-01-02", "o", "1.0")))
	for d, want := range map[string]bool{first: true, "sha256:" + hex.EncodeToString(old[:]): true, "sha256:00": false} {
		if got, err := Wrote(t.Context(), filepath.Join(dir, "a"), []string{"sha256:01", d}); got != want || err != nil {
			t.Errorf("%s: %v, %v", d, got, err)
		}
	}
}
