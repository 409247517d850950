// A slice without the axial profile of the beam, which its agarose shows.
process BEAM_PROFILE {
    tag "${name}"
    label 'cpu'
    maxForks Attempts.forks('beam_profile', params)
    errorStrategy { Attempts.slice(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(slice, stageAs: 'input/*'), val(fingerprint)
    tuple val(flags), val(program)

    output:
    tuple val(name), path("beam_profile/${name}.ome.zarr"), val(''), emit: slice
    path "beam_profile/${name}*_metrics.json", emit: metrics
    path "reports/${name}.beam-profile.json", emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p beam_profile reports
    beam-profile '${Inputs.where(slice, fingerprint)}' 'beam_profile/${name}.ome.zarr' \\
        --report 'reports/${name}.beam-profile.json' \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.host(task)} --no-use_gpu
    printf '%s:\\n  beam-profile: "%s"\\n' '${task.process}' "\$(beam-profile --version | sed 's/^beam-profile //')" > versions.yml
    """

    stub:
    """
    mkdir -p 'beam_profile/${name}.ome.zarr' reports
    touch 'beam_profile/${name}.ome_metrics.json' 'reports/${name}.beam-profile.json'
    printf '%s:\\n  beam-profile: stub\\n' '${task.process}' > versions.yml
    """
}
