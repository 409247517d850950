package main

import "strata/tests/tilescan"

// smallTiles names the kinds and pictures that CI tries.
var smallTiles = map[string][]string{
	"base": {"brick.png", "moon.png"},
	"3 × 3 tiles, overlap 30 %, stated 20 %": {"ihc.png", "brick.png"},
	"3 × 3 tiles, overlap 8 %, stated 20 %":  {"gravel.png"},
	"backlash 6 px":                          {"ihc.png"},
	"rotation 1°":                            {"camera.png"},
	"80 % empty, columns, vignette":          {"gravel.png", "camera.png"},
	"end of a specimen, 3":                   {"ihc.png"},
	"3-D, middle slice":                      {tilescan.Brain},
	"3-D, last slice, speckle":               {tilescan.Brain},
	"hard":                                   {"ihc.png"},
	"hard, overlap 5 %":                      {"brick.png"},
	"jitter 5 px":                            {"brick.png"},
	"one slip of 25 px, overlap 20 %":        {"brick.png"},
	"3-D, middle slice, speckle":             {tilescan.Brain},
}

// shownVolumes names the phantoms and ways to stack that the page shows.
var shownVolumes = []string{"easy, strata", "easy, as the reference", "hard, strata", "hard, as the reference"}

// shownFolders names the folders of TIFF tiles that the page shows.
var shownFolders = []string{"36 of 1024², ihc"}

// shownScans names the scans whose positions the page shows, as recorded and as found; a sheet beside it has all.
var shownScans = []string{
	"tissue, as recorded", "tissue, found", "little tissue, as recorded", "little tissue, found",
}

// shownTiles names the kinds of scans of pictures that the page shows.
var shownTiles = []string{
	"base", "6 × 6 tiles, overlap 5 %, stated 20 %", "rotation 2°, scale 3 %", "noise 20 %", "speckle 30 %", "80 % empty, columns, vignette",
	"hard", "hard, overlap 5 %",
}

// shownPeers names the scans beside other programs that the page shows.
var shownPeers = []string{
	"base, ihc", "6 × 6 tiles, overlap 30 %, stated 20 %", "80 % empty, columns, vignette", "hard, ihc",
}
