// How the registrations turn and move the slices, and whether the scan is turned against the axes of the stage.
process ROTATION {
    label 'table'
    errorStrategy { Attempts.next(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple path(shifts, stageAs: 'shifts/*'), val(shifts_fingerprint)
    path transforms, stageAs: 'transforms/*'
    tuple val(flags), val(program)
    val shifts_program

    output:
    path 'diagnostics/registration', emit: registration
    path 'diagnostics/rotation', emit: rotation
    path 'reports/registration.register.json', emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p reports
    register analyze transforms diagnostics/registration --report reports/registration.register.json ${flags} ${task.ext.args ?: ''} ${Attempts.share(task)}
    shifts rotation '${shifts}' diagnostics/rotation --registration_dir transforms ${flags} ${task.ext.args ?: ''} ${Attempts.share(task)}
    printf '%s:\\n  register: "%s"\\n  shifts: "%s"\\n' '${task.process}' "\$(register --version | sed 's/^register //')" "\$(shifts --version | sed 's/^shifts //')" > versions.yml
    """

    stub:
    """
    mkdir -p diagnostics/{registration,rotation} reports
    touch diagnostics/registration/rotation_analysis.json diagnostics/rotation/acquisition_rotation_analysis.json reports/registration.register.json
    printf '%s:\\n  register: stub\\n' '${task.process}' > versions.yml
    """
}
