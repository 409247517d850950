// PTX text to instructions.
#include "ptx_code.h"
#include <cctype>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <set>

namespace ptx {

void fail(int code, const char* format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    throw Fault{code, text};
}

namespace {

const int INVALID_PTX = 218;
const uint64_t POISON = 0xfff7beefdeadbeefull; // a NaN as a float and as a double

struct Token {
    std::string text;
    int line;
};

bool word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.'; }

std::vector<Token> tokens(const char* p) {
    std::vector<Token> out;
    int line = 1;
    while (*p) {
        if (*p == '\n') line++;
        if (isspace((unsigned char)*p)) {
            p++;
        } else if (p[0] == '/' && p[1] == '/') {
            while (*p && *p != '\n') p++;
        } else if (p[0] == '/' && p[1] == '*') {
            for (p += 2; *p && !(p[0] == '*' && p[1] == '/'); p++) line += *p == '\n';
            if (*p) p += 2;
        } else if (*p == '"') {
            const char* from = p++;
            while (*p && *p != '"') p++;
            if (*p) p++;
            out.push_back({std::string(from, p), line});
        } else if (word(*p)) {
            const char* from = p;
            while (word(*p)) p++;
            out.push_back({std::string(from, p), line});
        } else {
            out.push_back({std::string(1, *p++), line});
        }
    }
    out.push_back({"", line});
    return out;
}

size_t type_size(const std::string& type) { // .u32: 4
    if (type.size() < 3 || !strchr("usfb", type[1]) || !isdigit((unsigned char)type[2])) return 0;
    return atoi(&type[2]) / 8;
}

const std::map<std::string, Special> specials = {
    {"%tid.x", TidX}, {"%tid.y", TidY}, {"%tid.z", TidZ}, {"%ntid.x", NtidX}, {"%ntid.y", NtidY}, {"%ntid.z", NtidZ},
    {"%ctaid.x", CtaidX}, {"%ctaid.y", CtaidY}, {"%ctaid.z", CtaidZ}, {"%nctaid.x", NctaidX}, {"%nctaid.y", NctaidY}, {"%nctaid.z", NctaidZ},
    {"%laneid", LaneId}, {"%warpid", WarpId},
};

// A variable in shared memory or a parameter: its offset there.
typedef std::map<std::string, size_t> Symbols;

class Parser {
    std::vector<Token> list;
    size_t at = 0;
    std::set<std::string> dynamic; // extern shared arrays of the module

    // Of the kernel that is being read.
    Code* code = nullptr;
    struct Bank {
        int base, count;
    };
    std::map<std::string, Bank> banks; // registers by prefix: %r<48>
    std::map<std::string, int> single;
    std::map<uint64_t, int> constants;
    std::map<uint64_t, std::vector<int>> unused;
    Symbols params, shared;
    std::map<std::string, size_t> labels;
    std::vector<std::pair<size_t, std::string>> branches;
    std::vector<std::pair<int, uint64_t>> values; // of constants' slots
    int slots = 0;

    const std::string& look() const { return list[at].text; }
    int line() const { return list[at].line; }
    std::string next() {
        if (look().empty()) fail(INVALID_PTX, "PTX line %d: ends in the middle of a statement", line());
        return list[at++].text;
    }
    bool take(const char* t) {
        if (look() != t) return false;
        at++;
        return true;
    }
    void need(const char* t) {
        if (!take(t)) fail(INVALID_PTX, "PTX line %d: \"%s\" where %s is expected", line(), look().c_str(), t);
    }
    size_t number() {
        int l = line();
        std::string t = next();
        char* end;
        size_t v = strtoull(t.c_str(), &end, 0);
        if (*end || t.empty()) fail(INVALID_PTX, "PTX line %d: \"%s\" is no number", l, t.c_str());
        return v;
    }
    static size_t aligned(size_t n, size_t a) { return (n + a - 1) / a * a; }

    // .align N .b8 name[count], after the state space.
    struct Variable {
        std::string name;
        size_t align, size;
        bool array;
    };
    Variable variable() {
        Variable v{"", 0, 0, false};
        int l = line();
        if (take(".align")) v.align = number();
        size_t element = type_size(next());
        if (!element) fail(INVALID_PTX, "PTX line %d: unknown type of a variable", l);
        if (!v.align) v.align = element;
        v.name = next();
        size_t count = 1;
        while (take("[")) {
            v.array = true;
            count *= look() == "]" ? 0 : number();
            need("]");
        }
        v.size = element * count;
        return v;
    }

