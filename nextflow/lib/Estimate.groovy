/**
 * Which mosaics the estimate of the stage's geometry reads. It is of the mosaics as they came, which
 * overlap by more pixels than resampled ones; those that failed since are left out. While slices are
 * waited for, those that come first: the others are stitched as they come.
 */
class Estimate {

    /** True when there is an estimate. */
    final boolean wanted
    /** True when tiles are put by their own overlaps, beyond what the estimate says. */
    final boolean refines
    /** How many mosaics at most; 0: all. */
    private final int most
    /** Their names; null while nobody knows what comes. */
    private final Set<String> chosen
    private int seen

    Estimate(Map params, Inputs inputs) {
        wanted = Chain.has('stitch') && params.stitch_transform == null && params.stitch_estimate
        refines = params.stitch_estimate && params.stitch_max_refinement_px != 0
        final Set<Integer> numbers = Inputs.numbers(params.stitch_estimate_slices)
        most = numbers ? 0 : params.stitch_estimate_mosaics as int
        if (!wanted || params.watch)
            chosen = null
        else if (numbers)
            chosen = inputs.images*.get(0).findAll { Inputs.number(it as String) in numbers } as Set
        else
            chosen = Inputs.spread(inputs.images*.get(0), most)
    }

    /** True for a mosaic that is read; they are asked for in the order in which they come. */
    synchronized boolean reads(String name) {
        final int before = seen++
        return wanted && (chosen != null ? name in chosen : !most || before < most)
    }

    /** The mosaics that are read, of those whose images are left. */
    Object among(Object mosaics, Object images) {
        final left = mosaics.filter { chosen == null || it[0] in chosen }.join(images.map { [it[0]] }.filter { chosen == null || it[0] in chosen })
        return most > 0 ? left.take(chosen != null ? chosen.size() : most) : left
    }
}
