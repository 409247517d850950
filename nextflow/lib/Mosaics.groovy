import java.nio.file.FileSystems
import java.nio.file.FileVisitOption
import java.nio.file.FileVisitResult
import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.SimpleFileVisitor
import java.nio.file.attribute.BasicFileAttributes
import java.security.MessageDigest

/** Finds the mosaic grids that a run is about. */
class Mosaics {

    /**
     * The mosaic grids of a folder, or the one OME-Zarr that input is, by name:
     * [name without .ome.zarr, path, fingerprint].
     *
     * @throws IllegalArgumentException with one line that says what is wrong
     */
    static List<List> find(Path input, String pattern) {
        if (!Files.isDirectory(input))
            throw new IllegalArgumentException("parameter input: ${input} is a file, should be a folder of mosaic grids or an OME-Zarr")
        final List<Path> found = isZarr(input) ? [input] : matching(input, pattern)
        final Map<String, Path> names = [:]
        for (Path path : found) {
            final name = path.fileName.toString().replaceFirst(/(\.ome)?\.zarr$/, '')
            // The name becomes part of a command line and of a glob.
            if (!(name ==~ /[\p{L}\p{N}._+=@,-]+/))
                throw new IllegalArgumentException("parameter input: the name of ${path} may hold letters, digits and . _ + = @ , - only")
            if (names.put(name, path))
                throw new IllegalArgumentException("parameter input: two mosaic grids are called ${name}: ${names[name]} is one")
        }
        return names.collect { name, path -> [name, path, fingerprint(path)] }
    }

    private static List<Path> matching(Path folder, String pattern) {
        final glob = FileSystems.default.getPathMatcher("glob:${pattern}")
        final List<Path> entries = Files.list(folder).withCloseable { it.sorted().toList() }
        final found = entries.findAll { glob.matches(it.fileName) }
        if (!found) {
            final seen = entries.take(3)*.fileName.join(', ')
            throw new IllegalArgumentException("parameter input: no ${pattern} in ${folder} " +
                (seen ? "(it holds ${seen}${entries.size() > 3 ? ', …' : ''}; see input_pattern)" : '(it is empty)'))
        }
        return found
    }

    private static boolean isZarr(Path folder) {
        return ['zarr.json', '.zgroup', '.zattrs', '.zarray'].any { Files.exists(folder.resolve(it)) }
    }

    /**
     * Names, sizes and times of all files below a folder as one number. Nextflow
     * looks at the folder's own date only, which does not change when a chunk
     * does: without this -resume would take the old result for the new input.
     */
    static String fingerprint(Path root) {
        final digest = MessageDigest.getInstance('SHA-256')
        final List<String> files = []
        Files.walkFileTree(root, EnumSet.of(FileVisitOption.FOLLOW_LINKS), Integer.MAX_VALUE, new SimpleFileVisitor<Path>() {
            @Override
            FileVisitResult visitFile(Path file, BasicFileAttributes of) {
                files << "${root.relativize(file)}\t${of.size()}\t${of.lastModifiedTime().toMillis()}\n".toString()
                return FileVisitResult.CONTINUE
            }
        })
        files.sort().each { digest.update(it.getBytes('UTF-8')) }
        return digest.digest().encodeHex().toString().take(16)
    }
}
