import groovy.json.JsonException
import groovy.json.JsonSlurper
import java.nio.file.Files
import java.nio.file.Path
import nextflow.util.MemoryUnit

/** How much memory a task needs for the chunks of its input. Each of its CPUs works on a chunk. */
class Chunks {

    /** Bytes for each voxel of a chunk: those of focal with float32, which needs most. */
    private static final long PER_VOXEL = 16
    /** A larger file is no metadata, bytes. */
    private static final long MOST_TEXT = 1 << 20

    /**
     * The memory with which all CPUs of a task work on an image, an OME-Zarr or several; zero if its chunks are not known, as
     * those of an image at an address. Of the task's memory, mem_fraction becomes --mem.
     */
    static MemoryUnit memory(Object task, Object images, Map params) {
        return enough(task, [images].flatten().collect { it instanceof Path ? voxels(it) : 0L }, params)
    }

    /** Likewise for tiles of raw frames, folders of float32, each of which is to be a chunk. */
    static MemoryUnit ofFrames(Object task, Object tiles, Map params) {
        return enough(task, [tiles].flatten().collect { Path tile -> samples(tile) }, params)
    }

    private static MemoryUnit enough(Object task, List<Long> voxels, Map params) {
        return new MemoryUnit(Math.ceil((voxels.max() ?: 0L) * PER_VOXEL * (task.cpus as long) / (params.mem_fraction as double)) as long)
    }

    /** The samples of a tile's frames; 0 if it cannot be listed, which the program says that reads it. */
    private static long samples(Path tile) {
        try {
            return Files.newDirectoryStream(tile.toRealPath(), 'image_*.bin').withCloseable { it.sum(0L) { Files.size(it).intdiv(Float.BYTES) } as long }
        } catch (IOException ignored) {
            return 0L
        }
    }

    /** The voxels of a chunk of the largest level, of an inner one where there are shards; 0 if that is not known. */
    static long voxels(Path image) {
        final Path root
        try {
            root = image.toRealPath() // of a task's path, which Files does not take
        } catch (IOException ignored) {
            return 0L
        }
        final group = json(root.resolve('zarr.json')) ?: [attributes: json(root.resolve('.zattrs'))]
        final images = group.attributes?.ome?.multiscales ?: group.attributes?.multiscales
        final String level = images instanceof List ? images[0]?.datasets?.getAt(0)?.path ?: '0' : '0'
        final array = json(root.resolve(level).resolve('zarr.json'))
        final shards = array?.codecs instanceof List ? array.codecs.find { it instanceof Map && it.name == 'sharding_indexed' } : null
        final shape = shards?.configuration?.chunk_shape ?: array?.chunk_grid?.configuration?.chunk_shape ?: json(root.resolve(level).resolve('.zarray'))?.chunks
        return shape instanceof List && shape.every { it instanceof Integer && it > 0 } ? shape.inject(1L) { long n, k -> Math.min(n * (k as long), 1L << 40) } : 0L
    }

    /** What a JSON file holds; null if there is none. The program that reads it says what is wrong with it. */
    private static Map json(Path file) {
        if (!Files.isRegularFile(file) || Files.size(file) > MOST_TEXT)
            return null
        try {
            final found = new JsonSlurper().parseText(file.getText('UTF-8'))
            return found instanceof Map ? found : null
        } catch (JsonException | IOException ignored) {
            return null
        }
    }
}
