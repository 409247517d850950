// Package registration reads what other programs found out about how the
// slices of a specimen lie to each other: the shifts between slices by the
// stage's motors ([ReadShifts]), the pairwise transforms ([Folder]), which
// slices are to be trusted ([ReadSliceConfig]). Of the tiles of a slice it reads
// where the stage recorded them ([ReadTilePositions]).
//
// Readers take what spreadsheets and Python make of such files (byte order
// mark, CRLF, padded numbers, further columns) and refuse what they cannot be
// sure of. Errors are one line and begin with file and line: "shifts.csv:3: …".
package registration
