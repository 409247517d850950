// The shifts between slices as the stage had them, by the info.txt of all tiles.
process SHIFTS {
    tag "${[infos].flatten().size()} slices"
    label 'table'
    errorStrategy { Attempts.next(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    path infos, stageAs: 'info/*'
    tuple val(flags), val(program)

    output:
    path 'shifts/shifts_xy.csv', emit: shifts
    path 'reports/shifts.estimate.json', emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p shifts reports raw
    cp -rL info/. raw/
    shifts estimate raw shifts/shifts_xy.csv \\
        --report reports/shifts.estimate.json \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.share(task)}
    printf '%s:\\n  shifts: "%s"\\n' '${task.process}' "\$(shifts --version | sed 's/^shifts //')" > versions.yml
    """

    stub:
    """
    mkdir -p shifts reports
    touch shifts/shifts_xy.csv reports/shifts.estimate.json
    printf '%s:\\n  shifts: stub\\n' '${task.process}' > versions.yml
    """
}
