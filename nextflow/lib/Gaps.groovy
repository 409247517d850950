import java.nio.file.Files
import java.nio.file.Path

/** Neighbours among slices, and slices that lack between them. */
class Gaps {

    /**
     * [slice that lacks, the one before, the one after], of each gap of one slice; wider ones stay, and are noted.
     * A number at which a slice was scanned once more, by the table of slices, is no gap: no tissue lacks there.
     */
    static List<List> between(List<List> slices, Object table) {
        final Set<String> twice = Faulty.twice(table)
        final List<List> gaps = []
        slices.collate(2, 1, false).each { before, after ->
            final int from = Inputs.number(before[0] as String), to = Inputs.number(after[0] as String)
            final List<String> lacking = from + 1 < to ? ((from + 1)..<to).collect { Inputs.slice("z${it}") }.findAll { !(it in twice) } : []
            if (lacking.size() == 1)
                gaps << [lacking[0], before[1], after[1]]
            else
                lacking.each { Attempts.notInterpolated(it, "one of ${lacking.size()} slices in a row, of which none is made up for") }
        }
        return gaps
    }

    /** [moving slice, fixed image, moving image] of each slice and the one before it; slices as [names, images, …]. */
    static List<List> pairs(List slices) {
        final List<List> images = [slices[0], [slices[1]].flatten()].transpose()
        return images.collate(2, 1, false).collect { fixed, moving -> [moving[0], fixed[1], moving[1]] }
    }

    /** Takes note of what the manifest of an interpolation says: slice_id, method, method_used, fallback_reason, interpolation_failed, output_path. */
    static void told(Path manifest) {
        final List<String> lines = Files.readAllLines(manifest)
        if (lines.size() < 2)
            return
        final Map<String, String> entry = [lines[0].split(',')*.trim(), lines[1].split(',', -1)*.trim()].transpose().collectEntries()
        final String name = Inputs.slice("z${entry.slice_id}")
        if (entry.interpolation_failed == 'true')
            Attempts.notInterpolated(name, "interpolate: ${entry.fallback_reason}".toString())
        else
            Attempts.madeUp(name)
    }
}
