package address

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestString(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "/data/x.zarr": "/data/x.zarr", "a@b:c/d": "a@b:c/d", "": "",
		"http://u:secret@h/x":                          "http://xxxxx@h/x",
		"HTTP://u:secret@h/x":                          "HTTP://xxxxx@h/x",
		"https://token@h/x":                            "https://xxxxx@h/x",
		"--url=https://u:secret@h":                     "--url=https://xxxxx@h",
		"http://u:secret@127.0.0.1:99999/a":            "http://xxxxx@127.0.0.1:99999/a",
		"http://u:sec%zzret@h/x":                       "http://xxxxx@h/x",
		"http://u:sec/ret@h/x":                         "http://xxxxx@h/x",
		"http://u:sec#ret@h/x":                         "http://xxxxx@h/x",
		"http://u:sec ret@h/x":                         "http://xxxxx@h/x",
		"http://u:sec@ret@h/x":                         "http://xxxxx@h/x",
		"http://u:sec\"ret@h/x":                        "http://xxxxx@h/x",
		"http:/u:secret@h/x":                           "http:/xxxxx@h/x",
		`http:\\u:secret@h/x`:                          `http:\\xxxxx@h/x`,
		"http://a:secret@b,http://c:secret@d":          "http://xxxxx@b,http://xxxxx@d",
		"s3://key:secret@bucket/x":                     "s3://xxxxx@bucket/x",
		"s3://key:se/cret@bucket/x":                    "s3://xxxxx@bucket/x",
		"gs://u:secret@bucket/x":                       "gs://xxxxx@bucket/x",
		"http://h:8080/a@b/c":                          "http://h:8080/a@b/c",
		"http://[::1]:80/a@b/c":                        "http://[::1]:80/a@b/c",
		"https://h/x?a=1&b=&secret":                    "https://h/x?a=xxxxx&b=&xxxxx",
		"https://h/x#token=secret":                     "https://h/x#token=xxxxx",
		"s3://b/x?region=eu&anonymous=true":            "s3://b/x?region=eu&anonymous=true",
		"s3://b/x?X-Amz-Signature=secret&region=eu":    "s3://b/x?X-Amz-Signature=xxxxx&region=eu",
		"s3://b/x?endpoint=http://u:secret@h:9000":     "s3://b/x?endpoint=http://xxxxx@h:9000",
		"S3://b/x?region=eu&token=secret":              "S3://b/x?region=eu&token=xxxxx",
		"docker://host/name:tag@sha256:0123":           "docker://host/name:tag@sha256:0123",
		"https://unpkg.com/pkg@1.0/x":                  "https://unpkg.com/pkg@1.0/x",
		"prefix http://u:secret@h/x suffix":            "prefix http://xxxxx@h/x suffix",
		"http://u:secret@h/x?a=secret#fragment=secret": "http://xxxxx@h/x?a=xxxxx#fragment=xxxxx",
	} {
		a := Address(in)
		if got := a.String(); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		for _, verb := range []string{"%v", "%s", "%q", "%x", "%d", "%+v", "%#v"} {
			if got := fmt.Sprintf(verb, a); strings.Contains(got, "sec") || strings.Contains(got, fmt.Sprintf("%x", "sec")) {
				t.Errorf("%s of %q: %s", verb, in, got)
			}
		}
		text, err := json.Marshal(map[string]any{"a": a})
		if err != nil || strings.Contains(string(text), "sec") {
			t.Errorf("%q as JSON: %s, %v", in, text, err)
		}
		if a.Reveal() != in {
			t.Errorf("%q revealed: %q", in, a.Reveal())
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"no address":                        "no address",
		`parse "http://u:p@h/%zz": invalid`: `parse "http://xxxxx@h/%zz": invalid`,
		"from http://u:p@h/x to s3://k:s@b": "from http://xxxxx@h/x to s3://xxxxx@b",
		"http://h/x?sig=abc: 404":           "http://h/x?sig=xxxxx 404",
		"<a href='http://u:p@h'>":           "<a href='http://xxxxx@h'>",
	} {
		if got := Redact(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// What a program was given as a secret is hidden wherever it turns up, in every form.
func TestHide(t *testing.T) {
	HideIn("http://alice:p4ss%20w\"rd<@host/x?sig=0123456789abcdef&n=7")
	HideIn("s3://bucket/x?endpoint=http%3A%2F%2Fbob:hush99@h")
	HideIn("/data/no/address")
	Hide("abc", "")
	for _, text := range []string{
		`p4ss%20w"rd<`, `p4ss w"rd<`, `p4ss w\"rd<`, `p4ss w\"rd\u003c`, "p4ss w&#34;rd&lt;", "alice:p4ss%20w\"rd<", "0123456789abcdef", "hush99",
	} {
		if got := Redact("x " + text + " y"); strings.Contains(got, "p4ss") || strings.Contains(got, "0123") || strings.Contains(got, "hush") {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := Redact("alice and 7 abc at host, /data/no/address"); got != "alice and 7 abc at host, /data/no/address" {
		t.Error(got)
	}
}

func TestParse(t *testing.T) {
	for _, a := range []Address{
		"http://u:s3c/r3t@h/x", "http://u:s3cr3t@h:port/x", "http://u:%s3cr3t@h/x", "http://u:s3 cr3t@h/%zz", "http://h/x?%zz#%s3", "http://u:s3cr3t@h/%s3",
	} {
		u, err := a.Parse()
		if err == nil {
			continue
		}
		if u != nil || strings.Contains(err.Error(), "r3t") || strings.Contains(err.Error(), "s3c") {
			t.Errorf("%q: %v", a.Reveal(), err)
		}
	}
	if u, err := Address("http://u:s3cr3t@h/x").Parse(); err != nil || u.Host != "h" {
		t.Error(u, err)
	}
	if _, err := Address("http://u:s3cr3t@h:99999/x").Parse(); err == nil || err.Error() != "http://xxxxx@h:99999/x: port 99999: want 1 to 65535" {
		t.Error(err)
	}
	if _, err := Address("http://h:port/x").Parse(); err == nil || !strings.Contains(err.Error(), `http://h:port/x: invalid port ":port"`) {
		t.Error(err)
	}
	if Address("S3://b").Scheme() != "s3" || Address("a/b").Scheme() != "" {
		t.Error("scheme")
	}
}

// A password in an address never shows, whatever stands around it.
func FuzzString(f *testing.F) {
	f.Add("http", "h/x", "?a=b")
	f.Add("s3", "b:1/x@y", "#q")
	f.Fuzz(func(t *testing.T, user, host, rest string) {
		const secret = "S3CR3T-9f"
		if strings.ContainsAny(user, "/\\?#") {
			return // the authority ends in the user name
		}
		a := Address("http://" + user + ":" + secret + "@" + host + rest)
		if strings.Contains(a.String(), secret) {
			t.Errorf("%q: %q", a.Reveal(), a.String())
		}
		if again := Address(a.String()).String(); again != a.String() {
			t.Errorf("%q, then %q", a.String(), again)
		}
	})
}