    int constant(uint64_t v) {
        auto i = constants.find(v);
        if (i != constants.end()) return i->second;
        values.push_back({slots, v});
        return constants[v] = slots++;
    }

    int reg(const std::string& name, int l) {
        auto s = single.find(name);
        if (s != single.end()) return s->second;
        size_t digits = name.size();
        while (digits > 0 && isdigit((unsigned char)name[digits - 1])) digits--;
        auto b = banks.find(name.substr(0, digits));
        if (b != banks.end() && digits < name.size()) {
            int n = atoi(&name[digits]);
            if (n < b->second.count) return b->second.base + n;
        }
        auto special = specials.find(name);
        if (special != specials.end()) return code->special + special->second;
        fail(INVALID_PTX, "PTX line %d: register %s is not declared or not supported", l, name.c_str());
    }

    // A register, a number, or the address of a shared variable.
    int operand() {
        int l = line();
        bool negative = take("-");
        std::string t = next();
        if (t[0] == '%') return reg(t, l);
        auto s = shared.find(t);
        if (s != shared.end()) return constant(s->second);
        if (dynamic.count(t)) return constant(dynamic_at());
        if (!isdigit((unsigned char)t[0])) fail(INVALID_PTX, "PTX line %d: operand %s is not supported", l, t.c_str());
        char* end;
        uint64_t v;
        if (t[0] == '0' && (t[1] == 'f' || t[1] == 'F' || t[1] == 'd' || t[1] == 'D')) v = strtoull(t.c_str() + 2, &end, 16);
        else v = strtoull(t.c_str(), &end, 0);
        if (*end == 'U') end++;
        if (*end) fail(INVALID_PTX, "PTX line %d: \"%s\" is no number", l, t.c_str());
        return constant(negative ? -v : v);
    }
    size_t dynamic_at() const { return aligned(code->shared, 16); }

    // [base+offset]
    void address(Instruction& i) {
        need("[");
        int l = line();
        std::string t = look();
        auto p = params.find(t);
        if (p != params.end()) {
            at++;
            i.a = constant(p->second);
        } else {
            i.a = operand();
        }
        if (take("+")) {
            bool negative = take("-");
            i.offset = number();
            if (negative) i.offset = -i.offset;
        } else if (take("-")) {
            i.offset = -(int64_t)number();
        }
        if (look() != "]") fail(INVALID_PTX, "PTX line %d: address \"%s…\" is not supported", l, t.c_str());
        need("]");
    }

    void vector(Instruction& i) { // {a, b}
        need("{");
        do {
            if (i.width == 4) fail(INVALID_PTX, "PTX line %d: more than four of a vector", line());
            i.vector[i.width++] = operand();
        } while (take(","));
        need("}");
    }

    void vector_or_one(Instruction& i, int n) {
        if (n > 1) vector(i);
        else i.vector[i.width++] = operand();
        if (i.width != n) fail(INVALID_PTX, "PTX line %d: a vector of %d, not of %d", i.line, i.width, n);
    }

    void sources(Instruction& i, int n) {
        int* to[] = {&i.a, &i.b, &i.c, &i.e};
        for (int k = 0; k < n; k++) {
            need(",");
            if (take("!")) {
                if (k != n - 1) fail(INVALID_PTX, "PTX line %d: %s: ! on operand %d", i.line, i.name, k + 1);
                i.invert = true;
            }
            *to[k] = operand();
        }
    }

    void instruction() {
        Instruction i;
        if (take("@")) {
            i.unless = take("!");
            int l = line();
            i.guard = reg(next(), l);
        }
        i.line = line();
        std::string name = next();
        auto found = forms().find(name);
        if (found == forms().end()) fail(INVALID_PTX, "PTX line %d: instruction %s is not supported", i.line, name.c_str());
        const Form& form = found->second;
        i.run = form.run;
        i.name = found->first.c_str();
        code->waits |= form.waits;
        switch (form.shape) {
        case Form::Plain:
            i.d = operand();
            sources(i, form.sources);
            break;
        case Form::Two:
            i.d = operand();
            if (take("|")) i.d2 = operand();
            sources(i, form.sources);
            break;
        case Form::Load:
            vector_or_one(i, form.vector);
            need(",");
            address(i);
            break;
        case Form::Store:
            address(i);
            need(",");
            vector_or_one(i, form.vector);
            break;
        case Form::Atomic:
            i.d = look() == "_" ? (at++, -1) : operand();
            need(",");
            address(i);
            need(",");
            i.b = operand();
            if (form.sources == 2) {
                need(",");
                i.c = operand();
            }
            break;
        case Form::Reduce:
            address(i);
            need(",");
            i.b = operand();
            break;
        case Form::Branch:
            branches.push_back({code->instructions.size(), next()});
            break;
        case Form::Pack:
            if (look() == "{") {
                vector(i);
                need(",");
                i.a = operand();
            } else {
                i.d = operand();
                need(",");
                if (look() == "{") vector(i);
                else i.a = operand();
            }
            break;
        case Form::Wait:
            i.a = operand();
            break;
        case Form::Nothing:
            break;
        }
        need(";");
        code->instructions.push_back(i);
    }

