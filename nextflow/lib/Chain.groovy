import java.nio.file.Path

/**
 * The stages of a run, and where what they make goes. A stage that is left out
 * hands on what it was given.
 */
class Chain {

    /** In the order in which they run; most have the names of their programs. */
    static final List<String> STAGES = ['aip', 'resample', 'focal', 'flatfield', 'stitch', 'beam-profile', 'crop', 'attenuation', 'normalize', 'assess',
        'clean-shifts', 'common-space', 'interpolate', 'register', 'manual', 'exclude', 'stack', 'bias-field', 'preview', 'qc-report', 'align'].asImmutable()
    /** The stages of a chain, by its name; others run when their parameter is true. */
    private static final Map<String, List<String>> CHAINS = [
        short: ['aip', 'resample', 'focal', 'stitch', 'crop', 'stack', 'preview', 'qc-report'],
        full : STAGES - ['focal', 'assess', 'manual', 'bias-field', 'align'],
    ].asImmutable()
    /** Those that have another program than their name says. */
    private static final Map<String, String> PROGRAMS = ['assess': 'slices', 'clean-shifts': 'shifts', 'exclude': 'slices'].asImmutable()
    /** Those that make a mosaic grid or a slice, and the folder of what each makes. */
    private static final Map<String, String> MAKERS = [mosaic: 'mosaics', resample: 'resampled', focal: 'corrected', flatfield: 'flatfield', stitch: 'stitched',
        'beam-profile': 'beam_profile', crop: 'cropped', attenuation: 'attenuation', normalize: 'normalized', 'common-space': 'common_space'].asImmutable()
    /** Of these, those that make mosaic grids. */
    private static final List<String> OF_MOSAICS = ['mosaic', 'resample', 'focal', 'flatfield'].asImmutable()
    /** A stage and what it cannot do without. */
    private static final Map<String, List<String>> NEEDS = ['interpolate': ['common-space'], 'register': ['common-space'], 'manual': ['register'],
        'exclude': ['register'], 'bias-field': ['stack'], 'align': ['stack']].asImmutable()
    /** Those whose program may compute on a GPU. */
    private static final List<String> ON_GPU = ['aip', 'resample', 'focal', 'estimate', 'stitch', 'crop', 'stack'].asImmutable()

    /** Of these, those that may do several slices in a task. */
    private static final List<String> IN_GROUPS = ['aip', 'resample', 'focal', 'stitch', 'crop'].asImmutable()

    private static Map params = [:]
    private static Set<String> chosen = []

    static void start(Map given) {
        params = given
        chosen = choice(given)
    }

    /** The stages that parameters choose. */
    private static Set<String> choice(Map given) {
        final Set<String> left = STAGES.findAll { wanted(given, it) } as LinkedHashSet
        if (given.raw != null)
            left << 'mosaic'
        if (given.slices != null)
            left.removeAll(MAKERS.keySet() - 'common-space')
        if (!('stack' in left || 'common-space' in left))
            left.remove('clean-shifts')
        STAGES.each { if (!(NEEDS[it] ?: []).every { need -> need in left }) left.remove(it) }
        return left
    }

    private static boolean wanted(Map given, String stage) {
        if (stage in skip(given.skip))
            return false
        final own = given[parameter(stage)]
        if (own != null)
            return own
        if (stage == 'register' && given.transforms_dir != null)
            return false
        // linumpy's workflow has no table of slices otherwise, and excludes nothing then.
        if (stage == 'exclude' && given.slice_config == null && !wanted(given, 'assess'))
            return false
        return stage in CHAINS[name(given)]
    }

    /** The name of the chain: that of a run from raw frames is the full one. */
    private static String name(Map given) { given.chain ?: (given.raw != null ? 'full' : 'short') }

    /** The parameter that puts a stage in or leaves it out. */
    static String parameter(String stage) { stage.replace('-', '_') }

    /** The names in a skip list, as text or as a list; spelled as in STAGES. */
    static List<String> skip(Object list) {
        final names = list instanceof Collection ? list : (list ?: '').toString().split(',') as List
        return names*.toString()*.trim().findAll()*.replace('_', '-')
    }

    /** What is wrong with the choice of stages, or null. */
    static String problem(Map given) {
        final List<String> names = skip(given.skip)
        final unknown = names.find { !(it in STAGES) }
        if (unknown)
            return "parameter skip: there is no stage '${unknown}': the stages are ${STAGES.join(', ')}"
        final both = names.find { given[parameter(it)] == true }
        if (both)
            return "parameter skip: contradicts ${parameter(both)} = true"
        if (given.raw == null && STAGES.every { !wanted(given, it) })
            return 'parameter skip: leaves no stage to run'
        final Set<String> left = choice(given)
        for (String stage : STAGES.findAll { given[parameter(it)] == true && !(it in left) }) {
            final List<String> lacks = (NEEDS[stage] ?: []).findAll { !(it in left) }
            return "parameter ${parameter(stage)}: " + (lacks ? "needs ${lacks.collect { parameter(it) }.join(', ')}, which is left out" :
                stage == 'clean-shifts' ? 'needs common_space or stack, which are left out' : 'slices that are given are past it')
        }
        if (given.register == true && given.transforms_dir != null)
            return 'parameter transforms_dir: contradicts register = true: give one of them'
        if ('align' in left && given.align_template == null)
            return 'parameter align_template: is missing: the image that align puts the volume onto'
        return null
    }

