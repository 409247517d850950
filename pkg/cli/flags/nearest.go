package flags

import "strings"

// Nearest returns the candidate that is most similar to a mistyped word: the only one that begins with the word, or
// else the closest one with at most one edit in three letters. It returns "" if there is none.
func Nearest(word string, candidates []string) string {
	if begun := beginning(word, candidates); begun != "" {
		return begun
	}
	best, least := "", max(1, (len(word)+1)/3)+1
	for _, c := range candidates {
		if d := distance(word, c); d < least && d < len(c) {
			best, least = c, d
		}
	}
	return best
}

// beginning returns the only candidate that begins with an abbreviation, or "" if none or several do.
func beginning(word string, candidates []string) string {
	only := ""
	for _, c := range candidates {
		switch {
		case len(word) < 2 || c == only || !strings.HasPrefix(c, word):
		case only != "":
			return ""
		default:
			only = c
		}
	}
	return only
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour to get from a to b (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
