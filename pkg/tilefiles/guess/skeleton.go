package guess

import "strings"

// number is a run of digits in a path.
type number struct {
	start, end int
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 }

// hole stands for a number in a skeleton.
const hole = '\x00'

// split appends the numbers of a path to numbers, and its skeleton to skeleton. A number is a run of digits. Behind x
// or y it takes its decimals and its sign, too: it may be a position.
func split(path string, numbers []number, skeleton []byte) ([]number, []byte) {
	for i := 0; i < len(path); {
		if !digit(path[i]) {
			skeleton = append(skeleton, path[i])
			i++
			continue
		}
		n := number{start: i}
		for i < len(path) && digit(path[i]) {
			i++
		}
		n.end = i
		before := path[:n.start]
		signed := strings.TrimRight(before, "+-")
		if len(before)-len(signed) == 1 && axisWord(signed) {
			n.start--
			skeleton = skeleton[:len(skeleton)-1]
			before = signed
		}
		if axisWord(before) && i+1 < len(path) && path[i] == '.' && digit(path[i+1]) {
			for i++; i < len(path) && digit(path[i]); i++ {
			}
			n.end = i
		}
		numbers, skeleton = append(numbers, n), append(skeleton, hole)
	}
	return numbers, skeleton
}

// axisWord reports whether a text ends in a word for an axis along which positions run.
func axisWord(text string) bool {
	switch wordBefore(text) {
	case "x", "y", "xpos", "ypos", "posx", "posy", "stagex", "stagey":
		return true
	}
	return false
}

// wordBefore returns the word at the end of a text, in lower case, "" if there is none. One run of separators may
// follow it.
func wordBefore(text string) string {
	text = text[strings.LastIndexByte(text, '/')+1:]
	text = strings.TrimRight(text, "_-=+ ([#")
	start := len(text)
	for start > 0 && letter(text[start-1]) {
		start--
	}
	return lastHump(text[start:])
}

// lastHump returns the last word of several that are written together, as in StagePos, in lower case.
func lastHump(word string) string {
	for i := len(word) - 1; i > 0; i-- {
		if upper(word[i]) && !upper(word[i-1]) {
			if short := strings.ToLower(word[i:]); short != "x" && short != "y" || i == 1 {
				return short
			}
		}
	}
	return strings.ToLower(word)
}

func upper(c byte) bool { return c >= 'A' && c <= 'Z' }

// wordAfter returns the word at the beginning of a text, in lower case.
func wordAfter(text string) string {
	end := 0
	for end < len(text) && letter(text[end]) {
		end++
	}
	return strings.ToLower(text[:end])
}
