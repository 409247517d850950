import groovy.json.JsonSlurper
import java.nio.file.Path

/**
 * The workflow's parameters, checked against nextflow_schema.json before anything
 * runs: unknown names, wrong types, values out of range, input that is not there.
 * Each problem is one line that names the parameter and says what would be right.
 */
class Parameters {

    /** Name → its entry in the schema, in the schema's order. */
    final Map<String, Map> known = [:]
    private final List<Map> groups = []
    private final Set<String> required = []

    Parameters(Path schema) {
        final Map root = new JsonSlurper().parse(schema.toFile()) as Map
        for (String name : root.allOf*.get('$ref')) {
            final Map group = root.get('$defs')[name.tokenize('/').last()] as Map
            groups << group
            known.putAll(group.properties as Map)
            required.addAll(group.required ?: [])
        }
    }

    /** The parameters, each in the type of its entry: from the command line of some engines, and from quotes in a file, text comes. */
    Map values(Map given) {
        final Map values = new LinkedHashMap(given)
        known.each { name, entry -> values[name] = typed(entry, given[name]) }
        return values
    }

    /** A value that is text in the type of its entry; as it is where that is not possible. */
    private static Object typed(Map entry, Object value) {
        final text = value instanceof CharSequence ? value.toString().trim() : ''
        if (entry.type == 'boolean' && text in ['true', 'false'])
            return text == 'true'
        if (entry.type == 'integer' && text ==~ /-?\d{1,18}/)
            return text as Long
        if (entry.type == 'number' && text ==~ /-?(\d+\.?\d*|\.\d+)([eE]-?\d{1,2})?/)
            return text as BigDecimal
        return entry.bare && value instanceof Boolean ? value.toString() : value
    }

    /** One line for each problem; empty when the parameters, as values returns them, are fine. */
    List<String> check(Map params) {
        final List<String> problems = []
        // For --a-b Nextflow sets aB as well: the second name is an echo of the first.
        final echoes = params.keySet().findAll { it.contains('-') }.collect { camel(it as String) } as Set
        for (String name : params.keySet()) {
            if (!known.containsKey(name) && !(name in echoes))
                problems << unknown(name)
        }
        known.each { name, entry ->
            final value = params[name]
            final problem = value == null ? missing(name) : wrong(entry, value)
            if (problem)
                problems << "parameter ${name}: ${problem}".toString()
        }
        final given = ['input', 'slices', 'raw'].findAll { params[it] != null }
        if (!given)
            problems << 'parameter input: is missing: the folder of mosaic grids (--input or in -params-file); --raw for raw frames, --slices for slices that are stitched already'
        if (given.size() > 1)
            problems << "parameter ${given[1]}: contradicts ${given[0]}: give one of them".toString()
        if (params.watch && params.raw == null)
            problems << 'parameter watch: needs raw: the folder to watch'
        final chain = Chain.problem(params)
        if (chain && !problems)
            problems << chain.toString()
        if (!problems && params.require_gpu && !params.use_gpu)
            problems << 'parameter require_gpu: contradicts use_gpu = false'
        return problems
    }

    /**
     * The flags of a program that the parameters set, as text: those whose entry in
     * the schema has "sets": "program --flag". What is unset, or off by default, is left
     * out, and so is what has "unless": the name of a parameter that is set.
     */
    String flags(String program, Map params) {
        final mine = known.findAll { (it.value.sets as String)?.startsWith("${program} ") }
        final set = mine.findAll { !it.value.unless || params[it.value.unless] == null }
        return set.keySet().collect { flag(it, params) }.findAll().join(' ')
    }

    /** The one flag that a parameter sets, or nothing. */
    String flag(String name, Map params) {
        final value = params[name]
        final String flag = (known[name].sets as String).tokenize(' ').last()
        if (value == null || value == false)
            return value == false && known[name].default == true ? flag.replaceFirst('--', '--no-') : ''
        return value == true ? flag : "${flag} ${text(value)}".toString()
    }

    /** A value as a program takes it; 0.20 and 0.2 are the same. */
    private static String text(Object value) {
        if (value instanceof Collection)
            return value.collect { text(it) }.join(',')
        return value instanceof Number ? new BigDecimal(value.toString()).stripTrailingZeros().toPlainString() : value.toString().replace(' ', '')
    }

