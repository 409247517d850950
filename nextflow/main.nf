#!/usr/bin/env nextflow

// Serial-section OCT: a folder of mosaic grids and the shifts between them in, one
// volume out, with projections, pictures and a report. README.md says more.

include { AIP      } from './modules/aip'
include { RESAMPLE } from './modules/resample'
include { FOCAL    } from './modules/focal'
include { ESTIMATE } from './modules/estimate'
include { STITCH   } from './modules/stitch'
include { CROP     } from './modules/crop'
include { STACK    } from './modules/stack'
include { PREVIEW  } from './modules/preview'
include { REPORT   } from './modules/report'
include { VERSIONS } from './modules/versions'

workflow {
    STRATA()
}

// main.nf in the root of the tree has it too: what belongs to the workflow is found from here, programs from the folder that was started.
workflow STRATA {
    def parameters = new Parameters(file("${moduleDir}/nextflow_schema.json"))
    if (params.help) {
        println parameters.help("nextflow run ${workflow.scriptFile.name}", params.help)
        exit 0
    }
    def problems = parameters.check(params)
    if (problems)
        exit 2, problems.join('\n')

    Chain.start(params)
    def inputs = null, problem = null
    try {
        inputs = new Inputs(params)
    }
    catch (IllegalArgumentException | IOException e) {
        exit 2, e.message
    }
    Programs.start(projectDir, workflow.session.config, params)
    problem = Programs.problem(Chain.programs(), workflow.workDir)
    if (problem && !workflow.stubRun)
        exit 2, problem
    problems = Cluster.problems(params, workflow.session.config, Chain.programs())
    if (problems)
        exit 2, problems.join('\n')
    Attempts.start(params)
    Attempts.absent(inputs.absent(), "not in the input; ${inputs.shifts?.name} names it")

    // A program's flags and its bytes are an input of its process: a task is found in
    // the cache when they are the same, whatever the other parameters and the dates are.
    def call = { program, flags -> [flags.findAll().join(' '), Programs.key(program)] }
    def flags = { program -> parameters.flags(program, params) }
    def format = { levels, given = params -> ["--n_levels ${levels}", parameters.flags('format', given)].findAll().join(' ') }
    def stage = { program -> call(program, [format(Chain.levels(program), Chain.format(program)), flags(program)]) }
    def given = { file -> Inputs.marked(Inputs.optional(file)) }
    def byName = { list -> list.toSorted { it[0] }.transpose() }

    def reports = Channel.empty()
    def versions = Channel.empty()
    def maps = Channel.empty()
    def positions = Channel.empty()
    def crops = Channel.empty()
    def tables = Channel.empty()
    def previews = Channel.empty()
    def projections = Channel.empty()

    // [name, image, fingerprint] from one stage to the next. What projections and
    // pictures are made of is collected on the way.
    def images = Channel.fromList(inputs.images)
    def projected = Channel.empty()
    if (!Chain.direct())
        projected = images.map { it + ['aip'] }

    if (Chain.has('resample')) {
        RESAMPLE(images, stage('resample'))
        images = RESAMPLE.out.mosaic
        reports = reports.mix(RESAMPLE.out.report)
        versions = versions.mix(RESAMPLE.out.versions)
    }
    if (Chain.has('focal')) {
        FOCAL(images, given(params.focal_correction), stage('focal'))
        images = FOCAL.out.mosaic
        maps = FOCAL.out.maps
        reports = reports.mix(FOCAL.out.report)
        versions = versions.mix(FOCAL.out.versions)
    }
    if (Chain.has('stitch')) {
        def transform = Channel.value(given(params.stitch_transform))
        if (params.stitch_transform == null && params.stitch_estimate) {
            // Of the mosaics as they came, which overlap by more pixels than resampled ones; those that failed since are left out.
            def chosen = Inputs.spread(inputs.images*.get(0), params.stitch_estimate_mosaics)
            def mosaics = Channel.fromList(inputs.images).filter { it[0] in chosen }.join(images.map { [it[0]] })
            ESTIMATE(mosaics.toList().filter { it }.map { byName(it).tail() }.map { files, marks -> [files.flatten(), marks] }, call('stitch', [parameters.flag('stitch_overlap', params)]))
            transform = ESTIMATE.out.transform.map { [it, ''] }
            reports = reports.mix(ESTIMATE.out.report)
            versions = versions.mix(ESTIMATE.out.versions)
        }
        STITCH(images.map { [Inputs.slice(it[0])] + it.tail() }, transform, stage('stitch'))
        images = STITCH.out.slice
        positions = STITCH.out.positions
        reports = reports.mix(STITCH.out.report)
        versions = versions.mix(STITCH.out.versions)
    }
    else if (Chain.has('crop') || Chain.has('stack')) {
        images = images.map { [Inputs.slice(it[0])] + it.tail() }
    }
    if (Chain.has('crop')) {
        CROP(images, stage('crop'))
        images = CROP.out.slice
        crops = CROP.out.metrics
        reports = reports.mix(CROP.out.report)
        versions = versions.mix(CROP.out.versions)
    }
    if (Chain.has('stitch') || Chain.direct())
        projected = projected.mix(images.map { it + ['aip/slices'] })
    def pictured = images

    if (Chain.has('stack')) {
        STACK(images.toList().filter { it }.map { byName(it) }, Inputs.marked(inputs.shifts), given(params.transforms_dir),
            given(params.manual_transforms_dir), given(params.slice_config), call('stack', [flags('format'), flags('stack')]))
        projected = projected.mix(STACK.out.volume.map { ['volume', it, '', 'aip'] })
        pictured = pictured.mix(STACK.out.volume.map { ['volume', it, ''] })
        tables = STACK.out.shifts.mix(STACK.out.found, STACK.out.matches, STACK.out.decisions)
        reports = reports.mix(STACK.out.report)
        versions = versions.mix(STACK.out.versions)
    }
    if (Chain.has('aip')) {
        AIP(projected, call('aip', [format(params.n_levels), flags('aip')]))
        projections = AIP.out.picture
        reports = reports.mix(AIP.out.report)
        versions = versions.mix(AIP.out.versions)
    }
    if (Chain.has('preview')) {
        PREVIEW(pictured, call('preview', [flags('preview')]))
        previews = PREVIEW.out.picture
        reports = reports.mix(PREVIEW.out.report)
        versions = versions.mix(PREVIEW.out.versions)
    }
    if (Chain.has('qc-report')) {
        def results = file(params.outdir.toString())
        def name = results.name == 'results' && results.parent ? results.parent.name : results.name
        // In order, so that -resume finds the same input again.
        def sorted = { it.toSortedList { a, b -> a.name <=> b.name } }
        REPORT(sorted(reports).filter { it }, sorted(previews), sorted(projections), sorted(maps), sorted(positions),
            sorted(crops), sorted(tables), (params.qc_report_title ?: "Quality report: ${name}").toString(), call('qc-report', [flags('qc-report')]))
        versions = versions.mix(REPORT.out.versions)
    }

    def left = images
    if (!Chain.last() && Chain.has('aip'))
        left = AIP.out.projection
    left.ifEmpty {
        if (Attempts.stopped())
            return // that is the reason
        def missing = Attempts.missing().findAll { it[0] != 'INPUT' }
        if (missing && missing.collect { Inputs.slice(it[1]) }.unique().size() >= inputs.images.size())
            error "no slice is left: all ${inputs.images.size()} failed, the first with: ${missing[0][3]}"
        if (missing)
            error "no slice is left: none of the mosaics that stitch_estimate_mosaics chose is, the first failed with: ${missing[0][3]}"
    }
    // By content and in order, as above.
    VERSIONS(versions.map { it.text }.unique().toSortedList())
}

