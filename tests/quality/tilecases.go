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
