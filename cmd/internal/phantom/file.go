package phantom

import (
	"bufio"
	"errors"
	"io"
	"os"
)

// writeFile creates a file with what write writes.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	err = write(w)
	return errors.Join(err, w.Flush(), f.Close())
}
