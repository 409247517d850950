import java.nio.file.FileSystems
import java.nio.file.FileVisitOption
import java.nio.file.FileVisitResult
import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.SimpleFileVisitor
import java.nio.file.attribute.BasicFileAttributes
import java.security.MessageDigest

/**
 * What a run is given: raw frames, mosaic grids or slices, shifts, transforms. Every problem is
 * an IllegalArgumentException with one line that says what is wrong.
 */
class Inputs {

    /**
     * [name without .ome.zarr, path, fingerprint] of the images of a folder, by name. An image
     * at an address has [] for a path, and the address for a fingerprint: see where.
     */
    final List<List> images
    /** The shifts between slices, or null when the chain needs none, or makes them. */
    final Path shifts
    /** Where raw frames are found, or null when the run begins with images. */
    final Raw raw

    /** A larger file is no list of addresses, bytes. */
    private static final long MOST_TEXT = 1 << 20
    /** A larger file is no table of shifts, bytes. */
    private static final long MOST_TABLE = 16 << 20

    private final Map params
    private final String parameter

    Inputs(Map given) {
        params = given
        parameter = params.raw != null ? 'raw' : Chain.direct() ? 'slices' : 'input'
        final List<String> addresses = parameter == 'input' ? addressesIn(params.input.toString()) : []
        final Path folder = addresses ? null : path(params[parameter])
        raw = parameter == 'raw' ? new Raw(folderOf(folder), params) : null
        final String pattern = Chain.direct() ? 'slice_z*.ome.zarr' : params.input_pattern
        images = chosen(raw ? (params.watch ? [] : raw.slices()) : addresses ? far(addresses) : find(folder, pattern))
        if (Chain.has('stitch'))
            images.each { clash(it[0] as String, place(it)) }
        if (Chain.has('stack') || Chain.has('common-space')) {
            if (addresses && !Chain.last())
                throw new IllegalArgumentException("parameter input: images at addresses do not go straight to the stack: leave resample, focal, stitch or crop in the chain, or give slices of this machine")
            if (!raw)
                numbered()
            shifts = raw && params.shifts == null ? null : findShifts(folder)
        } else {
            shifts = null
        }
    }

    /** The number of a slice, from the last z<NN> of a name; null when there is none. */
    static Integer number(String name) {
        final found = (name =~ /(?:^|_)z(\d{1,9})(?!\d)/).collect { it[1] as Integer }
        return found ? found.last() : null
    }

    /** The numbers that a list of numbers and ranges names, such as 0-5,9; none for null. */
    static Set<Integer> numbers(Object list) {
        final Set<Integer> found = new TreeSet<>()
        for (String part : (list instanceof Collection ? list.join(',') : list ?: '').toString().tokenize(', ')) {
            final List<Integer> ends = part.tokenize('-')*.toInteger()
            found.addAll(ends[0]..ends[-1])
        }
        return found
    }

    /** What the slice that comes from a mosaic grid is called. */
    static String slice(String name) {
        final number = number(name)
        return number == null ? name : String.format(Locale.ROOT, 'slice_z%02d', number)
    }

    /** [name, …] by the numbers of their names: z100 comes after z99. */
    static List<List> sorted(Collection<List> images) {
        return images.toSorted { a, b -> (number(a[0] as String) ?: -1) <=> (number(b[0] as String) ?: -1) ?: a[0] <=> b[0] }
    }

    /** How many slices there are; while they are waited for, so far. */
    int count() { raw ? raw.count() : images.size() }

    /** A channel of images that are called as slices are. */
    static Object asSlices(Object images) { images.map { [slice(it[0] as String)] + it.tail() } }

    /** A channel of one item, [names, images, fingerprints] of all images by the numbers of their names; of none when there are none. */
    static Object together(Object images) { images.toList().filter { it }.map { sorted(it).transpose() } }

    /** A channel of one item, all files of a channel by name, so that -resume finds the same input again; of the same name by path. */
    static Object inOrder(Object files) { files.toSortedList { a, b -> a.name <=> b.name ?: a.toString() <=> b.toString() } }

    /** Commands that give slices, as a process has them, their names in a folder called slices. */
    static String links(List names, Object slices) {
        return [names, [slices].flatten()].transpose().collect { name, slice -> "ln -s '../${slice}' 'slices/${name}.ome.zarr'" }.join('\n    ')
    }

    /** At most count of the names (0: all), spread evenly over them. */
    static Set<String> spread(List<String> names, int count) {
        if (count == 0 || count >= names.size())
            return names as Set
        return (0..<count).collect { names[((it + 0.5d) * names.size() / count) as int] } as Set
    }

    /** A file or folder that a parameter names, as a process takes it; none when it is unset. */
    static Object optional(Object value) { value == null ? [] : path(value) }

    /** The same with its fingerprint, as a process takes both. */
    static List given(Object value) { marked(optional(value)) }

