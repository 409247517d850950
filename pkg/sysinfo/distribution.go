package sysinfo

import "strings"

// Distribution identifies the Linux distribution, by os-release.
type Distribution struct {
	ID      string `json:"id"`      // "ubuntu"
	Version string `json:"version"` // "24.04"; "" for one that has none
	Name    string `json:"name"`    // "Ubuntu 24.04.1 LTS"
	Reason  string `json:"reason"`
}

func (r Root) distribution() Distribution {
	var reason string
	for _, name := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		b, err := r.read(name)
		if err == nil {
			return parseOSRelease(string(b))
		}
		if reason == "" {
			reason = why(name, err)
		}
	}
	return Distribution{Reason: reason}
}

func parseOSRelease(text string) Distribution {
	v := shellVariables(text)
	d := Distribution{ID: v["ID"], Version: v["VERSION_ID"], Name: v["PRETTY_NAME"]}
	if d.Name == "" {
		d.Name = strings.TrimSpace(v["NAME"] + " " + v["VERSION_ID"])
	}
	if d.ID == "" {
		d.Reason = "os-release has no ID"
	}
	return d
}

// shellVariables parses lines NAME=value, NAME="value" and NAME='value', with the escapes of a shell's double quotes.
func shellVariables(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, "=")
		if !ok || name == "" || line[0] == '#' {
			continue
		}
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			quote := value[0]
			value = value[1 : n-1]
			if quote == '"' {
				var b strings.Builder
				for i := 0; i < len(value); i++ {
					if value[i] == '\\' && i+1 < len(value) && strings.IndexByte(`"$\`+"`", value[i+1]) >= 0 {
						i++
					}
					b.WriteByte(value[i])
				}
				value = b.String()
			}
		}
		m[name] = value
	}
	return m
}
