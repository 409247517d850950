package register

import (
	"bytes"
	"io"
	"math"

	"strata/pkg/metrics"
	"strata/pkg/registration"
	"strata/pkg/smallfile"
)

// Names of the files of a pair, beside [MetricsName].
const (
	TransformName = "transform.tfm"
	OffsetsName   = "offsets.txt"
)

// File is a file of the folder of a pair.
type File struct {
	Name    string
	Fill    func(w io.Writer) error
	Content []byte // what Fill writes; see [withMetrics]
}

// withMetrics fills the files of a pair, and returns them with the file of its metrics, which names them with their
// digests, last: a file that an earlier registration left in the folder is not taken for one of this.
func withMetrics(s *metrics.Step, files []File) ([]File, error) {
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

// Placed returns the files of a pair that somebody placed by hand: its transform, its two planes, and metrics that say
// so, with a confidence of 1.
func Placed(p *registration.Placement) ([]File, error) {
	s := metrics.New("pairwise_registration")
	s.Note("fixed_volume", p.Fixed, "Fixed slice")
	s.Note("moving_volume", p.Moving, "Moving slice")
	s.Note("manual", true, "Placed by hand")
	s.Mark("translation_x", p.Placed.TX, "pixels", "Translation in X direction", metrics.OK)
	s.Mark("translation_y", p.Placed.TY, "pixels", "Translation in Y direction", metrics.OK)
	s.Mark("rotation", p.Placed.Angle*180/math.Pi, "degrees", "Rotation angle", metrics.OK)
	s.Mark("registration_confidence", 1.0, "", "Confidence: someone looked at it", metrics.OK)
	return withMetrics(s, []File{
		{Name: TransformName, Fill: func(w io.Writer) error { return registration.WriteTransform(w, p.Placed.Rigid()) }},
		{Name: OffsetsName, Fill: p.Placed.Offsets().Write},
	})
}
