/**
 * The stages of a run, and where what they make goes. A stage that is skipped
 * hands on what it was given.
 */
class Chain {

    /** In the order in which they run; the names are those of the programs. */
    static final List<String> STAGES = ['aip', 'resample', 'focal', 'stitch', 'crop', 'stack', 'preview', 'qc-report'].asImmutable()
    /** Those that turn a mosaic grid into a slice, and the folder of what each makes. */
    private static final Map<String, String> MAKERS = [resample: 'resampled', focal: 'corrected', stitch: 'stitched', crop: 'cropped'].asImmutable()

    /** Those that only draw and write: they use no GPU. */
    private static final List<String> PICTURES = ['preview', 'qc-report'].asImmutable()

    private static Map params = [:]
    private static Set<String> skipped = []

    static void start(Map given) {
        params = given
        skipped = skip(given.skip) as Set
        if (direct())
            skipped.addAll(MAKERS.keySet())
    }

    /** The names in a skip list, as text or as a list; spelled as in STAGES. */
    static List<String> skip(Object list) {
        final names = list instanceof Collection ? list : (list ?: '').toString().split(',') as List
        return names*.toString()*.trim().findAll()*.replace('_', '-')
    }

    /** What is wrong with a skip list, or null. */
    static String problem(Object list) {
        final unknown = skip(list).find { !(it in STAGES) }
        if (unknown)
            return "there is no stage '${unknown}': the stages are ${STAGES.join(', ')}"
        return STAGES.every { it in skip(list) } ? 'leaves no stage to run' : null
    }

    /** True when slices were given, and go straight to the stack. */
    static boolean direct() { params.slices != null }

    static boolean has(String stage) { !(stage in skipped) }

    /** True for a stage whose program may compute on a GPU. */
    static boolean usesGpu(String stage) { !(stage in PICTURES) }

    /** The programs that a run needs. */
    static List<String> programs() { STAGES.findAll { has(it) } }

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

    /** What a run leaves, and where below outdir. */
    static Map<String, String> results() {
        final Map<String, String> all = [
            volume     : has('stack') ? 'volume/volume.ome.zarr' : null,
            slices     : last() in ['stitch', 'crop'] ? 'slices' : null,
            mosaics    : last() in ['resample', 'focal'] ? MAKERS[last()] : null,
            projections: has('aip') ? 'aip' : null,
            previews   : has('preview') ? 'previews' : null,
            report     : has('qc-report') ? 'qc-report.html' : null,
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
        final String stage = MAKERS.find { it.value == parts[0] }?.key
        if (!stage || path.endsWith('.json'))
            return stage ? "slices/${parts.tail().join('/')}" : path
        if (stage == last())
            return stage in ['stitch', 'crop'] ? "slices/${parts.tail().join('/')}" : path
        return params.publish_intermediates ? path : null
    }
}