    /** The list that --help prints, or the groups of it whose title has a word. */
    String help(String command, Object word) {
        final out = new StringBuilder("usage: ${command} --input FOLDER [--outdir FOLDER] [parameters] [-profile NAMES] [-resume]\n")
        out << "       parameters may stand in a file too: -params-file params.yml\n"
        out << "       --help WORD lists one group: ${groups.collect { (it.title as String).tokenize(' :,').first().toLowerCase(Locale.ROOT) }.unique().join(', ')}\n"
        final chosen = word == true ? groups : groups.findAll { (it.title as String).toLowerCase(Locale.ROOT).contains(word.toString().toLowerCase(Locale.ROOT)) }
        if (!chosen)
            out << "\nno group is called ${word}\n"
        final width = known.keySet()*.size().max() + 4
        for (Map group : chosen) {
            out << "\n${group.title}\n"
            (group.properties as Map).each { name, entry ->
                out << "  --${name}".padRight(width) << facts(name as String, entry as Map) << '\n'
                for (String line : wrap(entry.description as String, 76))
                    out << '      ' << line << '\n'
            }
        }
        return out.toString()
    }

    private String facts(String name, Map entry) {
        final List<String> facts = [entry.type as String]
        if (entry.enum)
            facts << (entry.enum as List).join(' | ')
        if (entry.minimum != null)
            facts << "${entry.minimum} to ${entry.maximum}".toString()
        if (entry.default != null)
            facts << "default ${entry.default}".toString()
        else if (name in required)
            facts << 'required'
        return '  ' + facts.join(', ')
    }

    private String missing(String name) {
        return name in required ? "is missing: ${known[name].description} (--${name} or in -params-file)" : null
    }

    /** What is wrong with a value, or null. */
    private static String wrong(Map entry, Object value) {
        switch (entry.type) {
            case 'boolean':
                if (!(value instanceof Boolean))
                    return "is ${shown(value)}, should be true or false" + (value instanceof CharSequence ? ', without quotes in a file: quotes make text' : '')
                break
            case 'integer':
                if (!(value instanceof Integer || value instanceof Long || value instanceof BigInteger))
                    return "is ${shown(value)}, should be a whole number${range(entry)}"
                break
            case 'number':
                if (!(value instanceof Number))
                    return "is ${shown(value)}, should be a number${range(entry)}"
                break
            case 'string':
                // A name such as 2024 arrives as a number from the command line.
                if (value instanceof Collection && entry.list)
                    return wrong(entry, value.join(','))
                if (!(value instanceof CharSequence || value instanceof Number || value instanceof Path))
                    return value == true ? 'has no value' : "is ${shown(value)}, should be text"
                break
        }
        if (entry.minimum != null && ((value as BigDecimal) < entry.minimum || (value as BigDecimal) > entry.maximum))
            return "is ${value}, should be from ${entry.minimum} to ${entry.maximum}"
        if (entry.enum && !((entry.enum as List)*.toString().contains(value.toString())))
            return "is '${value}', should be one of ${(entry.enum as List).join(', ')}"
        if (entry.pattern && !(value.toString() ==~ (entry.pattern as String)))
            return "is '${value}', should look like '${(entry.examples as List)[0]}'"
        if (entry.type == 'string' && !entry.list && value.toString().trim().isEmpty())
            return 'is empty'
        if (entry.exists && !(entry.address && Inputs.isAddress(value.toString())) && !new File(value.toString()).exists())
            return "no such file or folder: ${new File(value.toString()).absolutePath}"
        return null
    }

    private static String shown(Object value) { value == true ? 'without a value' : "'${value}'" }

    private static String range(Map entry) {
        entry.minimum == null ? '' : " from ${entry.minimum} to ${entry.maximum}"
    }

    private String unknown(String name) {
        final plain = name.replaceAll(/[A-Z]/) { '_' + it.toLowerCase(Locale.ROOT) }.replace('-', '_')
        if (plain ==~ /no_.+/ && known[plain.substring(3)]?.type == 'boolean')
            return "parameter ${name}: unknown, did you mean --${plain.substring(3)} false?"
        final near = known.keySet().min { distance(plain, it) }
        final hint = distance(plain, near) <= Math.max(2, near.size().intdiv(3)) ? ", did you mean ${near}?" : ' (--help lists them)'
        return "parameter ${name}: unknown${hint}"
    }

    private static String camel(String name) { name.replaceAll(/-(.)/) { it[1].toUpperCase(Locale.ROOT) } }

    /** Levenshtein distance. */
    private static int distance(String a, String b) {
        int[] row = 0..b.size()
        for (int i = 1; i <= a.size(); i++) {
            int diagonal = row[0]
            row[0] = i
            for (int j = 1; j <= b.size(); j++) {
                final int above = row[j]
                row[j] = Math.min(Math.min(row[j], row[j - 1]) + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1))
                diagonal = above
            }
        }
        return row[b.size()]
    }

    private static List<String> wrap(String text, int width) {
        final List<String> lines = ['']
        for (String word : text.split(' ')) {
            if (lines[-1] && lines[-1].size() + 1 + word.size() > width)
                lines << ''
            lines[-1] = lines[-1] ? "${lines[-1]} ${word}".toString() : word
        }
        return lines
    }
}
