package doctor

import (
	"encoding/csv"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"strata/pkg/sysinfo"
)

// docs/doctor.md has every rule, and docs/doctor-json.csv every field of the JSON with its type, in the JSON's order.
func TestDocs(t *testing.T) {
	b, err := os.ReadFile("../../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if !strings.Contains(string(b), "\n| `"+r.name+"` |") || !strings.Contains(string(b), "`"+r.backend+"`") {
			t.Errorf("the rule %s is missing", r.name)
		}
	}
	f, err := os.Open("../../../docs/doctor-json.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, row := range rows {
		got = append(got, row[:2])
	}
	want := append([][]string{{"field", "type"}}, fields("", reflect.TypeFor[state](), nil)...)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !slices.Equal(got[i], want[i]) {
			t.Fatalf("row %d of docs/doctor-json.csv: want the field and type %q", i+1, want[min(i, len(want)-1)])
		}
	}
	if len(want) < 150 {
		t.Errorf("only %d fields were looked at", len(want))
	}
}

// fields returns the path and the type of each field of an object in the JSON, nested ones too. Of types that contain
// themselves, it returns the first level.
func fields(path string, x reflect.Type, within []reflect.Type) (rows [][]string) {
	if x.Kind() != reflect.Struct || slices.Contains(within, x) {
		return nil
	}
	for i := range x.NumField() {
		f := x.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			rows = append(rows, fields(path, f.Type, within)...)
			continue
		}
		if name == "-" || !f.IsExported() {
			continue
		}
		kind, inner := typeOf(f.Type)
		at := path + name
		if inner.Kind() != reflect.Struct || kind != "object" {
			rows = append(rows, []string{at, kind})
		}
		if strings.HasPrefix(kind, "fact of ") {
			at += ".value"
		}
		if strings.Contains(kind, "list of ") {
			at += "[]"
		}
		rows = append(rows, fields(at+".", inner, append(slices.Clone(within), x))...)
	}
	return rows
}

// typeOf names a type as the JSON has it, and returns that of the objects in it.
func typeOf(x reflect.Type) (string, reflect.Type) {
	nested := func(before string, of reflect.Type, after string) (string, reflect.Type) {
		kind, inner := typeOf(of)
		return before + kind + after, inner
	}
	switch x.Kind() {
	case reflect.Pointer:
		return nested("", x.Elem(), " or null")
	case reflect.Slice:
		return nested("list of ", x.Elem(), "")
	case reflect.Map:
		return nested("map of ", x.Elem(), "")
	case reflect.Bool:
		return "boolean", x
	case reflect.String:
		return "string", x
	case reflect.Struct:
		if x.String() == "time.Time" {
			return "time", reflect.TypeFor[string]()
		}
		if value, is := x.FieldByName("Value"); is && x.PkgPath() == reflect.TypeFor[sysinfo.Machine]().PkgPath() {
			return nested("fact of ", value.Type, "")
		}
		return "object", x
	}
	return "number", x
}