workflow.onComplete {
    if (params.help)
        return
    def missing = Attempts.missing()
    def table = file("${params.outdir}/pipeline_info/missing_slices.tsv", glob: false)
    table.delete()
    if (workflow.success) {
        println "strata: ${workflow.stats.succeedCount} tasks run, ${workflow.stats.cachedCount} from the cache"
        Chain.results().each { what, where -> println "  ${what.padRight(12)}${params.outdir}/${where}" }
    }
    // Last, so that it is read: what failed, and why.
    if (missing) {
        table.parent.mkdirs()
        table.text = Attempts.table().collect { it + '\n' }.join('')
        def slices = Attempts.slices()
        def what = slices ? "${slices.size()} ${slices.size() == 1 ? 'slice' : 'slices'} missing (${slices.join(', ')})" : 'no slice missing, but pictures of some'
        println "strata: ${what}, also listed in ${table}:"
        missing.each { println "  ${it[1]}: ${it[0]}: ${it[2] == '-' ? '' : "exit ${it[2]}: "}${it[3]}" }
    }
    def stopped = Attempts.stopped()
    if (stopped)
        println "strata: stopped by ${stopped[0]}${stopped[1] ? " (${stopped[1]})" : ''}: ${stopped[2] == '-' ? '' : "exit ${stopped[2]}: "}${stopped[3]}"
}
