package affine

// Rules selects how the matrix is estimated.
type Rules string

// Values of Rules.
const (
	// RulesConsensus looks for tiles wherever they may overlap, and lets pairs check each other.
	RulesConsensus Rules = "consensus"
	// RulesReference compares the middle planes of the stated overlaps and takes the mean of all pairs, like linumpy.
	RulesReference Rules = "reference"
)

// AllRules lists all values of [Rules].
var AllRules = []string{string(RulesConsensus), string(RulesReference)}

// ByReference says that an estimate followed the reference's rules.
const ByReference = "by the reference's rules"
