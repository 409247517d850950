package stack

import (
	"context"
	"image/png"
	"io"

	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stack"
	"strata/pkg/preview"
	"strata/pkg/units"
)

// motorOnly describes linumpy's program that puts slices on top of each other by the motor's shifts alone.
func motorOnly() cli.Alias {
	return cli.Alias{Name: "linum-stack-motor-only", Flags: map[string]string{"overlap_slices": "overlap_planes"},
		Defaults: cli.Defaults{"overlap_planes": "0", "moving_z_first_index": "0", "repair_shifts": "off", "use_origins": "false", "blend_match": "none",
			"native_resolution": "true", "n_levels": "3"},
		Ignored: []cli.Flag{
			{Name: "center_drift", Kind: cli.Bool, Ignored: "the canvas holds all slices, wherever its middle lies"},
			{Name: "no_center_drift", Kind: cli.Bool, Ignored: "the canvas holds all slices, wherever its middle lies"},
			{Name: "slice_pattern", Ignored: "slices are named slice_z<NN>*"},
		}}
}

// checkSpacing refuses distances of planes that no microscope has.
func checkSpacing(v any) error {
	um := v.(float64)
	if um == 0 {
		return nil // as the slices state
	}
	return units.CheckVoxel(um)
}

// given applies the flags that say how slices overlap and are blended, and returns an error for flags that contradict
// them.
func given(r *cli.Run, o *stack.Options) error {
	if n := r.Int("overlap_planes"); n >= 0 {
		o.OverlapPlanes = &n
		for _, f := range []string{"use_expected_overlap", "blend_z_refine_vox"} {
			if r.IsSet(f) {
				return cli.Usage("flag --%s contradicts --overlap_planes: give one of them", f)
			}
		}
	}
	switch blending := r.String("blending"); {
	case blending == "none" && o.Blend:
		return cli.Usage("flag --blending none contradicts --blend: give one of them")
	case blending == "average":
		o.Blend, o.BlendWeights = true, stack.WeightsAverage
	case blending == "feather":
		o.Blend = true
	}
	if o.Native && (r.IsSet("pyramid_resolutions") || r.IsSet("make_isotropic")) {
		return cli.Usage("flag --native_resolution contradicts --pyramid_resolutions and --make_isotropic: level 0 keeps the voxels of the slices")
	}
	return nil
}

// draw writes a picture of a volume, if there is a file for it.
func draw(ctx context.Context, file *atomic.Output, volume *ngff.Image, title string, res oct.Resources) error {
	return file.Write(func(w io.Writer) error {
		o := preview.Defaults()
		o.Title = title
		p, err := preview.Render(ctx, volume, o, oct.Resources{Workers: res.Workers, Mem: res.Mem, Meter: res.Meter, Warn: res.Warn})
		if err != nil {
			return stage.Failed(err)
		}
		return png.Encode(w, p.Image)
	})
}
