# The reader and translator of linumpy-params.sh: files as arguments; PROFILES and TABLE in the environment. Plain awk (POSIX), for mawk, gawk,
# BusyBox and macOS.

# ---- The table

function read_table(path, line, field) {
    while ((getline line < path) > 0) {
        if (line ~ /^#/ || line ~ /^name\t/)
            continue
        split(line, field, "\t")
        rows++
        row_name[rows] = field[1]
        row_workflow[rows] = field[2]
        row_ours[rows] = field[3]
        row_value[rows] = field[4]
        row_note[rows] = field[5]
        in_workflow[field[1], field[2]] = 1
        known[field[1]] = 1
    }
    close(path)
}

# ---- Tokens: kind[i] is w (word or number), s (text), n (end of a line) or p (punctuation); text[i] its text. A text in double quotes
# may refer to other values, and is marked so.

function token(k, t) {
    tokens++
    kind[tokens] = k
    text[tokens] = t
    plain[tokens] = 1
}

# slurp returns the content of a file.
function slurp(path, line, all, status) {
    while ((status = (getline line < path)) > 0) {
        sub(/\r$/, "", line)
        all = all line "\n"
    }
    close(path)
    return status < 0 ? "" : all
}

# lex_text reads a text that begins at position i of all, and returns the position after it.
function lex_text(all, i, q, end, out, c, bare) {
    q = substr(all, i, 1)
    end = substr(all, i, 3) == q q q ? q q q : q
    i += length(end)
    bare = 1
    while (i <= length(all) && substr(all, i, length(end)) != end) {
        c = substr(all, i, 1)
        if (c == "\n" && length(end) == 1)
            break
        if (c == "\\") {
            i++
            c = substr(all, i, 1)
            c = c == "n" ? "\n" : c == "t" ? "\t" : c == "$" ? "\001" : c
        } else if (c == "$" && q == "\"")
            bare = 0
        out = out c
        i++
    }
    token("s", out)
    plain[tokens] = bare
    if (bare)
        gsub("\001", "$", text[tokens])
    return i + length(end)
}

function lex(all, folder, i, n, c, d, last) {
    n = length(all)
    i = 1
    while (i <= n) {
        c = substr(all, i, 1)
        d = substr(all, i, 2)
        if (c == "\n") {
            token("n", "")
            i++
        } else if (c ~ /[ \t\f]/ || c == "\\" && substr(all, i + 1, 1) == "\n") {
            i += c == "\\" ? 2 : 1
        } else if (d == "//" || (d == "#!" && i == 1)) {
            while (i <= n && substr(all, i, 1) != "\n") i++
        } else if (d == "/*") {
            last = index(substr(all, i + 2), "*/")
            i = last ? i + last + 3 : n + 1
        } else if (c == "'" || c == "\"") {
            i = lex_text(all, i)
            if (tokens > 1 && kind[tokens - 1] == "w" && text[tokens - 1] == "includeConfig")
                include(folder)
        } else if (match(substr(all, i, 64), /^[0-9][0-9_]*(\.[0-9][0-9_]*)?([eE][-+]?[0-9]+)?[lLiIgGfFdD]?/) || match(substr(all, i, 256), /^[A-Za-z0-9_$]+/)) {
            token("w", substr(all, i, RLENGTH))
            i += RLENGTH
        } else {
            token("p", c)
            i++
        }
    }
    token("n", "")
}

# include reads the file that the last token names in place of it; what cannot be read is said.
function include(folder, path) {
    path = text[tokens]
    tokens -= 2
    if (path !~ /^\//)
        path = folder path
    if (depth < 10 && path !~ /\$/ && readable(path)) {
        depth++
        lex(slurp(path), folder_of(path))
        depth--
    } else
        complain("includeConfig " path ": there is no such file; what it sets is missing here")
}

function readable(path, line, status) {
    status = (getline line < path)
    close(path)
    return status >= 0
}

function folder_of(path) {
    return match(path, /^.*\//) ? substr(path, 1, RLENGTH) : ""
}

# ---- Settings: blocks, and NAME = VALUE in them

# settings walks the tokens from at on. place is the path of blocks around them, separated by blanks.
function settings(at, place, name) {
    while (at <= tokens) {
        if (kind[at] == "p" && text[at] == "}")
            return at + 1
        if (kind[at] != "w" && kind[at] != "s") {
            at++
            continue
        }
        name = text[at++]
        while (kind[at] == "p" && text[at] == "." && (kind[at + 1] == "w" || kind[at + 1] == "s")) {
            name = name " " text[at + 1]
            at += 2
        }
        if (kind[at] == "p" && text[at] == ":")
            at++
        if (place == "profiles ")
            profiles[name] = 1
        if (kind[at] == "p" && text[at] == "{")
            at = settings(at + 1, place name " ")
        else if (kind[at] == "p" && text[at] == "=" && text[at + 1] != "=")
            at = assign(at + 1, place name)
        else
            at = past(at)
    }
    return at
}

# past returns the position after the value that begins at at: its line, and those of open brackets or after an operator.
function past(at, open, start) {
    start = at
    while (at <= tokens) {
        if (kind[at] == "n" || (kind[at] == "p" && text[at] == ";")) {
            if (!open && !(at > start && kind[at - 1] == "p" && text[at - 1] ~ /^[-+*?:,.<>&|=]$/) && !(kind[at + 1] == "p" && text[at + 1] ~ /^[+?:.&|]$/))
                return at + 1
        } else if (kind[at] == "p" && text[at] ~ /^[[({]$/)
            open++
        else if (kind[at] == "p" && text[at] ~ /^[])}]$/) {
            if (!open)
                return at
            open--
        }
        at++
    }
    return at
}

# assign notes the value that begins at at under its name, if it is a parameter.
function assign(at, name, end, profile, parts, n, i, k) {
    end = past(at)
    n = split(name, parts, " ")
    if (parts[1] == "profiles" && n > 3 && parts[3] == "params") {
        profile = parts[2]
        k = 3
    } else if (parts[1] == "params" && n > 1)
        k = 1
    else
        return end
    name = parts[k + 1]
    for (i = k + 2; i <= n; i++)
        name = name "." parts[i]
    if (profile != "" && !(profile in wanted)) {
        if (!(profile in others))
            other_profiles = other_profiles (other_profiles == "" ? "" : ", ") profile
        others[profile] = 1
        return end
    }
    read_value(at, end)
    settings_read++
    # A profile takes precedence over what stands outside of it.
    i = profile == "" ? "0" : "1"
    if (!(name in rank) || rank[name] <= i) {
        if (!(name in rank))
            order[++names] = name
        rank[name] = i
        type[name] = found_type
        value[name] = found
    }
    return end
}

# read_value sets found_type and found for the tokens from at to before end: null, bool, number, text, reference (a text that refers to other
# values), list (separated by commas), and computed for all others.
function read_value(at, end, i, all) {
    while (end > at && (kind[end - 1] == "n" || text[end - 1] == ";"))
        end--
    if (scalar(at, end))
        return
    if (kind[at] == "p" && text[at] == "[" && text[end - 1] == "]" && list_of(at + 1, end - 1)) {
        found_type = "list"
        return
    }
    for (i = at; i < end; i++)
        all = all (i > at && kind[i] != "p" && kind[i - 1] != "p" ? " " : "") (kind[i] == "s" ? "'" text[i] "'" : kind[i] == "n" ? " " : text[i])
    found_type = "computed"
    found = all
}

# list_of sets found to the items between at and end, and returns whether all are plain.
function list_of(at, end, all, from) {
    from = at
    for (; at <= end; at++) {
        if (at < end && !(kind[at] == "p" && text[at] == ","))
            continue
        while (from < at && kind[from] == "n") from++
        if (from == at)
            continue
        if (!scalar(from, at) || found_type == "null" || found_type == "reference")
            return 0
        all = all (all == "" ? "" : ",") found
        from = at + 1
    }
    found = all
    return 1
}

# scalar sets found_type and found if the tokens from at to before end are one plain value.
function scalar(at, end, sign, t) {
    while (end > at && kind[end - 1] == "n") end--
    if (end == at + 2 && kind[at] == "p" && text[at] == "-" && kind[at + 1] == "w") {
        sign = "-"
        at++
    }
    if (end != at + 1)
        return 0
    t = text[at]
    found = t
    if (kind[at] == "s") {
        found_type = plain[at] ? "text" : "reference"
        return 1
    }
    if (kind[at] != "w")
        return 0
    if (t ~ /^[0-9][0-9_]*(\.[0-9_]+)?([eE][-+]?[0-9]+)?[lLiIgGfFdD]?$/) {
        gsub(/_/, "", t)
        sub(/[lLiIgGfFdD]$/, "", t)
        found = sign t
        found_type = "number"
        return 1
    }
    if (sign != "")
        return 0
    if (t == "true" || t == "false")
        found_type = "bool"
    else if (t == "null")
        found_type = "null"
    else
        return 0
    return 1
}

# resolve replaces $params.NAME and ${params.NAME} in a text; the type becomes computed if it refers to something else.
function resolve(name, t, ref, whole, steps) {
    if (type[name] != "reference")
        return
    t = value[name]
    while (match(t, /\$\{ *params\.[A-Za-z0-9_]+ *\}|\$params\.[A-Za-z0-9_]+/) && steps++ < 100) {
        whole = substr(t, RSTART, RLENGTH)
        ref = whole
        gsub(/^\$\{? *params\.| *\}$/, "", ref)
        if (!(ref in value) || ref == name || type[ref] == "computed" || type[ref] == "list")
            break
        t = substr(t, 1, RSTART - 1) value[ref] substr(t, RSTART + RLENGTH)
    }
    if (t ~ /\$/) {
        type[name] = "computed"
        return
    }
    gsub("\001", "$", t)
    type[name] = "text"
    value[name] = t
}

# ---- Translation

function complain(line) {
    complaints[++lines] = line
    print line > "/dev/stderr"
}

# quoted returns t as YAML's text in double quotes.
function quoted(t) {
    gsub(/\\/, "\\\\", t)
    gsub(/"/, "\\\"", t)
    gsub(/\n/, "\\n", t)
    gsub(/\t/, "\\t", t)
    return "\"" t "\""
}

# bare returns a value with its own type.
function bare(name, t) {
    t = value[name]
    if (type[name] == "text" && t !~ /^(true|false|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?)$/)
        return quoted(t)
    return t
}

# result returns what a row's rule makes of a parameter: YAML's text, nothing, or ! where there is no counterpart.
function result(rule, name, n, parts, i, eq, to, t) {
    if (rule == "-")
        return ""
    if (rule == "list") {
        t = value[name]
        gsub(/^[ ,;]+|[ ,;]+$/, "", t)
        gsub(/[ ,;]+/, ",", t)
        return quoted(t)
    }
    to = "!"
    n = split(rule, parts, ";")
    for (i = 1; i <= n; i++) {
        eq = index(parts[i], "=")
        if (!eq) {
            to = parts[i]
            break
        }
        t = substr(parts[i], 1, eq - 1)
        if (t == "*" || t == value[name]) {
            to = substr(parts[i], eq + 1)
            break
        }
    }
    if (to == "&")
        return bare(name)
    i = index(to, "&")
    if (i)
        return quoted(substr(to, 2, i - 2) value[name] substr(to, i + 1, length(to) - i - 1))
    return to
}

# shown returns a setting in one line, for messages.
function shown(name, t) {
    t = type[name] == "text" ? "'" value[name] "'" : value[name]
    gsub(/[\n\r]+/, " ", t)
    return name " = " (length(t) > 60 ? substr(t, 1, 57) "..." : t)
}

# workflow returns whose configuration was read: names that only one of the two workflows has decide, or else what the last one was.
function workflow(i, of) {
    for (i = 1; i <= names; i++) {
        of["preproc"] += ((order[i], "preproc") in in_workflow) && !((order[i], "3d") in in_workflow)
        of["3d"] += ((order[i], "3d") in in_workflow) && !((order[i], "preproc") in in_workflow)
    }
    if (of["preproc"] != of["3d"])
        last_workflow = of["preproc"] > of["3d"] ? "preproc" : "3d"
    return last_workflow
}

# merge adds what one file sets to what the ones before it set for the same workflow, and forgets it.
function merge(of, i, name) {
    for (i = 1; i <= names; i++) {
        name = order[i]
        if (!((of, name) in all_type))
            all_order[of, ++all_names[of]] = name
        all_type[of, name] = type[name]
        all_value[of, name] = value[name]
    }
    forget()
    tokens = 0
}

function forget(i) {
    for (i = 1; i <= names; i++) {
        delete rank[order[i]]
        delete value[order[i]]
        delete type[order[i]]
    }
    names = 0
}

function translate(of, i, r, name) {
    for (names = 0; names < all_names[of];) {
        name = all_order[of, ++names]
        order[names] = name
        type[name] = all_type[of, name]
        value[name] = all_value[of, name]
    }
    for (i = 1; i <= names; i++)
        resolve(order[i])
    for (i = 1; i <= names; i++) {
        name = order[i]
        if (!(name in known))
            complain(shown(name) ": linumpy has no parameter of this name")
        else if (!((name, of) in in_workflow) && !((name, "any") in in_workflow))
            complain(shown(name) ": is of another workflow of linumpy than the rest of this file")
        else if (type[name] == "computed" && (r = by_hand(name, of)) != "")
            complain(shown(name) ": is computed: set " r)
    }
    for (r = 1; r <= rows; r++) {
        name = row_name[r]
        if (name in value && (row_workflow[r] == of || row_workflow[r] == "any") && (type[name] !~ /^(computed|null)$/ && value[name] != "" || row_ours[r] == "-" && row_value[r] == "-"))
            apply(r, result(row_value[r], name))
    }
    forget()
}

# apply notes what the row r of the table makes of its parameter.
function apply(r, to) {
    if (to == "!")
        complain(shown(row_name[r]) ": has no counterpart: " row_note[r])
    else if (row_ours[r] == "-")
        needless[row_name[r]] = row_note[r]
    else if (to != "") {
        if (!(row_ours[r] in yaml))
            ours[++count] = row_ours[r]
        yaml[row_ours[r]] = to
        from[row_ours[r]] = row_name[r]
    }
}

# by_hand says which of our parameters stand for one whose value is computed.
function by_hand(name, of, r, list) {
    for (r = 1; r <= rows; r++)
        if (row_name[r] == name && (row_workflow[r] == of || row_workflow[r] == "any") && row_ours[r] != "-")
            list = list (list == "" ? "" : ", ") row_ours[r]
    return list
}

function print_yaml(i, key, r) {
    print "# Translated by linumpy-params.sh from" said_files ". Run it with: nextflow run main.nf -params-file THIS_FILE"
    print "# Parameters that are not here have our defaults, which differ from linumpy's in places: docs/migrating.md."
    print "chain: full"
    for (i = 1; i <= count; i++) {
        key = ours[i]
        # The mosaics that preproc leaves and reconst_3d takes are made and taken in one run.
        if (key == "input" && "raw" in yaml)
            continue
        print key ": " yaml[key] (from[key] == key ? "" : "  # " from[key])
    }
    if (lines)
        print "\n# Not translated:"
    for (i = 1; i <= lines; i++)
        print "#   " complaints[i]
    for (r = 1; r <= rows; r++) {
        if (!(row_name[r] in needless))
            continue
        if (!titled++)
            print "\n# Needs no counterpart:"
        print "#   " row_name[r] ": " needless[row_name[r]]
        delete needless[row_name[r]]
    }
}

# fail ends with an exit code and a line that says why.
function fail(code, line) {
    print line > "/dev/stderr"
    exit code
}

BEGIN {
    read_table(ENVIRON["TABLE"])
    asked = split(ENVIRON["PROFILES"], asked_for, ",")
    for (i = 1; i <= asked; i++)
        wanted[asked_for[i]] = 1
    last_workflow = "3d"
    for (f = 1; f < ARGC; f++) {
        before = settings_read
        lex(slurp(ARGV[f]), folder_of(ARGV[f]))
        at = 1
        while (at <= tokens)
            at = settings(at, "")
        if (settings_read == before && other_profiles == "")
            fail(3, ARGV[f] " has no parameters: neither params { NAME = … } nor params.NAME = …")
        said_files = said_files " " ARGV[f]
        merge(workflow())
    }
    for (i = 1; i <= asked; i++)
        if (!(asked_for[i] in profiles))
            fail(2, "-profile " asked_for[i] ": no file has a profile of this name")
    translate("preproc")
    translate("3d")
    if (other_profiles != "")
        complain("profiles with parameters of their own: " other_profiles ": -profile NAME takes them")
    print_yaml()
}
