package doctor

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"strata/pkg/sysinfo"
)

// docs/doctor.md has every rule and every field of the JSON.
func TestDocs(t *testing.T) {
	b, err := os.ReadFile("../../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for _, r := range rules {
		if !strings.Contains(doc, "\n| `"+r.name+"` |") || !strings.Contains(doc, "`"+r.backend+"`") {
			t.Errorf("the rule %s is missing", r.name)
		}
	}
	seen := map[reflect.Type]bool{}
	count := 0
	var walk func(reflect.Type)
	walk = func(x reflect.Type) {
		for x.Kind() == reflect.Pointer || x.Kind() == reflect.Slice || x.Kind() == reflect.Map {
			x = x.Elem()
		}
		if x.Kind() != reflect.Struct || seen[x] {
			return
		}
		seen[x] = true
		for i := range x.NumField() {
			f := x.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "-" || !f.IsExported():
				continue
			case name == "": // the value of a fact
			default:
				if count++; !strings.Contains(doc, "`"+name+"`") {
					t.Errorf("the field %s of %s is missing", name, x)
				}
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[sysinfo.Machine]())
	for _, x := range []any{state{}, check{}, reading{}, library{}, leases{}} {
		if _, ok := x.(state); ok {
			for i := range reflect.TypeFor[state]().NumField() {
				if name := reflect.TypeFor[state]().Field(i).Tag.Get("json"); name != "" && !strings.Contains(doc, "`"+name+"`") {
					t.Errorf("the field %s is missing", name)
				}
			}
			continue
		}
		walk(reflect.TypeOf(x))
	}
	if count < 100 {
		t.Errorf("only %d fields were looked at", count)
	}
}