    void declare_registers() { // after .reg
        std::string type = next();
        do {
            std::string name = next();
            if (take("<")) {
                int n = (int)number();
                need(">");
                Bank& b = banks[name];
                if (n > b.count) {
                    b = {slots, n};
                    slots += n;
                }
            } else if (!single.count(name)) {
                single[name] = slots++;
            }
        } while (take(","));
        need(";");
    }

    void declare_shared(Symbols& names) { // after .shared
        Variable v = variable();
        need(";");
        code->shared = aligned(code->shared, v.align);
        names[v.name] = code->shared;
        code->shared += v.size;
    }

    Kernel entry(const std::vector<Variable>& module_shared) { // after .entry
        Kernel k;
        k.code = std::make_shared<Code>();
        code = k.code.get();
        banks.clear();
        single.clear();
        constants.clear();
        params.clear();
        shared.clear();
        labels.clear();
        branches.clear();
        values.clear();
        slots = 0;
        code->special = slots;
        slots += Specials;
        for (auto& v : module_shared) {
            code->shared = aligned(code->shared, v.align);
            shared[v.name] = code->shared;
            code->shared += v.size;
        }
        k.name = next();
        need("(");
        while (!take(")")) {
            need(".param");
            Variable v = variable();
            size_t offset = aligned(code->params, v.align);
            params[v.name] = offset;
            k.params.push_back({offset, v.size});
            code->params = offset + v.size;
            take(",");
        }
        while (!take("{")) {
            int l = line();
            std::string t = next();
            if (t == ".maxntid" || t == ".reqntid") {
                k.max_threads = (int)number();
                while (take(",")) k.max_threads *= (int)number();
            } else if (t == ".minnctapersm" || t == ".maxnreg") {
                number();
            } else {
                fail(INVALID_PTX, "PTX line %d: %s is not supported", l, t.c_str());
            }
        }
        // Shared variables may come after code that names them; they come first in what NVRTC writes.
        for (int depth = 1; depth > 0;) {
            const std::string& t = look();
            if (t == "{") depth++, at++;
            else if (t == "}") depth--, at++;
            else if (t == ".reg") at++, declare_registers();
            else if (t == ".shared") at++, declare_shared(shared);
            else if (t == ".pragma" || t == ".loc") while (!take(";")) next();
            else if (t[0] == '.') fail(INVALID_PTX, "PTX line %d: %s is not supported", line(), t.c_str());
            else if (list[at + 1].text == ":") labels[next()] = code->instructions.size(), at++;
            else instruction();
        }
        Instruction end;
        end.name = "ret";
        end.run = forms().at("ret").run;
        end.line = line();
        code->instructions.push_back(end);
        for (auto& b : branches) {
            auto l = labels.find(b.second);
            Instruction& i = code->instructions[b.first];
            if (l == labels.end()) fail(INVALID_PTX, "PTX line %d: no label %s", i.line, b.second.c_str());
            i.offset = (int64_t)l->second - (int64_t)b.first;
        }
        code->frame.assign(slots, POISON);
        for (auto& v : values) code->frame[v.first] = v.second;
        return k;
    }

public:
    explicit Parser(const char* text) : list(tokens(text)) {}

    std::vector<Kernel> kernels() {
        std::vector<Kernel> out;
        std::vector<Variable> module_shared;
        while (!look().empty()) {
            int l = line();
            std::string t = next();
            if (t == ".version" || t == ".target" || t == ".address_size") {
                do next();
                while (take(","));
            } else if (t == ".visible" || t == ".weak" || t == ".extern") {
                continue;
            } else if (t == ".entry") {
                out.push_back(entry(module_shared));
            } else if (t == ".shared") {
                Variable v = variable();
                need(";");
                if (v.array && !v.size) dynamic.insert(v.name);
                else module_shared.push_back(v);
            } else {
                fail(INVALID_PTX, "PTX line %d: %s is not supported", l, t.c_str());
            }
        }
        return out;
    }
};

} // namespace

std::vector<Kernel> parse(const char* text) { return Parser(text).kernels(); }

} // namespace ptx
