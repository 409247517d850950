// The slices stacked where the motors say, along all axes, without looking at them: what the volume would be without an estimate.
process STACK_MOTORS {
    tag "${[slices].flatten().size()} slices"
    label 'gpu'
    maxForks Attempts.forks('stack', params)
    errorStrategy { Attempts.next(task) }
    ext gpu: { Attempts.gpu(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(names), path(slices, stageAs: 'input?/*'), val(fingerprints)
    tuple path(shifts, stageAs: 'shifts/*'), val(shifts_fingerprint)
    tuple val(flags), val(program)

    output:
    path 'diagnostics/stack', emit: pictures
    path 'reports/motors.stack.json', emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p slices diagnostics/stack reports
    ${Inputs.links(names, slices)}
    stack slices '${shifts}' motor.ome.zarr --use_expected_overlap --repair_shifts off --no-use_origins --native_resolution --n_levels 2 \\
        --preview diagnostics/stack/motor.png --report reports/motors.stack.json \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.flags(task)}
    rm -rf motor.ome.zarr
    printf '%s:\\n  stack: "%s"\\n' '${task.process}' "\$(stack --version | sed 's/^stack //')" > versions.yml
    """

    stub:
    """
    mkdir -p diagnostics/stack reports
    touch diagnostics/stack/motor.png reports/motors.stack.json
    printf '%s:\\n  stack: stub\\n' '${task.process}' > versions.yml
    """
}
