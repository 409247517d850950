package stage

import (
	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/metrics"
)

// Metrics starts the file of metrics beside an output, which is put in place with it. Beside an output in a bucket
// there is none, with a warning; the result is nil then.
func Metrics(r *cli.Run, out string) (*atomic.Output, error) {
	if cli.InBucket(out) {
		r.Warn("no metrics are written beside an output in a bucket")
		return nil, nil
	}
	return r.OutputFile(metrics.FileName(out))
}

// WriteMetrics writes the metrics of a step to a file that [Metrics] started, and warns of what they judge as bad.
func WriteMetrics(r *cli.Run, file *atomic.Output, s *metrics.Step) error {
	for _, w := range append(s.Errors, s.Warnings...) {
		r.Warn("%s", w)
	}
	if file == nil {
		return nil
	}
	return file.Write(MetricsJSON(s))
}

// Shown returns a path as metrics name it, without secrets of an address.
func Shown(path string) string { return address.Address(path).String() }
