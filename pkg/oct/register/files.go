package register

import (
	"bytes"
	"io"

	"strata/pkg/metrics"
	"strata/pkg/smallfile"
)

// File is a file of the folder of a pair.
type File struct {
	Name    string
	Fill    func(w io.Writer) error
	Content []byte // what Fill writes; see [WithMetrics]
}

// WithMetrics fills the files of a pair, and returns them with the file of its metrics, which names them with their
// digests, last: a file that an earlier registration left in the folder is not taken for one of this.
func WithMetrics(s *metrics.Step, files []File) ([]File, error) {
	digests := map[string]string{}
	for i := range files {
		var b bytes.Buffer
		if err := files[i].Fill(&b); err != nil {
			return nil, err
		}
		files[i].Content = b.Bytes()
		digests[files[i].Name] = smallfile.Digest(b.Bytes())
	}
	s.Note("files", digests, "Files of this registration, with their digests")
	text, err := s.JSON()
	return append(files, File{Name: MetricsName, Content: text}), err
}
