#!/usr/bin/env nextflow

// Serial-section OCT: raw frames, or a folder of mosaic grids and the shifts between
// them in, one volume out, with projections, pictures and a report. README.md says more.

include { AIP           } from './modules/aip'
include { AIP as AIP_ALONE } from './modules/aip'
include { MOSAIC        } from './modules/mosaic'
include { SHIFTS        } from './modules/shifts'
include { RESAMPLE      } from './modules/resample'
include { RESAMPLE as RESAMPLE_ALONE } from './modules/resample'
include { FOCAL         } from './modules/focal'
include { FOCAL as FOCAL_ALONE } from './modules/focal'
include { FLATFIELD     } from './modules/flatfield'
include { ESTIMATE      } from './modules/estimate'
include { STITCH        } from './modules/stitch'
include { STITCH as STITCH_ALONE } from './modules/stitch'
include { STITCH_MOTORS } from './modules/stitch_motors'
include { BEAM_PROFILE  } from './modules/beam_profile'
include { CROP          } from './modules/crop'
include { CROP as CROP_ALONE } from './modules/crop'
include { ATTENUATION   } from './modules/attenuation'
include { NORMALIZE     } from './modules/normalize'
include { CONFIG        } from './modules/config'
include { ASSESS        } from './modules/assess'
include { CLEAN         } from './modules/clean'
include { COMMON_SPACE  } from './modules/common_space'
include { INTERPOLATE   } from './modules/interpolate'
include { FINALISE      } from './modules/finalise'
include { REGISTER      } from './modules/register'
include { MANUAL        } from './modules/manual'
include { EXCLUDE       } from './modules/exclude'
include { STACK         } from './modules/stack'
include { STACK_MOTORS  } from './modules/stack_motors'
include { ROTATION      } from './modules/rotation'
include { BIAS_FIELD    } from './modules/bias_field'
include { ALIGN         } from './modules/align'
include { PREVIEW       } from './modules/preview'
include { REPORT        } from './modules/report'
include { VERSIONS      } from './modules/versions'

workflow {
    STRATA()
}