    /** True when slices were given, and go past what makes slices. */
    static boolean direct() { params.slices != null }

    static boolean has(String stage) { stage in chosen }

    /** True when the run keeps a table of slices, which several stages add to. */
    static boolean table() { params.slice_config != null || ['assess', 'common-space', 'exclude'].any { has(it) } }

    /** True for a stage whose program may compute on a GPU. */
    static boolean usesGpu(String stage) { stage in ON_GPU }

    /** Whether a task of a stage may do several slices. */
    static boolean inGroups(String stage) { stage in IN_GROUPS }

    /** What the parameters for the resources of a stage begin with. */
    static String resources(String stage) {
        if (stage in ['preview', 'qc-report'])
            return 'preview'
        return parameter(stage in ['clean-shifts', 'exclude'] ? 'table' : stage)
    }

    /** The flag with the size of a pixel of the slices, in µm, where the chain decides it. */
    static String pixel() { has('resample') ? "--resolution ${params.resample_resolution.toString().tokenize(', ').last()}" : '' }

    /** What stands over the report: by default the name of the results, or of the folder that they are in. */
    static String title() {
        final results = Path.of(params.outdir.toString()).toAbsolutePath().normalize()
        final Path named = results.fileName.toString() == 'results' && results.parent?.fileName ? results.parent : results
        return params.qc_report_title ?: "Quality report: ${named.fileName}"
    }

    /** The stages of a run. */
    static List<String> stages() { (has('mosaic') ? ['mosaic'] : []) + STAGES.findAll { has(it) } }

    /** The programs that a run needs. */
    static List<String> programs() {
        final List<String> names = stages().collect { PROGRAMS[it] ?: it }
        if (has('interpolate') || table() && params.slice_config == null)
            names << 'slices'
        if (has('mosaic') && params.shifts == null && (has('stack') || has('common-space')))
            names << 'shifts'
        if (params.diagnostics && has('register'))
            names << 'shifts'
        return names.unique()
    }

    /** The stage that makes the slices as they go to the stack; null when none does. */
    static String last() { MAKERS.keySet().findAll { has(it) }.with { it ? it.last() : null } }

    /** Pyramid levels of what a stage makes: what another stage reads needs none. */
    static int levels(String stage) { (stage == last() ? params.slices_n_levels : 0) as int }

    /** The parameters, with the codec of what a stage makes: what another stage reads, and is not among the results, may have its own. */
    static Map format(String stage) {
        final Map given = new LinkedHashMap(params)
        if (params.intermediate_codec != null && stage in MAKERS.keySet() && stage != last())
            given.codec = params.intermediate_codec
        return given
    }

    /** The parameters, with the codec of an image said: by default mosaic gives all its images that of the mosaic. */
    static Map explicit(Map given) { given.codec == null && params.intermediate_codec != null ? given + [codec: 'blosc-zstd:1'] : given }

    /**
     * True when the mosaics of raw frames are all written: they are kept, or a stage reads them, or nothing else is made of the frames.
     * Otherwise those are that the estimate reads.
     */
    static boolean keepsMosaics() {
        return params.keep_mosaic || !has('resample') && (!has('aip') || STAGES.any { has(it) && !(it in ['aip', 'qc-report']) })
    }

    /** What a run leaves, and where below outdir. */
    static Map<String, String> results() {
        final boolean slices = last() && !(last() in OF_MOSAICS)
        final Map<String, String> all = [
            volume     : has('stack') ? 'volume/volume.ome.zarr' : null,
            corrected  : has('bias-field') ? 'bias_field/volume.ome.zarr' : null,
            aligned    : has('align') ? 'align/volume_ras.ome.zarr' : null,
            slices     : slices ? 'slices' : null,
            mosaics    : last() && !slices && (last() != 'mosaic' || keepsMosaics()) ? MAKERS[last()] : null,
            transforms : has('register') ? 'transforms' : null,
            projections: has('aip') ? 'aip' : null,
            previews   : has('preview') ? 'previews' : null,
            report     : has('qc-report') ? 'qc-report.html' : null,
            diagnostics: params.diagnostics ? 'diagnostics' : null,
        ]
        return all.findAll { it.value }
    }

    /** Where an output of a task goes below outdir; null: nowhere. */
    static String place(String path) {
        final List<String> parts = path.tokenize('/')
        if (path.endsWith('_mqc.json'))
            return "multiqc/${path}"
        if (parts.size() == 1)
            return path == 'versions.yml' ? null : path
        final String rest = parts.tail().join('/')
        if (parts[0] == 'info')
            return null
        if (parts[0] == 'interpolated')
            return "slices/${rest}"
        final String stage = MAKERS.find { it.value == parts[0] }?.key
        if (path.endsWith('_metrics.json') && (stage || parts[0] in ['shifts', 'slice_config', 'bias_field', 'align']))
            return "metrics/${stage ? parameter(stage) : parts[0]}/${rest}"
        if (!stage)
            return path
        if (path.endsWith('.json'))
            return "slices/${rest}"
        if (stage == last())
            return stage in OF_MOSAICS ? path : "slices/${rest}"
        if (stage == 'mosaic' && !keepsMosaics())
            return null
        return params.publish_intermediates ? path : null
    }
}
