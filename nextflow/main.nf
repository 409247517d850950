#!/usr/bin/env nextflow

// Serial-section OCT: a folder of mosaic grids in, an average intensity projection
// of each out, as OME-Zarr with a pyramid and as PNG. README.md says more.

include { AIP      } from './modules/aip'
include { VERSIONS } from './modules/versions'

workflow {
    def parameters = new Parameters(file("${projectDir}/nextflow_schema.json"))
    if (params.help == true) {
        println parameters.help("nextflow run ${workflow.scriptFile.name}")
        exit 0
    }
    def problems = parameters.check(params)
    if (problems)
        exit 2, problems.join('\n')

    def mosaics = []
    try {
        mosaics = Mosaics.find(file(params.input.toString()), params.input_pattern.toString())
    }
    catch (IllegalArgumentException | IOException e) {
        exit 2, e.message
    }
    def problem = Programs.problem(['aip'], projectDir, workflow.session.config)
    if (problem && !workflow.stubRun)
        exit 2, problem
    Attempts.start(params)

    AIP(Channel.fromList(mosaics))

    AIP.out.projection.ifEmpty {
        if (Attempts.missing())
            error "no slice is left: all ${mosaics.size()} failed, the first with: ${Attempts.missing()[0][3]}"
    }
    // By content and in order, so that -resume finds the same input again.
    VERSIONS(AIP.out.versions.map { it.text }.unique().toSortedList())
}

workflow.onComplete {
    def missing = Attempts.missing()
    def table = file("${params.outdir}/pipeline_info/missing_slices.tsv")
    table.delete()
    if (missing) {
        table.parent.mkdirs()
        table.text = ([['process', 'slice', 'exit', 'reason']] + missing).collect { it.join('\t') + '\n' }.join('')
        println "strata: ${missing.size()} missing, also listed in ${table}:"
        missing.each { println "  ${it[1]}: exit ${it[2]}: ${it[3]}" }
    }
    if (workflow.success)
        println "strata: ${workflow.stats.succeedCount} tasks run, ${workflow.stats.cachedCount} from the cache; pictures in ${params.outdir}/aip"
}