// main.nf in the root of the tree has it too: what belongs to the workflow is found from here, programs from the folder that was started.
workflow STRATA {
    def setup = new Setup(params, moduleDir, projectDir)
    if (setup.help) {
        println setup.help
        exit 0
    }
    if (setup.problems)
        exit 2, setup.problems.join('\n')
    def given = setup.params
    def inputs = setup.inputs
    def calls = setup.calls
    def estimate = setup.estimate
    def groups = setup.groups
    def ending = new Ending(given)
    workflow.onComplete { ending.tell() }

    def maps = channel.empty()
    def positions = channel.empty()
    def crops = channel.empty()
    def tables = channel.empty()
    def previews = channel.empty()
    def compared = channel.empty()
    def diagnosed = channel.empty()
    def projections = channel.empty()

    // [name, image, fingerprint] from one stage to the next. What projections and
    // pictures are made of is collected on the way.
    def images = channel.empty()
    def infos = channel.empty()
    def resampled = channel.empty()
    if (Chain.has('mosaic')) {
        def frames = given.watch ? inputs.raw.watch { setup.absent() } : channel.fromList(inputs.images)
        MOSAIC(frames.map { it -> it + [estimate.reads(it[0]) || Chain.keepsMosaics()] }, calls.stage('mosaic'), calls.products())
        images = MOSAIC.out.mosaic
        resampled = MOSAIC.out.resampled
        infos = MOSAIC.out.info
        projections = MOSAIC.out.picture
        calls.note(MOSAIC.out)
    }
    else {
        images = channel.fromList(inputs.images)
    }
    def mosaics = images
    def gridded = channel.empty()
    def projected = channel.empty()
    if (!Chain.direct() && !Chain.has('mosaic'))
        projected = images.map { it -> it + ['aip'] }

    // Each mosaic and each slice for itself.
    if (Chain.has('resample') && Chain.has('mosaic')) {
        images = resampled
    }
    else if (Chain.has('resample')) {
        RESAMPLE(groups.together(images), calls.stage('resample'))
        calls.note(RESAMPLE.out)
        def made = groups.apart(RESAMPLE.out.mosaic)
        if (groups.used()) {
            RESAMPLE_ALONE(groups.left(images, RESAMPLE.out.left), calls.stage('resample'))
            calls.note(RESAMPLE_ALONE.out)
            made = made.mix(RESAMPLE_ALONE.out.mosaic)
        }
        images = made
    }
    if (Chain.has('focal')) {
        FOCAL(groups.together(images), inputs.given(given.focal_correction), calls.stage('focal'))
        calls.note(FOCAL.out)
        def made = groups.apart(FOCAL.out.mosaic)
        maps = FOCAL.out.maps.flatten()
        if (groups.used()) {
            FOCAL_ALONE(groups.left(images, FOCAL.out.left), inputs.given(given.focal_correction), calls.stage('focal'))
            calls.note(FOCAL_ALONE.out)
            made = made.mix(FOCAL_ALONE.out.mosaic)
            maps = maps.mix(FOCAL_ALONE.out.maps)
        }
        images = made
    }
    if (Chain.has('flatfield')) {
        FLATFIELD(images, calls.stage('flatfield'))
        images = FLATFIELD.out.mosaic
        calls.note(FLATFIELD.out)
    }
    if (Chain.has('stitch')) {
        def transform = channel.value(inputs.given(given.stitch_transform))
        if (estimate.wanted) {
            ESTIMATE(inputs.together(estimate.among(mosaics, images)).map { it -> [it[1].flatten(), it[2]] }, calls.of('stitch', [calls.flag('stitch_overlap')]))
            transform = ESTIMATE.out.transform.map { it -> [it, ''] }
            calls.note(ESTIMATE.out)
        }
        gridded = images
        def grids = inputs.asSlices(images)
        def stitching = calls.stage('stitch', [estimate.refines ? '--estimate' : ''])
        STITCH(groups.together(grids), transform, stitching)
        calls.note(STITCH.out)
        images = groups.apart(STITCH.out.slice)
        positions = STITCH.out.positions.flatten()
        if (groups.used()) {
            STITCH_ALONE(groups.left(grids, STITCH.out.left), transform, stitching)
            calls.note(STITCH_ALONE.out)
            images = images.mix(STITCH_ALONE.out.slice)
            positions = positions.mix(STITCH_ALONE.out.positions)
        }
        if (given.diagnostics) {
            STITCH_MOTORS(grids.join(images.map { it -> it.take(2) }).join(positions.map { it -> [it.name - '.json', it] }), calls.of('stitch', [calls.flag('stitch_overlap'), calls.flag('stitch_blending')]))
            compared = STITCH_MOTORS.out.comparison
            calls.note(STITCH_MOTORS.out)
        }
    }
    else if (['beam-profile', 'crop', 'attenuation', 'normalize', 'common-space', 'stack'].any { it -> Chain.has(it) }) {
        images = inputs.asSlices(images)
    }
    if (Chain.has('beam-profile')) {
        BEAM_PROFILE(images, calls.stage('beam-profile'))
        images = BEAM_PROFILE.out.slice
        calls.note(BEAM_PROFILE.out)
    }
    if (Chain.has('crop')) {
        CROP(groups.together(images), calls.stage('crop'))
        calls.note(CROP.out)
        def made = groups.apart(CROP.out.slice)
        crops = CROP.out.found.flatten()
        if (groups.used()) {
            CROP_ALONE(groups.left(images, CROP.out.left), calls.stage('crop'))
            calls.note(CROP_ALONE.out)
            made = made.mix(CROP_ALONE.out.slice)
            crops = crops.mix(CROP_ALONE.out.found)
        }
        images = made
    }
    if (Chain.has('attenuation')) {
        ATTENUATION(images, calls.stage('attenuation'))
        images = ATTENUATION.out.slice
        calls.note(ATTENUATION.out)
    }
    if (Chain.has('normalize')) {
        NORMALIZE(images, calls.stage('normalize'))
        images = NORMALIZE.out.slice
        calls.note(NORMALIZE.out)
    }
    if (['stitch', 'beam-profile', 'attenuation', 'normalize'].any { it -> Chain.has(it) } || Chain.direct())
        projected = projected.mix(images.map { it -> it + ['aip/slices'] })
    def pictured = images

    // The slices together: where each lies. A table of them goes along, to which the stages add.
    def slices = inputs.together(images)
    def shifts = channel.value(inputs.marked(inputs.shifts))
    if (Chain.has('mosaic') && inputs.shifts == null && ['common-space', 'stack'].any { it -> Chain.has(it) }) {
        SHIFTS(inputs.inOrder(infos).filter { it -> it }, calls.of('shifts', [calls.flags('shifts estimate'), given.shifts_estimate_swap_xy == null && !given.mosaic_preprocess ? '--swap_xy' : '']))
        shifts = SHIFTS.out.shifts.map { it -> [it, ''] }
        calls.note(SHIFTS.out)
    }
    if (given.diagnostics && Chain.has('stack')) {
        STACK_MOTORS(slices, shifts.filter { it -> it[0] }, calls.of('stack', ['stack_slicing_interval_mm', 'stack_moving_z_first_index'].collect { it -> calls.flag(it) }))
        diagnosed = STACK_MOTORS.out.pictures
        calls.note(STACK_MOTORS.out)
    }
    def config = channel.value(inputs.given(given.slice_config))
    if (Chain.table() && given.slice_config == null) {
        CONFIG(slices.map { it -> it[0] }, calls.of('slices', [calls.flags('slices config')]))
        config = CONFIG.out.config.map { it -> [it, ''] }
        calls.note(CONFIG.out)
    }
    if (Chain.has('assess')) {
        // What was stitched says in which grid of tiles each slice was scanned.
        def looked = given.slices_assess_faulty_slices == 'ignore' ? channel.empty() : gridded.map { it -> it[1] }.filter { it -> it }
        ASSESS(slices, inputs.inOrder(looked), config, calls.of('slices', [calls.flags('slices assess')]))
        config = ASSESS.out.config.map { it -> [it, ''] }
        ASSESS.out.config.subscribe { it -> Faulty.told(it) }
        calls.note(ASSESS.out)
    }
    def recorded = channel.empty()
    def repaired = channel.empty()
    if (Chain.has('clean-shifts')) {
        recorded = shifts.map { it -> it[0] }.filter { it -> it }
        CLEAN(shifts, config, calls.of('shifts', [calls.flags('shifts clean')]))
        shifts = CLEAN.out.shifts.map { it -> [it, ''] }
        if (Chain.table())
            config = CLEAN.out.config.map { it -> [it, ''] }
        repaired = CLEAN.out.shifts.mix(CLEAN.out.diagnostics)
        calls.note(CLEAN.out)
    }
    if (Chain.has('common-space')) {
        COMMON_SPACE(slices, shifts, config, calls.stage('common-space'))
        def placed = COMMON_SPACE.out.slices.map { of -> inputs.sorted([of].flatten().collect { it -> [it.name - '.ome.zarr', it, ''] }) }
        images = placed.flatMap { it -> it }
        calls.note(COMMON_SPACE.out)
        if (Chain.has('interpolate')) {
            INTERPOLATE(placed.combine(config.map { it -> [it] }).flatMap { of -> Gaps.between(of[0..-2], of[-1][0]) }, calls.stage('interpolate'))
            def filled = INTERPOLATE.out.slice
            INTERPOLATE.out.manifest.subscribe { it -> Gaps.told(it) }
            images = images.mix(filled)
            calls.note(INTERPOLATE.out)
            FINALISE(inputs.inOrder(INTERPOLATE.out.manifest).filter { it -> it }, config, calls.of('slices', [calls.flags('slices finalise')]))
            // Where nothing lacks the table is as it was.
            config = FINALISE.out.config.map { it -> [it, ''] }.concat(config).first()
            calls.note(FINALISE.out)
        }
        slices = inputs.together(images)
    }
    def pairs = channel.value([])
    def transforms = channel.value(inputs.given(given.transforms_dir) + [false])
    if (Chain.has('register')) {
        REGISTER(slices.flatMap { it -> Gaps.pairs(it) }, calls.of('register', [calls.flags('register'), calls.flag('stack_slicing_interval_mm'), calls.flag('stack_search_range_mm')]))
        def found = inputs.inOrder(REGISTER.out.transform)
        calls.note(REGISTER.out)
        if (Chain.has('manual')) {
            MANUAL(slices, found, calls.of('manual', [calls.flags('manual')]))
            calls.note(MANUAL.out)
        }
        if (Chain.has('exclude')) {
            EXCLUDE(found.filter { it -> it }, config, calls.of('slices', [calls.flags('slices exclude')]))
            config = EXCLUDE.out.config.map { it -> [it, ''] }.concat(config).first()
            calls.note(EXCLUDE.out)
        }
        if (given.diagnostics) {
            ROTATION(shifts.filter { it -> it[0] }, found.filter { it -> it }, calls.of('register', [Chain.pixel()]), calls.key('shifts'))
            diagnosed = diagnosed.mix(ROTATION.out.registration, ROTATION.out.rotation)
            calls.note(ROTATION.out)
        }
        transforms = found.map { it -> [it, '', true] }
        pairs = found
    }

    if (Chain.has('stack')) {
        def pyramid = ['stack_pyramid_resolutions', 'stack_make_isotropic'].collect { it -> calls.flag(it) }
        // Slices on one canvas are not to be moved by their shifts once more.
        STACK(slices, shifts, transforms, inputs.given(given.manual_transforms_dir), config, calls.of('stack', [calls.flags('format'), calls.flags('stack'), Chain.has('common-space') && !given.stack_no_xy_shift ? '--no_xy_shift' : '',
            Chain.has('assess') ? '--leave_out_excluded' : '',
            given.stack_blend_match == null ? '--blend_match ' + (Chain.has('normalize') ? 'none' : 'depth') : '']))
        def volume = STACK.out.volume
        tables = STACK.out.shifts.mix(STACK.out.found, STACK.out.matches, STACK.out.decisions)
        calls.note(STACK.out)
        if (Chain.has('bias-field')) {
            BIAS_FIELD(volume, slices.map { it -> it[0].size() }, calls.of('bias-field', [calls.flags('format'), calls.flags('bias-field')] + pyramid))
            volume = BIAS_FIELD.out.volume
            calls.note(BIAS_FIELD.out)
        }
        projected = projected.mix(volume.map { it -> ['volume', it, '', 'aip'] })
        pictured = pictured.mix(volume.map { it -> ['volume', it, ''] })
        if (Chain.has('align')) {
            ALIGN(volume, inputs.given(given.align_template), calls.of('align', [calls.flags('format'), calls.flags('align'), given.align_start_preview ? '--start_preview align/volume_start.png' : ''] + pyramid))
            calls.note(ALIGN.out)
        }
    }
    if (Chain.has('aip')) {
        def projecting = calls.of('aip', [calls.format(given.n_levels), calls.flags('aip')])
        AIP(groups.together(projected), projecting)
        calls.note(AIP.out)
        projections = projections.mix(AIP.out.picture.flatten())
        if (groups.used()) {
            AIP_ALONE(groups.left(projected, AIP.out.left), projecting)
            calls.note(AIP_ALONE.out)
            projections = projections.mix(AIP_ALONE.out.picture)
        }
    }
    if (Chain.has('preview')) {
        PREVIEW(pictured, calls.of('preview', [calls.flags('preview')]))
        previews = PREVIEW.out.picture
        calls.note(PREVIEW.out)
    }
    if (Chain.has('qc-report')) {
        REPORT(inputs.inOrder(calls.reports()).filter { it -> it }, inputs.inOrder(previews), inputs.inOrder(projections), inputs.inOrder(maps), inputs.inOrder(positions),
            inputs.inOrder(crops), inputs.inOrder(tables), inputs.inOrder(recorded), inputs.inOrder(repaired), inputs.inOrder(calls.metrics()), pairs, config.map { it -> it[0] }, inputs.inOrder(compared), inputs.inOrder(diagnosed), Chain.title(), calls.of('qc-report', [calls.flags('qc-report')]))
        calls.note(REPORT.out)
    }

    def left = images
    if (Chain.has('mosaic') && !Chain.keepsMosaics() && Chain.last() == 'mosaic')
        left = MOSAIC.out.projection
    else if (!Chain.last() && Chain.has('aip'))
        left = AIP.out.projection
    left.ifEmpty {
        def reason = ending.nothingLeft(inputs)
        if (reason)
            error reason
    }
    // By content and in order, as above.
    VERSIONS(calls.versions().map { it -> it.text }.unique().toSortedList())
}
