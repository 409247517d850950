package stack

// referenceOptions are the defaults of the reference.
func referenceOptions() Options {
	o := DefaultStackOptions()
	o.OverlapSearch, o.ZOverlapMinCorr, o.BlendMatch, o.RepairShifts, o.IgnoreOrigins = SearchCentre, SearchCentre.MinCorr(), MatchPairwise, RepairOff, true
	o.ComposeTransforms = false
	return o
}
