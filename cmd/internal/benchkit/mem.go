package benchkit

import "strata/pkg/cli"

// FixedMem makes --mem of a benchmark the same on all machines by default, so that their results compare.
var FixedMem = cli.Defaults{"mem": "512MiB"}
