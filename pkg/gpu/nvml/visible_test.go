package nvml

import (
	"strings"
	"testing"
)

func listed() []Device {
	return []Device{
		{Name: "A", UUID: "GPU-aaaa0000-0000-0000-0000-000000000000", PCI: "0000:01:00.0"},
		{Name: "A", UUID: "GPU-aaab0000-0000-0000-0000-000000000000", PCI: "0000:02:00.0"},
		{Name: "A", UUID: "GPU-cccc0000-0000-0000-0000-000000000000", PCI: "0000:03:00.0", MIG: &Switch{true, true}, Instances: []Instance{
			{UUID: "MIG-dddd0000-0000-0000-0000-000000000000", GPU: 1},
			{UUID: "MIG-ddee0000-0000-0000-0000-000000000000", GPU: 2, Compute: 1},
		}},
	}
}

// What CUDA's programming guide says of the variable.
func TestVisible(t *testing.T) {
	for list, want := range map[string]string{
		"0":                 "GPU-aaaa",
		"1,0":               "GPU-aaab GPU-aaaa",
		" 1 , 0 ":           "GPU-aaab GPU-aaaa",
		"0,-1,1":            "GPU-aaaa",
		"0,3,1":             "GPU-aaaa",
		"":                  "",
		"NoDevFiles":        "",
		"-1":                "",
		"0,1,0":             "GPU-aaaa GPU-aaab",
		"2":                 "MIG-dddd",
		"GPU-aaab":          "GPU-aaab",
		"GPU-AAAB0":         "GPU-aaab",
		"GPU-aaa":           "", // two begin so
		"GPU-":              "",
		"GPU-cccc":          "MIG-dddd",
		"gpu-aaab":          "",
		"aaab":              "",
		"MIG-ddee0000":      "MIG-ddee",
		"MIG-ddee,1":        "MIG-ddee GPU-aaab",
		"MIG-dd":            "",
		"99999999999999999": "",
		"MIG-GPU-cccc0000-0000-0000-0000-000000000000/2/1":  "MIG-ddee",
		"MIG-GPU-cccc0000-0000-0000-0000-000000000000/3/0":  "",
		"GPU-aaaa0000-0000-0000-0000-000000000000-and-more": "",
	} {
		var got []string
		for _, u := range Visible(listed(), list) {
			got = append(got, u.ID()[:8])
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: %q, want %q", list, s, want)
		}
	}
}

func TestOrderKnown(t *testing.T) {
	mixed := listed()
	mixed[1].Name = "B"
	for _, c := range []struct {
		devices     []Device
		order, list string
		want        bool
	}{
		{listed(), "", "", true}, {nil, "", "", true}, {mixed, "", "", false}, {mixed, "PCI_BUS_ID", "", true}, {mixed, "FASTEST_FIRST", "1", false},
		{mixed, "", "GPU-aaaa,1", false}, {mixed, "", "GPU-aaaa,MIG-dddd", true},
	} {
		if got := OrderKnown(c.devices, c.order, c.list); got != c.want {
			t.Errorf("%q %q: %v", c.order, c.list, got)
		}
	}
}

func TestFind(t *testing.T) {
	d := listed()
	for _, c := range []struct{ uuid, pci, want string }{
		{"GPU-aaab0000-0000-0000-0000-000000000000", "", "GPU-aaab"},
		{"GPU-DDEE0000-0000-0000-0000-000000000000", "", "MIG-ddee"},
		{"GPU-ffff0000-0000-0000-0000-000000000000", "0000:02:00.0", "GPU-aaab"},
		{"GPU-ffff0000-0000-0000-0000-000000000000", "0000:03:00.0", ""}, // two instances lie there
		{"GPU-ffff0000-0000-0000-0000-000000000000", "", ""},
		{"", "", ""}, {"GPU-", "", ""},
	} {
		u, ok := Find(d, c.uuid, c.pci)
		if ok != (c.want != "") || ok && u.ID()[:8] != c.want {
			t.Errorf("%v: %v %v", c, u, ok)
		}
	}
}

// Whatever the variable is: no device twice, none that is not there, and what stands behind
// what names none changes nothing.
func FuzzVisible(f *testing.F) {
	for _, s := range []string{"0,1", "GPU-aaab,2", "MIG-GPU-cccc0000-0000-0000-0000-000000000000/2/1", ",,", "-0", "+1", "0x1", "GPU-\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		d := listed()
		got := Visible(d, list)
		seen := map[string]bool{}
		for _, u := range got {
			if seen[u.ID()] || u.Device == nil {
				t.Fatalf("%q: %v", list, got)
			}
			seen[u.ID()] = true
		}
		if again := Visible(d, list+",nothing,0,1,2"); len(again) != len(got) && len(got) < len(strings.Split(list, ",")) {
			t.Fatalf("%q: %d, and %d with more behind", list, len(got), len(again))
		}
	})
}