    /** What optional returned (or a path, or null), with its fingerprint. */
    static List marked(Object found) {
        return [found ?: [], found instanceof Path ? fingerprint(found as Path) : '']
    }

    /** What a program is given for an image: the file that a process has, or an address. */
    static String where(Object file, Object fingerprint) { (file ?: fingerprint).toString() }

    /** Whether text is the address of an image. */
    static boolean isAddress(String text) { text ==~ /(?i)(s3|https?):\/\/.+/ }

    /** The addresses that the parameter input means: itself, or the lines of a text file; none for a folder. */
    private static List<String> addressesIn(String input) {
        if (isAddress(input))
            return [input]
        final file = new File(input)
        if (!file.isFile())
            return []
        final List<String> lines = file.length() > MOST_TEXT ? [] : file.readLines('UTF-8')*.trim().findAll { it && !it.startsWith('#') }
        final wrong = lines.find { !isAddress(it) }
        if (wrong != null || !lines)
            throw new IllegalArgumentException("parameter input: ${input} is a file, should be a folder of mosaic grids, an OME-Zarr, or a text with an address (s3://… or https://…) on each line" + (wrong == null ? '' : ", not '${wrong.take(40)}'"))
        return lines
    }

    /** The images of the slices that only_slices names; all without it. */
    private List<List> chosen(List<List> found) {
        final Set<Integer> only = numbers(params.only_slices)
        final List<List> left = only ? found.findAll { number(it[0] as String) in only } : found
        if (found && !left)
            throw new IllegalArgumentException("parameter only_slices: none of slices ${params.only_slices} is there: there are ${found.collect { number(it[0] as String) }.findAll { it != null }.join(', ') ?: 'images without a number'}")
        return left
    }

