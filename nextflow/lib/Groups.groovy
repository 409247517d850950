import java.nio.file.Path
import nextflow.Nextflow

/**
 * Slices that one task works on, one after another: gpu_batch of them where tasks use a GPU, so that it starts once for all. They are
 * the same in each run, by the order of the images: -resume finds them again. What a group could not do is done anew, slice by slice,
 * and goes the way of every task from there.
 */
class Groups {

    /** What stands between the names of a group. */
    private static final String BETWEEN = ' + '

    private final int size
    /** Name of an image → the group it is in, and how many that has. */
    private final Map<String, List<Integer>> places = [:]

    Groups(Map params, Inputs inputs) {
        size = of(params)
        final List<String> names = inputs.images.collect { it[0] as String }
        names.eachWithIndex { name, i ->
            final int group = i.intdiv(size)
            places[name] = places[Inputs.slice(name)] = [group, Math.min(size, names.size() - group * size)]
        }
    }

    /** How many slices a task has at most. */
    static int of(Map params) { params.use_gpu ? params.gpu_batch as int : 1 }

    /** Whether there are groups. */
    boolean used() { size > 1 && places.size() > 1 }

    /**
     * A channel of [name, image, fingerprint], or with the folder of the results behind it, by groups: [names, images, fingerprints]. An image that
     * is alone in its group stays as it is. Groups of which a slice is missing come when it is known that it does.
     */
    Object together(Object images) {
        return !used() ? images : images.map { [key(it), it] }.groupTuple(remainder: true).map { key, group -> joined(Inputs.sorted(group as List)) }
    }

    private Object key(List image) {
        final List<Integer> place = places[image[0] as String] ?: [image[0], 1]
        return Nextflow.groupKey([place[0], image.size() > 3 ? image[3] : ''], place[1] as int)
    }

    private static List joined(List<List> group) {
        if (group.size() == 1)
            return group[0]
        return [group*.getAt(0), group*.getAt(1).flatten(), group*.getAt(2)] + group[0].drop(3)
    }

    /** A channel of [names, images, …] that groups have made, image by image; of one image as it is. */
    static Object apart(Object images) {
        return images.flatMap { made ->
            made[0] instanceof List ? [made[1]].flatten().collect { Path image -> [image.name - '.ome.zarr', image] + made.drop(2) } : [made]
        }
    }

    /** The images of a channel that groups have left, by the files that name them. */
    static Object left(Object images, Object files) {
        return images.map { [id(it), it] }.join(files.flatMap { Path file -> file.readLines().collect { [it] } }).map { id, image -> image }
    }

    private static String id(List image) { (image.size() > 3 ? "${image[3]}/${image[0]}" : image[0]).toString() }

    /** The name, or the names, of what a task works on. */
    static String tag(Object name) { [name].flatten().join(BETWEEN) }

    /** The names in a tag. */
    static List<String> names(Object tag) { tag.toString().split(java.util.regex.Pattern.quote(BETWEEN)) as List }

    /** How many slices a task works on. */
    static int count(Object name) { [name].flatten().size() }

    /** The name in the paths of results, and what follows it there: of a group what stands for any. */
    static String any(Object name, String more = '') { name instanceof List ? '*' : name + more }

    /** The name in a program's flags: of a group what its programs replace. */
    static String word(Object name) { name instanceof List ? '{name}' : name }

    /** Paths of results as a shell takes them, of each slice. */
    static String paths(Object name, String before, String behind) { [name].flatten().collect { "'${before}${it}${behind}'" }.join(' ') }

    /** What comes before a program: the list of a group's pairs. */
    static String list(Object name, Object image, Object fingerprint, String folder) {
        if (!(name instanceof List))
            return ''
        final List<Path> files = [image].flatten()
        final pairs = (0..<name.size()).collect { i -> "'${files ? files[i] : fingerprint[i]}' '${folder}/${name[i]}.ome.zarr'" }
        return "printf '%s\\t%s\\n' ${pairs.join(' ')} >slices.tsv\n    "
    }

    /** IN and OUT of a program, or the list of a group's. */
    static String pair(Object name, Object image, Object fingerprint, String folder) {
        return name instanceof List ? '--batch slices.tsv' : "'${Inputs.where(image, fingerprint)}' '${folder}/${name}.ome.zarr'"
    }

    /**
     * What comes behind the program of a group. Slices that it could not do are named in left.txt, without their remains, if there are others that it
     * did; who ends the task by a signal wants it to end. others are further results, with {name} for the name.
     */
    static String rest(Object name, String folder, String program, List<String> others = []) {
        if (!(name instanceof List))
            return ''
        final String named = folder.startsWith('aip') ? "${folder}/" : ''
        final String remains = (["${folder}/{name}.ome.zarr", "reports/{name}.${program}.json"] + others).collect { "\"${it.replace('{name}', '${name}')}\"" }.join(' ')
        return """ || code=\$?
    case \${code:=0} in 130 | 143) exit "\$code" ;; esac
    done=0
    for name in ${name.collect { "'${it}'" }.join(' ')}; do
        if [ -e "${folder}/\$name.ome.zarr" ] && grep -qs '^  "exit_code": 0' "reports/\$name.${program}.json"; then
            done=\$((done + 1))
        else
            rm -rf ${remains}
            printf '%s\\n' "${named}\$name" >>left.txt
        fi
    done
    [ "\$done" -gt 0 ] || exit "\$code\""""
    }
}
