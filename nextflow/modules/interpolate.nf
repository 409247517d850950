// A slice that is missing, made from the two beside it; none where these do not fit.
process INTERPOLATE {
    tag "${name}"
    label 'cpu'
    maxForks Attempts.forks('interpolate', params)
    errorStrategy { Attempts.slice(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(before, stageAs: 'before/*'), path(after, stageAs: 'after/*')
    tuple val(flags), val(program)

    output:
    tuple val("${name}_interpolated"), path("interpolated/${name}_interpolated.ome.zarr"), val(''), optional: true, emit: slice
    path "interpolate/${name}_manifest.csv", emit: manifest
    path "interpolate/${name}_interpolated_diagnostics.json", emit: diagnostics
    path "reports/${name}.interpolate.json", emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p interpolated interpolate reports
    interpolate '${before}' '${after}' 'interpolated/${name}_interpolated.ome.zarr' --slice_id ${Inputs.number(name)} \\
        --diagnostics 'interpolate/${name}_interpolated_diagnostics.json' --manifest_entry 'interpolate/${name}_manifest.csv' \\
        --report 'reports/${name}.interpolate.json' \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.host(task)}
    printf '%s:\\n  interpolate: "%s"\\n' '${task.process}' "\$(interpolate --version | sed 's/^interpolate //')" > versions.yml
    """

    stub:
    """
    mkdir -p 'interpolated/${name}_interpolated.ome.zarr' interpolate reports
    touch 'interpolate/${name}_manifest.csv' 'interpolate/${name}_interpolated_diagnostics.json' 'reports/${name}.interpolate.json'
    printf '%s:\\n  interpolate: stub\\n' '${task.process}' > versions.yml
    """
}