    private List<List> far(List<String> addresses) {
        final List<List> found = addresses.collect { address ->
            final String bare = address.replaceFirst(/[?#].*/, '').replaceFirst(/\/+$/, '')
            if (!(bare ==~ /.*\.zarr(\.zip)?|.*\.ozx/))
                throw new IllegalArgumentException("parameter input: ${bare} is no .zarr: a server's folder is not looked through: give the address of one image, or a text file with the address of each on a line")
            // What a shell or Nextflow would take for more than an address.
            if (!(address ==~ /[\p{L}\p{N}._~:\/?#@&*+,;=%()-]+/))
                throw new IllegalArgumentException("parameter input: ${bare}: write what is no letter, digit or one of . _ ~ : / ? # @ & * + , ; = % ( ) - as %XX")
            return [bare.tokenize('/').last(), [], address]
        }
        return byName(found)
    }

    /** Images by their names, which have to differ. */
    private List<List> byName(List<List> found) {
        final Map<String, List> names = new TreeMap<>()
        for (List image : found) {
            final name = (image[0] as String).replaceFirst(/(\.ome)?\.zarr(\.zip)?$|\.ozx$/, '')
            // The name becomes part of a command line and of a glob.
            if (!(name ==~ /[\p{L}\p{N}._+=@,-]+/))
                throw new IllegalArgumentException("parameter ${parameter}: the name of ${place(image)} may hold letters, digits and . _ + = @ , - only")
            if (names.put(name, image))
                throw new IllegalArgumentException("parameter ${parameter}: two images are called ${name}: ${place(image)} is one")
        }
        return sorted(names.collect { name, image -> [name, image[1], image[2]] })
    }

    /** Where an image lies, for messages. */
    private static String place(List image) { image[1] instanceof Path ? image[1].toString() : image[2].toString().replaceFirst(/\?.*/, '') }

    private static Path path(Object value) {
        final path = Path.of(value.toString()).toAbsolutePath().normalize()
        // Nextflow escapes spaces and quotes in the commands that it makes, but not this.
        if (path.toString().contains('$'))
            throw new IllegalArgumentException("${path}: Nextflow takes the \$ in this name for a variable: rename the folder")
        return path
    }

    private List<List> find(Path input, String pattern) {
        if (!Files.isDirectory(input))
            throw new IllegalArgumentException("parameter ${parameter}: ${input} is a file, should be a folder of " +
                (Chain.direct() ? 'slices' : 'mosaic grids or an OME-Zarr'))
        final List<Path> found = !Chain.direct() && isZarr(input) ? [input] : matching(input, pattern)
        return byName(found.collect { path -> [path.fileName.toString(), path, ''] }).collect { name, path, none -> [name, path, fingerprint(path as Path)] }
    }

    private static Path folderOf(Path root) {
        if (!Files.isDirectory(root))
            throw new IllegalArgumentException("parameter raw: ${root} is a file, should be the folder of the raw frames")
        return root
    }

    private List<Path> matching(Path folder, String pattern) {
        final glob = FileSystems.default.getPathMatcher("glob:${pattern}")
        final List<Path> entries = Files.list(folder).withCloseable { it.sorted().toList() }
        final found = entries.findAll { glob.matches(it.fileName) }
        if (!found) {
            final seen = entries.take(3)*.fileName.join(', ')
            throw new IllegalArgumentException("parameter ${parameter}: no ${pattern} in ${folder} " +
                (seen ? "(it holds ${seen}${entries.size() > 3 ? ', …' : ''}${Chain.direct() ? '' : '; see input_pattern'})" : '(it is empty)'))
        }
        return found
    }

    /** Results would take each other's place. */
    private static void clash(String name, String place) {
        if (name == 'volume' || name ==~ /slice_z\d+/)
            throw new IllegalArgumentException("parameter input: ${place}: ${name} is what a result is called; " +
                'a slice that is stitched goes into a folder for --slices, or --skip stitch')
    }

    private void numbered() {
        final Map<Integer, String> seen = [:]
        for (List image : images) {
            final number = number(image[0] as String)
            if (number == null)
                throw new IllegalArgumentException("parameter ${parameter}: ${place(image)} has no slice number (_z<NN>) in its name, which the order of the stack needs; --skip stack does without")
            final file = place(image).tokenize('/').last()
            final other = seen.put(number, file)
            if (other)
                throw new IllegalArgumentException("parameter ${parameter}: ${other} and ${file} are both slice ${number}")
        }
    }

    private Path findShifts(Path folder) {
        if (params.shifts != null) {
            final Path given = path(params.shifts)
            if (Files.isDirectory(given))
                throw new IllegalArgumentException("parameter shifts: ${given} is a folder, should be a CSV file")
            return given
        }
        final Path beside = folder == null ? null : (isZarr(folder) ? folder.parent : folder).resolve('shifts_xy.csv')
        if (beside != null && Files.isRegularFile(beside))
            return beside
        if (params.stack_no_xy_shift && !Chain.has('common-space') && !Chain.has('clean-shifts'))
            return null
        throw new IllegalArgumentException("parameter shifts: is not given${beside == null ? ', which images at addresses need' : " and there is no ${beside}"}; --stack_no_xy_shift does without shifts, --skip stack without a volume")
    }

    /** The slices that the shifts name and the input does not have, as slice_z<NN>. */
    List<String> absent() {
        final Set<Integer> only = numbers(params.only_slices)
        if (raw)
            return raw.absent().findAll { !only || number(it) in only }
        if (shifts == null || Files.size(shifts) > MOST_TABLE)
            return []
        // What is wrong with the table stack will say, with the line.
        final List<String> lines = Files.readAllLines(shifts)*.replaceFirst(/^\uFEFF/, '')
        final List<String> header = lines ? lines[0].split(',')*.trim() : []
        final List<Integer> columns = ['fixed_id', 'moving_id'].collect { header.indexOf(it) }
        if (columns.any { it < 0 })
            return []
        final Set<Integer> named = new TreeSet<>()
        for (String line : lines.tail()) {
            final List<String> cells = line.split(',')*.trim()
            columns.each { if (it < cells.size() && cells[it] ==~ /\d{1,9}(\.0+)?/) named << (cells[it].tokenize('.')[0] as Integer) }
        }
        return (named - images.collect { number(it[0] as String) }).findAll { !only || it in only }.collect { String.format(Locale.ROOT, 'slice_z%02d', it) }
    }

    private static boolean isZarr(Path folder) {
        return ['zarr.json', '.zgroup', '.zattrs', '.zarray'].any { Files.exists(folder.resolve(it)) }
    }

    /**
     * Returns a digest of the names, sizes and times of a file, or of all files below
     * a folder. Nextflow looks at the path and size of a file (cache 'lenient') and never
     * into a folder: without this -resume would take the old result for the new input.
     * A link that leads nowhere is an IllegalArgumentException, unless loose.
     */
    static String fingerprint(Path root, boolean loose = false) {
        final List<String> files = []
        Files.walkFileTree(root, EnumSet.of(FileVisitOption.FOLLOW_LINKS), Integer.MAX_VALUE, new SimpleFileVisitor<Path>() {
            @Override
            FileVisitResult visitFile(Path file, BasicFileAttributes of) {
                if (of.symbolicLink && !loose)
                    throw new IllegalArgumentException("${file}: is a link to ${Files.readSymbolicLink(file)}, which is not there")
                files << "${root.relativize(file)}\t${of.size()}\t${of.lastModifiedTime().toMillis()}\n".toString()
                return FileVisitResult.CONTINUE
            }
        })
        return digest(files.sort())
    }

    /** A short text that differs when the texts do. */
    static String digest(List<String> texts) {
        final digest = MessageDigest.getInstance('SHA-256')
        texts.each { digest.update(it.getBytes('UTF-8')) }
        return digest.digest().encodeHex().toString().take(16)
    }
}
