// Package registration reads the results of other programs about the relative positions of slices: the shifts
// between slices from the stage's motors ([ReadShifts]), the pairwise transforms ([Folder]), and which slices
// to trust ([ReadSliceConfig]). For the tiles of a slice it reads the positions that the stage recorded
// ([ReadTilePositions]).
//
// [ShiftTable] and [SliceTable] keep every row and column of a file, so that a program can change the table and
// write it. [ReadManifest] reads which missing slices were interpolated.
//
// Readers accept the variants that spreadsheets and Python produce (byte order mark, CRLF, padded numbers,
// further columns) and refuse anything ambiguous. Errors are one line and begin with file and line:
// "shifts.csv:3: …".
package registration
