package guess

import (
	"cmp"
	"slices"
	"strings"
)

// channelHole stands for the name of a channel in a skeleton.
const channelHole = '\x01'

// mostGroups bounds the groups that are compared.
const mostGroups = 4096

// dyes are words by which microscopes name channels, without digits behind them.
var dyes = []string{"a", "af", "alexa", "alexafluor", "atto", "autofluorescence", "bf", "blue", "brightfield", "cfp", "cy", "dapi", "dic",
	"dsred", "egfp", "fitc", "gfp", "green", "hoechst", "mcherry", "neun", "nissl", "phase", "red", "rfp", "texasred", "tdtomato", "tritc",
	"txred", "yfp"}

// dye reports whether a word names a channel. A488 is a dye, A1 a well.
func dye(word string) bool {
	stem := strings.ToLower(strings.TrimRight(word, "0123456789"))
	return slices.Contains(dyes, stem) && (len(stem) > 1 || len(word) == len("A488"))
}

// word is a segment of a skeleton, what lies between separators, wherever it stands there.
type word struct {
	g    *group
	text string
	at   []int // where it begins
}

// words returns the segments of a skeleton that have a letter, without the end of the name.
func (g *group) words() (out []word) {
	end := strings.LastIndexByte(g.skeleton, '.')
	if end < strings.LastIndexByte(g.skeleton, '/') || end < 0 {
		end = len(g.skeleton)
	}
	for i := 0; i < end; {
		n := strings.IndexAny(g.skeleton[i:end], "_-./ ,()[]")
		if n < 0 {
			n = end - i
		}
		if s := g.skeleton[i : i+n]; strings.ContainsFunc(s, func(r rune) bool { return r > channelHole }) {
			if k := slices.IndexFunc(out, func(w word) bool { return w.text == s }); k >= 0 {
				out[k].at = append(out[k].at, i)
			} else {
				out = append(out, word{g, s, []int{i}})
			}
		}
		i += n + 1
	}
	return out
}

// key returns the skeleton with a channel in place of the word.
func (w word) key() string {
	var b strings.Builder
	from := 0
	for _, at := range w.at {
		b.WriteString(w.g.skeleton[from:at])
		b.WriteByte(channelHole)
		from = at + len(w.text)
	}
	return b.String() + w.g.skeleton[from:]
}

// fields returns the numbers of a name that are part of the word.
func (w word) fields() (out []int) {
	for _, at := range w.at {
		first := strings.Count(w.g.skeleton[:at], string(hole))
		for k := range strings.Count(w.text, string(hole)) {
			out = append(out, first+k)
		}
	}
	return out
}

// channel returns the word as the names have it; ok is false if a number in it differs between them.
func (w word) channel() (s string, ok bool) {
	s = w.text
	fields, digits := w.fields(), strings.Count(w.text, string(hole))
	for k, field := range fields {
		v := w.g.text(0, fields[k%digits]) // the word has the same digits wherever it stands
		for i := range w.g.names {
			if w.g.text(i, field) != v {
				return "", false
			}
		}
		s = strings.Replace(s, string(hole), v, 1)
	}
	return s, true
}

// channels joins groups whose names differ in one word, of which one is the name of a dye at least, and that have about
// as many names: they are channels of the same tiles.
func channels(groups []*group) []*group {
	if len(groups) > mostGroups {
		return groups
	}
	alike := map[string][]word{} // by what they share
	var keys []string
	for _, g := range groups {
		for _, w := range g.words() {
			key := w.key()
			if alike[key] == nil {
				keys = append(keys, key)
			}
			alike[key] = append(alike[key], w)
		}
	}
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(len(alike[b]), len(alike[a])) })
	joined := map[*group]bool{}
	for _, key := range keys {
		if len(alike[key]) < 2 {
			break // shorter ones follow
		}
		most, dyed := 0, false
		for _, w := range alike[key] {
			most = max(most, len(w.g.names))
		}
		list := slices.DeleteFunc(alike[key], func(w word) bool {
			name, ok := w.channel()
			out := joined[w.g] || !ok || 10*len(w.g.names) < 9*most
			dyed = dyed || !out && dye(name)
			return out
		})
		if len(list) < 2 || !dyed {
			continue
		}
		for _, w := range list {
			joined[w.g] = true
		}
		groups = append(groups, join(key, list))
	}
	return slices.DeleteFunc(groups, func(g *group) bool { return joined[g] })
}

// join makes one group of several, whose skeleton has a channel in place of their words.
func join(skeleton string, list []word) *group {
	g := &group{skeleton: skeleton, fields: strings.Count(skeleton, string(hole)), dyes: true}
	for _, w := range list {
		text, _ := w.channel()
		g.channels = append(g.channels, text)
		g.dyes = g.dyes && dye(text)
		g.names = append(g.names, w.g.names...)
		own := w.fields()
		for k, n := range w.g.numbers {
			if !slices.Contains(own, k%w.g.fields) {
				g.numbers = append(g.numbers, n)
			}
		}
	}
	slices.Sort(g.channels)
	return g
}
