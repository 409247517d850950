#!/usr/bin/env nextflow

// Serial-section OCT: raw frames, or a folder of mosaic grids and the shifts between
// them in, one volume out, with projections, pictures and a report. README.md says more.

include { AIP          } from './modules/aip'
include { MOSAIC       } from './modules/mosaic'
include { SHIFTS       } from './modules/shifts'
include { RESAMPLE     } from './modules/resample'
include { FOCAL        } from './modules/focal'
include { FLATFIELD    } from './modules/flatfield'
include { ESTIMATE     } from './modules/estimate'
include { STITCH       } from './modules/stitch'
include { BEAM_PROFILE } from './modules/beam_profile'
include { CROP         } from './modules/crop'
include { ATTENUATION  } from './modules/attenuation'
include { NORMALIZE    } from './modules/normalize'
include { CONFIG       } from './modules/config'
include { ASSESS       } from './modules/assess'
include { CLEAN        } from './modules/clean'
include { COMMON_SPACE } from './modules/common_space'
include { INTERPOLATE  } from './modules/interpolate'
include { FINALISE     } from './modules/finalise'
include { REGISTER     } from './modules/register'
include { MANUAL       } from './modules/manual'
include { EXCLUDE      } from './modules/exclude'
include { STACK        } from './modules/stack'
include { BIAS_FIELD   } from './modules/bias_field'
include { ALIGN        } from './modules/align'
include { PREVIEW      } from './modules/preview'
include { REPORT       } from './modules/report'
include { VERSIONS     } from './modules/versions'

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
    problems = Cluster.problems(params, workflow.session.config, Chain.stages())
    if (problems)
        exit 2, problems.join('\n')
    Attempts.start(params)
    def absent = { Attempts.absent(inputs.absent(), inputs.raw ? 'not among the raw frames' : "not in the input; ${inputs.shifts?.name} names it") }
    absent()

    // A program's flags and its bytes are an input of its process: a task is found in
    // the cache when they are the same, whatever the other parameters and the dates are.
    def call = { program, flags -> [flags.findAll().join(' '), Programs.key(program)] }
    def flags = { program -> parameters.flags(program, params) }
    def format = { levels, given = params -> ["--n_levels ${levels}", parameters.flags('format', given)].findAll().join(' ') }
    def stage = { program -> call(program, [format(Chain.levels(program), Chain.format(program)), flags(program)]) }
    // The flags of a program as mosaic has them, which makes the program's image in the same pass; those of all images it has anyway.
    def within = { prefix, of -> of.findAll().join(' ').replaceAll(/--(zarr_format \S+|checksum)( |$)/, '').replaceAll(/(^| )--/, "\$1--${prefix}_") }
    def given = { file -> Inputs.marked(Inputs.optional(file)) }
    def byName = { list -> Inputs.sorted(list).transpose() }
    def together = { of -> of.toList().filter { it }.map { byName(it) } }
    // In order, so that -resume finds the same input again.
    def inOrder = { of -> of.toSortedList { a, b -> a.name <=> b.name } }

    def reports = Channel.empty()
    def versions = Channel.empty()
    def maps = Channel.empty()
    def positions = Channel.empty()
    def crops = Channel.empty()
    def tables = Channel.empty()
    def metrics = Channel.empty()
    def previews = Channel.empty()
    def projections = Channel.empty()
    // What a process says of its runs.
    def note = { out ->
        reports = reports.mix(out.report)
        versions = versions.mix(out.versions)
        if ('metrics' in out.names)
            metrics = metrics.mix(out.metrics)
    }

    // [name, image, fingerprint] from one stage to the next. What projections and
    // pictures are made of is collected on the way.
    def images = Channel.empty()
    def infos = Channel.empty()
    // The estimate is of the mosaics as they came, which overlap by more pixels than resampled ones; those that failed since are left out.
    // While slices are waited for, those that come first: the others are stitched as they come.
    def most = params.stitch_estimate_mosaics as int
    def estimated = { Chain.has('stitch') && params.stitch_transform == null && params.stitch_estimate }
    def chosen = estimated() && !params.watch ? Inputs.spread(inputs.images*.get(0), most) : null
    def resampled = Channel.empty()
    if (Chain.has('mosaic')) {
        def count = 0
        def kept = { name, number -> Chain.keepsMosaics() || estimated() && (chosen ? name in chosen : !most || number < most) }
        def frames = params.watch ? inputs.raw.watch(absent) : Channel.fromList(inputs.images)
        def products = {
            [Chain.has('aip') ? within('aip', [format(params.n_levels, Chain.explicit(params)), flags('aip')]) : '',
                Chain.has('resample') ? within('resampled', [format(Chain.levels('resample'), Chain.explicit(Chain.format('resample'))), flags('resample')]) : ''].findAll().join(' ')
        }
        MOSAIC(frames.map { it + [kept(it[0], count++)] }, stage('mosaic'), products())
        images = MOSAIC.out.mosaic
        resampled = MOSAIC.out.resampled
        infos = MOSAIC.out.info
        projections = MOSAIC.out.picture
        note(MOSAIC.out)
    }
    else {
        images = Channel.fromList(inputs.images)
    }
    def mosaics = images
    def projected = Channel.empty()
    if (!Chain.direct() && !Chain.has('mosaic'))
        projected = images.map { it + ['aip'] }

    // Each mosaic and each slice for itself.
    if (Chain.has('resample') && Chain.has('mosaic')) {
        images = resampled
    }
    else if (Chain.has('resample')) {
        RESAMPLE(images, stage('resample'))
        images = RESAMPLE.out.mosaic
        note(RESAMPLE.out)
    }
    if (Chain.has('focal')) {
        FOCAL(images, given(params.focal_correction), stage('focal'))
        images = FOCAL.out.mosaic
        maps = FOCAL.out.maps
        note(FOCAL.out)
    }
    if (Chain.has('flatfield')) {
        FLATFIELD(images, stage('flatfield'))
        images = FLATFIELD.out.mosaic
        note(FLATFIELD.out)
    }
    if (Chain.has('stitch')) {
        def transform = Channel.value(given(params.stitch_transform))
        if (estimated()) {
            def left = mosaics.filter { !chosen || it[0] in chosen }.join(images.map { [it[0]] }.filter { !chosen || it[0] in chosen })
            if (most > 0)
                left = left.take(chosen ? chosen.size() : most)
            ESTIMATE(together(left).map { it.tail() }.map { files, marks -> [files.flatten(), marks] }, call('stitch', [parameters.flag('stitch_overlap', params)]))
            transform = ESTIMATE.out.transform.map { [it, ''] }
            note(ESTIMATE.out)
        }
        STITCH(images.map { [Inputs.slice(it[0])] + it.tail() }, transform, stage('stitch'))
        images = STITCH.out.slice
        positions = STITCH.out.positions
        note(STITCH.out)
    }
    else if (['beam-profile', 'crop', 'attenuation', 'normalize', 'common-space', 'stack'].any { Chain.has(it) }) {
        images = images.map { [Inputs.slice(it[0])] + it.tail() }
    }
    if (Chain.has('beam-profile')) {
        BEAM_PROFILE(images, stage('beam-profile'))
        images = BEAM_PROFILE.out.slice
        note(BEAM_PROFILE.out)
    }
    if (Chain.has('crop')) {
        CROP(images, stage('crop'))
        images = CROP.out.slice
        crops = CROP.out.found
        note(CROP.out)
    }
    if (Chain.has('attenuation')) {
        ATTENUATION(images, stage('attenuation'))
        images = ATTENUATION.out.slice
        note(ATTENUATION.out)
    }
    if (Chain.has('normalize')) {
        NORMALIZE(images, stage('normalize'))
        images = NORMALIZE.out.slice
        note(NORMALIZE.out)
    }
    if (['stitch', 'beam-profile', 'attenuation', 'normalize'].any { Chain.has(it) } || Chain.direct())
        projected = projected.mix(images.map { it + ['aip/slices'] })
    def pictured = images

    // The slices together: where each lies. A table of them goes along, to which the stages add.
    def slices = together(images)
    def shifts = Channel.value(Inputs.marked(inputs.shifts))
    if (Chain.has('mosaic') && inputs.shifts == null && ['common-space', 'stack'].any { Chain.has(it) }) {
        SHIFTS(inOrder(infos).filter { it }, call('shifts', [flags('shifts estimate'), params.shifts_estimate_swap_xy == null && !params.mosaic_preprocess ? '--swap_xy' : '']))
        shifts = SHIFTS.out.shifts.map { [it, ''] }
        note(SHIFTS.out)
    }
    def config = Channel.value(given(params.slice_config))
    if (Chain.table() && params.slice_config == null) {
        CONFIG(slices.map { it[0] }, call('slices', [flags('slices config')]))
        config = CONFIG.out.config.map { [it, ''] }
        note(CONFIG.out)
    }
    if (Chain.has('assess')) {
        ASSESS(slices, config, call('slices', [flags('slices assess')]))
        config = ASSESS.out.config.map { [it, ''] }
        note(ASSESS.out)
    }
    def recorded = Channel.empty()
    def repaired = Channel.empty()
    if (Chain.has('clean-shifts')) {
        recorded = shifts.map { it[0] }.filter { it }
        CLEAN(shifts, config, call('shifts', [flags('shifts clean')]))
        shifts = CLEAN.out.shifts.map { [it, ''] }
        if (Chain.table())
            config = CLEAN.out.config.map { [it, ''] }
        repaired = CLEAN.out.shifts.mix(CLEAN.out.diagnostics)
        note(CLEAN.out)
    }
    if (Chain.has('common-space')) {
        COMMON_SPACE(slices, shifts, config, stage('common-space'))
        def placed = COMMON_SPACE.out.slices.map { of -> Inputs.sorted([of].flatten().collect { [it.name - '.ome.zarr', it, ''] }) }
        images = placed.flatMap { it }
        note(COMMON_SPACE.out)
        if (Chain.has('interpolate')) {
            INTERPOLATE(placed.flatMap { Gaps.between(it) }, stage('interpolate'))
            def filled = INTERPOLATE.out.slice
            INTERPOLATE.out.manifest.subscribe { Gaps.told(it) }
            images = images.mix(filled)
            note(INTERPOLATE.out)
            FINALISE(inOrder(INTERPOLATE.out.manifest).filter { it }, config, call('slices', [flags('slices finalise')]))
            // Where nothing lacks the table is as it was.
            config = FINALISE.out.config.map { [it, ''] }.concat(config).first()
            note(FINALISE.out)
        }
        slices = together(images)
    }
    def pairs = Channel.value([])
    def transforms = Channel.value(given(params.transforms_dir) + [false])
    if (Chain.has('register')) {
        REGISTER(slices.flatMap { Gaps.pairs(it) }, call('register', [flags('register'), parameters.flag('stack_slicing_interval_mm', params), parameters.flag('stack_search_range_mm', params)]))
        def found = inOrder(REGISTER.out.transform)
        note(REGISTER.out)
        if (Chain.has('manual')) {
            MANUAL(slices, found, call('manual', [flags('manual')]))
            note(MANUAL.out)
        }
        if (Chain.has('exclude')) {
            EXCLUDE(found.filter { it }, config, call('slices', [flags('slices exclude')]))
            config = EXCLUDE.out.config.map { [it, ''] }.concat(config).first()
            note(EXCLUDE.out)
        }
        transforms = found.map { [it, '', true] }
        pairs = found
    }

    if (Chain.has('stack')) {
        def pyramid = ['stack_pyramid_resolutions', 'stack_make_isotropic'].collect { parameters.flag(it, params) }
        // Slices on one canvas are not to be moved by their shifts once more.
        STACK(slices, shifts, transforms, given(params.manual_transforms_dir), config, call('stack', [flags('format'), flags('stack'), Chain.has('common-space') && !params.stack_no_xy_shift ? '--no_xy_shift' : '',
            params.stack_blend_match == null ? '--blend_match ' + (Chain.has('normalize') ? 'none' : 'depth') : '']))
        def volume = STACK.out.volume
        tables = STACK.out.shifts.mix(STACK.out.found, STACK.out.matches, STACK.out.decisions)
        note(STACK.out)
        if (Chain.has('bias-field')) {
            BIAS_FIELD(volume, slices.map { it[0].size() }, call('bias-field', [flags('format'), flags('bias-field')] + pyramid))
            volume = BIAS_FIELD.out.volume
            note(BIAS_FIELD.out)
        }
        projected = projected.mix(volume.map { ['volume', it, '', 'aip'] })
        pictured = pictured.mix(volume.map { ['volume', it, ''] })
        if (Chain.has('align')) {
            ALIGN(volume, given(params.align_template), call('align', [flags('format'), flags('align')] + pyramid))
            versions = versions.mix(ALIGN.out.versions)
        }
    }
    if (Chain.has('aip')) {
        AIP(projected, call('aip', [format(params.n_levels), flags('aip')]))
        projections = projections.mix(AIP.out.picture)
        note(AIP.out)
    }
    if (Chain.has('preview')) {
        PREVIEW(pictured, call('preview', [flags('preview')]))
        previews = PREVIEW.out.picture
        note(PREVIEW.out)
    }
    if (Chain.has('qc-report')) {
        def results = file(params.outdir.toString())
        def name = results.name == 'results' && results.parent ? results.parent.name : results.name
        REPORT(inOrder(reports).filter { it }, inOrder(previews), inOrder(projections), inOrder(maps), inOrder(positions),
            inOrder(crops), inOrder(tables), inOrder(recorded), inOrder(repaired), metrics.toSortedList { a, b -> a.name <=> b.name ?: a.toString() <=> b.toString() }, pairs, (params.qc_report_title ?: "Quality report: ${name}").toString(), call('qc-report', [flags('qc-report')]))
        versions = versions.mix(REPORT.out.versions)
    }

    def left = images
    if (Chain.has('mosaic') && !Chain.keepsMosaics() && Chain.last() == 'mosaic')
        left = MOSAIC.out.projection
    else if (!Chain.last() && Chain.has('aip'))
        left = AIP.out.projection
    left.ifEmpty {
        if (Attempts.stopped())
            return // that is the reason
        if (params.watch && !inputs.count())
            error "no slice appeared in ${params.raw} for ${params.watch_idle}"
        def missing = Attempts.missing().findAll { it[0] != 'INPUT' }
        if (missing && missing.collect { Inputs.slice(it[1]) }.unique().size() >= inputs.count())
            error "no slice is left: all ${inputs.count()} failed, the first with: ${missing[0][3]}"
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
        def made = Attempts.interpolated()
        def rest = missing.any { it[0] == 'REGISTER' } ? 'transforms or pictures' : 'pictures'
        def what = slices ? "${slices.size()} ${slices.size() == 1 ? 'slice' : 'slices'} missing (${slices.join(', ')})${made ? "; made up for by interpolation: ${made.join(', ')}" : ''}" : "no slice missing, but ${rest} of some"
        println "strata: ${what}, also listed in ${table}:"
        missing.each { println "  ${it[1]}: ${it[0]}: ${it[2] == '-' ? '' : "exit ${it[2]}: "}${it[3]}" }
    }
    def stopped = Attempts.stopped()
    if (stopped)
        println "strata: stopped by ${stopped[0]}${stopped[1] ? " (${stopped[1]})" : ''}: ${stopped[2] == '-' ? '' : "exit ${stopped[2]}: "}${stopped[3]}"
}
