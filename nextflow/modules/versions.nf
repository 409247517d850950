// The versions of all that took part in a run, in one file.
process VERSIONS {
    label 'tiny'
    errorStrategy { Attempts.next(task) }
    publishDir "${params.outdir}/pipeline_info", mode: 'copy', overwrite: true

    input:
    val versions

    output:
    path 'versions.yml'

    script:
    def lines = [
        'workflow:',
        "  strata: \"${workflow.manifest.version}\"",
        "  nextflow: \"${nextflow.version}\"",
    ] + versions.join('').readLines()
    """
    printf '%s\\n' ${lines.collect { one -> "'${one}'" }.join(' ')} > versions.yml
    """

    stub:
    """
    touch versions.yml
    """
}
