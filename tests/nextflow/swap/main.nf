#!/usr/bin/env nextflow
// A pipeline that calls linumpy's programs by their names, with the flags that
// linumpy's workflow gives them. swap.config puts links to ours before them.
nextflow.enable.dsl = 2

params.mosaic = null
params.slices = null
params.shifts = null
params.resolution = 10

process resample_mosaic_grid {
    input:
    tuple val(slice), path(mosaic)

    output:
    tuple val(slice), path("mosaic_grid_z${slice}_resampled.ome.zarr")

    script:
    """
    linum-resample-mosaic-grid ${mosaic} "mosaic_grid_z${slice}_resampled.ome.zarr" \
        -r ${params.resolution} --use_gpu --prefetch 4 --n_levels 0 -v
    """
}

process fix_focal_curvature {
    input:
    tuple val(slice), path(mosaic)

    output:
    tuple val(slice), path("mosaic_grid_z${slice}_focal_fix.ome.zarr")

    script:
    """
    linum-detect-focal-curvature ${mosaic} "mosaic_grid_z${slice}_focal_fix.ome.zarr" \\
        --n_levels 0 --use_gpu
    """
}

process generate_aip {
    publishDir params.outdir, mode: 'copy'

    input:
    tuple val(slice), path(mosaic)

    output:
    path "mosaic_grid_z${slice}_aip.ome.zarr"

    script:
    """
    linum-aip ${mosaic} "mosaic_grid_z${slice}_aip.ome.zarr"
    """
}

process crop_interface {
    publishDir params.outdir, mode: 'copy'

    input:
    tuple val(slice), path(image)

    output:
    path "slice_z${slice}_crop_interface.ome.zarr", emit: cropped
    path '*_metrics.json', optional: true, emit: metrics

    script:
    """
    linum-crop-3d-mosaic-below-interface ${image} "slice_z${slice}_crop_interface.ome.zarr" \
        --depth 100 \
        --crop_before_interface \
        --percentile_max 99.9 --n_levels 0
    """
}

process stack {
    publishDir params.outdir, mode: 'copy'

    input:
    tuple path('slices/*'), path(shifts)

    output:
    path 'mouse.ome.zarr', emit: volume
    path 'z_matches.csv', optional: true, emit: z_matches
    path 'stacking_decisions.csv', optional: true, emit: decisions

    script:
    """
    linum-stack-slices-motor slices ${shifts} mouse.ome.zarr  --blend --blend_z_refine_vox 5 --blend_z_refine_min_confidence 0.5 --slicing_interval_mm 0.14 --search_range_mm 0.1 --moving_z_first_index 2 --use_expected_overlap --z_overlap_min_corr 0.5 --output_z_matches z_matches.csv --output_stacking_decisions stacking_decisions.csv --no_xy_shift --use_gpu --pyramid_resolutions 10 25 50 100 --make_isotropic
    """
}

workflow {
    mosaics = Channel.of(['03', file(params.mosaic)])
    resample_mosaic_grid(mosaics)
    fix_focal_curvature(resample_mosaic_grid.out)
    generate_aip(fix_focal_curvature.out)
    crop_interface(fix_focal_curvature.out)
    stack(Channel.fromPath(params.slices, type: 'dir').collect().map { [it, file(params.shifts)] })
}
