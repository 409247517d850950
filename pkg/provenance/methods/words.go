package methods

// sentences say what programs do to images, by their names or those of their sub-commands. Other programs, such as
// view, are not part of how an image was made.
var sentences = map[string]string{
	"mosaic":           "Raw tiles were assembled into mosaic grids",
	"aip":              "Average intensity projections along z were computed",
	"resample":         "Mosaic grids were resampled",
	"focal":            "The curvature of the focal plane was corrected",
	"flatfield":        "Uneven illumination was estimated from all tiles and corrected",
	"stitch":           "Tiles were stitched into slices",
	"stitch estimate":  "Positions of tiles were estimated from their overlaps",
	"beam-profile":     "Slices were divided by the axial profile of the beam",
	"crop":             "Images were cropped to a depth below the tissue surface",
	"attenuation":      "The decay of the signal with depth was compensated",
	"normalize":        "Intensities were brought to a common scale",
	"slices config":    "Slices were listed in a table",
	"slices assess":    "Slices were assessed by their likeness to their neighbours",
	"slices exclude":   "Slices that registered badly were excluded",
	"slices finalise":  "The choice of slices was completed",
	"shifts estimate":  "Shifts between slices were computed from stage positions",
	"shifts clean":     "Outliers among the shifts between slices were repaired",
	"common-space":     "Slices were placed on a common canvas",
	"interpolate":      "Missing slices were interpolated from their neighbours",
	"register":         "Adjacent slices were registered to each other",
	"manual apply":     "Registrations were corrected by hand",
	"manual transform": "Slices were moved by transforms chosen by hand",
	"stack":            "Slices were stacked into one volume",
	"bias-field":       "The bias field of the volume was estimated and removed",
	"align":            "The volume was registered to a template",
	"smooth":           "Images were filtered",
	"phantom":          "Synthetic specimens were simulated",
	"zarr-tool import": "Image files were converted to OME-Zarr",
	"zarr-tool clip":   "Intensities were clipped",
	"zarr-tool mask":   "A mask of the specimen was computed",
}

// The references, as CITATION.cff and CITATIONS.md have them; a test compares them.
const (
	strataReference = "The strata authors. strata: from mosaic grids to one volume for serial-sectioning OCT and whole-slide microscopy. Software, version %s."
	nextflow        = "Di Tommaso P, Chatzou M, Floden EW, Barja PP, Palumbo E, Notredame C. Nextflow enables reproducible computational workflows. Nat Biotechnol 35, 316–319 (2017). doi:10.1038/nbt.3820"
	omeZarr         = "Moore J et al. OME-Zarr: a cloud-optimized bioimaging file format with international community support. Histochem Cell Biol 160, 223–251 (2023). doi:10.1007/s00418-023-02209-1"
	basic           = "Peng T, Thorn K, Schroeder T, Wang L, Theis FJ, Marr C, Navab N. A BaSiC tool for background and shading correction of optical microscopy images. Nat Commun 8, 14836 (2017). doi:10.1038/ncomms14836"
	phase           = "Kuglin CD, Hines DC. The phase correlation image alignment method. Proc IEEE Int Conf Cybernetics and Society, 163–165 (1975)"
	n4              = "Tustison NJ, Avants BB, Cook PA, Zheng Y, Egan A, Yushkevich PA, Gee JC. N4ITK: improved N3 bias correction. IEEE Trans Med Imaging 29, 1310–1320 (2010). doi:10.1109/TMI.2010.2046908"
)

// referencesOf are the methods of others that programs use.
var referencesOf = map[string][]string{
	"focal": {basic}, "flatfield": {basic}, "stitch": {phase}, "stack": {phase}, "bias-field": {n4},
}
