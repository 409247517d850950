// All slices as one volume, with an analysis pyramid.
process STACK {
    tag "${[slices].flatten().size()} slices"
    label 'gpu'
    maxForks Attempts.forks('stack', params)
    errorStrategy { Attempts.next(task) }
    ext gpu: { Attempts.gpu(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(names), path(slices, stageAs: 'input?/*'), val(fingerprints)
    tuple path(shifts, stageAs: 'shifts/*'), val(shifts_fingerprint)
    tuple path(transforms, stageAs: 'transforms/*'), val(transforms_fingerprint), val(registered)
    tuple path(manual, stageAs: 'manual/*'), val(manual_fingerprint)
    tuple path(config, stageAs: 'config/*'), val(config_fingerprint)
    tuple val(flags), val(program)

    output:
    path 'volume/volume.ome.zarr', emit: volume
    path 'volume/shifts_xy.csv', emit: shifts
    path 'volume/z_matches.csv', emit: matches
    path 'volume/stacking_decisions.csv', emit: decisions
    path 'volume/shifts_found.csv', emit: found
    path 'reports/volume.stack.json', emit: report
    path 'versions.yml', emit: versions

    script:
    // Transforms of this run come one for each slice, those that are given in one folder.
    def files = [
        transforms ? "--transforms_dir '${registered ? 'transforms' : transforms}'" : '',
        manual ? "--manual_transforms_dir '${manual}'" : '',
        config ? "--slice_config '${config}'" : '',
    ].findAll().join(' ')
    """
    mkdir -p slices volume reports
    ${Inputs.links(names, slices)}
    ${shifts ? "cp '${shifts}' volume/shifts_xy.csv" : "echo fixed_id,moving_id,x_shift,y_shift,x_shift_mm,y_shift_mm > volume/shifts_xy.csv"}
    stack slices ${shifts ? "'${shifts}'" : 'volume/shifts_xy.csv'} volume/volume.ome.zarr \\
        --output_z_matches volume/z_matches.csv --output_stacking_decisions volume/stacking_decisions.csv --output_shifts volume/shifts_found.csv \\
        --report reports/volume.stack.json \\
        ${files} \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.flags(task)}
    printf '%s:\\n  stack: "%s"\\n' '${task.process}' "\$(stack --version | sed 's/^stack //')" > versions.yml
    """

    stub:
    """
    mkdir -p volume/volume.ome.zarr reports
    touch volume/{shifts_xy,shifts_found,z_matches,stacking_decisions}.csv reports/volume.stack.json
    printf '%s:\\n  stack: stub\\n' '${task.process}' > versions.yml
    """
}
