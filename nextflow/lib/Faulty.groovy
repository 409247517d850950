import java.nio.file.Files
import java.nio.file.Path
import java.util.concurrent.ConcurrentSkipListMap

/** What is wrong with slices, by the table of slices that assess writes. */
class Faulty {

    /** Slice → fault and reason, and whether it is left out. */
    private static final Map<String, List> found = new ConcurrentSkipListMap<>()

    /** Takes note of the rows of a table that have a fault. */
    static void told(Path table) {
        rows(table).each { slice, use, fault, reason -> found[slice] = [fault.replace('_', ' '), reason, use == 'false'] }
    }

    /** The slices that a table leaves out because they show what the one before them shows; none if table is not a file. */
    static Set<String> twice(Object table) {
        return table instanceof Path ? rows(table).findAll { it[1] == 'false' && it[2] == 'duplicate' }.collect { it[0] }.toSet() : [] as Set
    }

    /** [slice, use, fault, reason] of the rows of a table that have a fault: columns slice_id, use, fault, fault_reason. */
    private static List<List<String>> rows(Path table) {
        final List<List<String>> lines = Files.readAllLines(table).findAll { it.trim() }.collect { cells(it) }
        final List<Integer> at = ['slice_id', 'use', 'fault', 'fault_reason'].collect { lines ? lines[0].indexOf(it) : -1 }
        if (at.any { it < 0 })
            return []
        return lines.tail().findAll { it.size() > at.max() && it[at[2]] }.collect { of -> [Inputs.slice("z${of[at[0]]}"), of[at[1]], of[at[2]], of[at[3]]] }
    }

    /** Cells of a line of CSV; one in quotes may hold commas and doubled quotes. */
    private static List<String> cells(String line) {
        final List<String> cells = []
        final cell = ~/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/
        final match = cell.matcher(line)
        while (match.find())
            cells << (match.group(1) != null ? match.group(1).replace('""', '"') : match.group(2)).trim()
        return cells
    }

    /** What a run says of them when it ends, a line for each under a heading; none when nothing is wrong. */
    static List<String> lines() {
        if (!found)
            return []
        final Map<String, List> out = found.findAll { it.value[2] }
        final String head = out ? "strata: ${out.size()} ${out.size() == 1 ? 'slice' : 'slices'} left out (${out.keySet().join(', ')})" : "strata: ${found.size()} faulty ${found.size() == 1 ? 'slice' : 'slices'} kept"
        return [head + ', see the report and slice_config:'] + found.collect { name, of -> "  ${name}: ${of[0]}: ${of[1]}${of[2] || !out ? '' : ' (kept)'}".toString() }
    }
}
