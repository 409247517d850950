package xmltext

import (
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	const latin, utf = "<a>10 \xb5m</a>", "<a>10 µm</a>"
	for text, want := range map[string]string{
		utf: "10 µm", latin: "10 µm",
		`<?xml version="1.0" encoding="UTF-8"?>` + utf:        "10 µm",
		`<?xml version="1.0" encoding="UTF-8"?>` + latin:      "10 µm",
		`<?xml version="1.0" encoding="ISO-8859-1"?>` + latin: "10 µm",
		`<?xml version="1.0" encoding="iso-8859-1"?>` + utf:   "10 Âµm", // as it says
		`<?xml version="1.0" encoding="us-ascii"?><a>b</a>`:   "b",
	} {
		var got string
		if err := Decode([]byte(text), &got); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{`<?xml version="1.0" encoding="utf-16"?><a/>`: `"utf-16" is not supported`, `<!DOCTYPE a [<!ENTITY b "bb">]><a>&b;</a>`: "entity", "<a>": "EOF"} {
		var got string
		if err := Decode([]byte(text), &got); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
