package filelayer

import (
	"fmt"
	"os"
)

// Flags translates a mode of C, Python and KvikIO into flags for [Pool.Open]: "r" opens an existing file for
// reading, "w" creates or truncates a file for writing; "r+" and "w+" do so for reading and writing. "a" does
// not exist, since every write has an offset.
func Flags(mode string) (int, error) {
	switch mode {
	case "r":
		return os.O_RDONLY, nil
	case "r+":
		return os.O_RDWR, nil
	case "w":
		return os.O_WRONLY | os.O_CREATE | os.O_TRUNC, nil
	case "w+":
		return os.O_RDWR | os.O_CREATE | os.O_TRUNC, nil
	}
	return 0, fmt.Errorf("%q is not r, r+, w or w+", mode)
}
