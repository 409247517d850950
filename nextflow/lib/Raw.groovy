import java.nio.file.FileVisitOption
import java.nio.file.FileVisitResult
import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.SimpleFileVisitor
import java.nio.file.attribute.BasicFileAttributes
import nextflow.Channel
import nextflow.util.Duration

/**
 * Raw frames of a microscope: folders tile_x<XX>_y<YY>_z<ZZ> anywhere below one
 * folder, all of one z the tiles of a slice; and how they are waited for while
 * slices are still imaged.
 *
 * A slice is complete when none of its files has changed for watch_settle and a
 * later slice has begun, or when the imaging has ended: a microscope may pause
 * within a slice for longer. It has ended when there is a file called watch_end,
 * or when nothing has changed for watch_idle.
 */
class Raw {

    private static final TILE = ~/tile_x\d+_y\d+_z(\d{1,9})/
    /** The folder that many have around the tiles of a slice. */
    private static final SLICE = ~/z(\d{1,9})/
    /** How far below the root tiles may lie. */
    private static final int DEPTH = 5

    private final Path root
    private final Map params
    /** Numbers of the slices that were handed on, in that order. */
    private final List<Integer> taken = []
    /** Slice → its fingerprint when it was looked at last, and when that began, ms. */
    private final Map<Integer, List> seen = [:]
    private long changed = System.currentTimeMillis()
    private boolean over

    Raw(Path root, Map params) {
        this.root = root
        this.params = params
    }

    /** What the mosaic grid of a slice is called. */
    static String name(int number) { String.format(Locale.ROOT, 'mosaic_grid_3d_z%02d', number) }

    /** Tile folders by the number of their slice, but those of slices that are known already. */
    private SortedMap<Integer, List<Path>> find(Collection<Integer> known) {
        final SortedMap<Integer, List<Path>> found = new TreeMap<>()
        Files.walkFileTree(root, EnumSet.of(FileVisitOption.FOLLOW_LINKS), DEPTH, new SimpleFileVisitor<Path>() {
            @Override
            FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes of) {
                final String name = folder.fileName
                if (folder == root)
                    return FileVisitResult.CONTINUE
                final group = name =~ SLICE
                if (group.matches())
                    return (group.group(1) as int) in known ? FileVisitResult.SKIP_SUBTREE : FileVisitResult.CONTINUE
                final tile = name =~ TILE
                if (!tile.matches())
                    return FileVisitResult.CONTINUE
                final int number = tile.group(1) as int
                if (!(number in known))
                    found.computeIfAbsent(number) { [] } << folder
                return FileVisitResult.SKIP_SUBTREE
            }

            @Override
            FileVisitResult visitFileFailed(Path file, IOException e) {
                // What vanished or leads nowhere is no tile; a folder that may not be read is said by the task that needs it.
                return FileVisitResult.CONTINUE
            }
        })
        found.each { number, tiles -> tiles.sort { it.fileName.toString() } }
        return found
    }

    /** [name, tile folders, fingerprint] of the slices that are there, by number. */
    List<List> slices() {
        final found = find([])
        if (!found)
            throw new IllegalArgumentException("parameter raw: no folder tile_x<XX>_y<YY>_z<ZZ> in ${root}, nor in the folders in it; --watch waits for them")
        taken.addAll(found.keySet())
        return found.collect { number, tiles ->
            final twice = tiles.countBy { it.fileName.toString() }.find { it.value > 1 }
            if (twice)
                throw new IllegalArgumentException("parameter raw: two folders are called ${twice.key}: ${tiles.find { it.fileName.toString() == twice.key }} is one")
            return [name(number), tiles, mark(tiles)]
        }
    }

    private static String mark(List<Path> tiles) { Inputs.digest(tiles.collect { Inputs.fingerprint(it) }) }

    /** How many slices there were so far. */
    int count() { taken.size() }

    /** The slices between the first and the last that there were none of so far, as slice_z<NN>. */
    List<String> absent() { taken ? ((taken.min()..taken.max()) - taken).collect { Inputs.slice("z${it}") } : [] }

    /** A channel of the slices, each when it is complete; whenOver is called before it ends. */
    Object watch(Closure whenOver) {
        return Channel.interval(params.watch_interval.toString()) { look(whenOver) }.flatMap { it }
    }

    /** The slices that are complete now, or the end of the channel. An exception would end the timer, and nobody would know. */
    private Object look(Closure whenOver) {
        if (over)
            return Channel.STOP
        try {
            final List<List> ready = next()
            if (over)
                whenOver.call()
            return ready
        } catch (Exception e) {
            System.err.println("strata: watch: ${e}: looking again")
            return []
        }
    }

    private List<List> next() {
        final long now = System.currentTimeMillis()
        final SortedMap<Integer, List<Path>> found = find(taken)
        final Map<Integer, String> marks = [:]
        found.each { number, tiles ->
            marks[number] = mark(tiles)
            if (seen[number]?.first() != marks[number]) {
                seen[number] = [marks[number], now]
                changed = now
            }
        }
        over = Files.exists(root.resolve(params.watch_end.toString())) || now - changed >= millis('watch_idle')
        final int newest = ((found.keySet() + taken) ?: [0]).max()
        final ready = found.keySet().findAll { over || it < newest && now - (seen[it][1] as long) >= millis('watch_settle') }
        taken.addAll(ready)
        final Set<Integer> only = Inputs.numbers(params.only_slices)
        return ready.findAll { !only || it in only }.collect { [name(it), found[it], marks[it]] }
    }

    private long millis(String parameter) { Duration.of(params[parameter].toString()).toMillis() }
}
