// Collection and instantiation of the prelude's parts.
#include "lantern/codegen/c/prelude.hpp"

#include <algorithm>

#include "lantern/codegen/c/prelude_text.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/op.hpp"

namespace lantern::codegen {

using ir::Kind;

namespace {

/// How a number called x is written to standard output.
std::string shown(Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return "  printf(x ? \"true\" : \"false\");";
    case Kind::i32:
    case Kind::i64:
      return "  printf(\"%lld\", (long long)x);";
    default: {
      const std::string digits = kind == Kind::f32 ? "7" : "15";
      return "  if (x != x) printf(\"nan\");\n  else printf(\"%." + digits + "g\", (double)x);";
    }
  }
}

}  // namespace

std::string instantiated(std::string_view text, Kind kind, const Target& target, std::string_view stored) {
  const std::string element = target.element(kind);
  const std::string memory = stored.empty() ? element : "lt_" + std::string(stored.substr(0, stored.find('_')));
  const std::string result = stored.find('_') == std::string_view::npos ? memory : element;
  const auto blas = [](const std::string& type) { return type == "lt_f16" ? "2" : type == "lt_bf16" ? "14" : type == "double" ? "1" : "0"; };
  std::string s;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$' && i + 1 < text.size()) {
      const char what = text[++i];
      switch (what) {
        case 'K': s += stored.empty() ? ir::kind_name(kind) : stored; break;
        case 'P': s += shown(kind); break;
        case 'S': s += element; break;
        case 'R': s += result; break;
        case 'B': s += blas(memory); break;
        case 'C': s += blas(result); break;
        default: s += memory;
      }
    } else {
      s += text[i];
    }
  }
  return s;
}

void Prelude::need(const std::string& part) {
  if (!fresh(part)) return;
  const PreludePart* row = prelude_part(part);
  if (!row) throw InternalError("no part of the prelude is called " + part);
  for (const std::string_view dependency : row->needs) need(std::string(dependency));
  if (part == "polygamma")
    for (const char* name : {"floor", "tan", "sin", "log", "pow"}) math(name, Kind::f64);
  const char* const own = target_->prelude_part(part);
  add(static_cast<Group>(row->group), own ? own : std::string(row->text));
}

std::string Prelude::kernel(const std::string& name, Kind kind, const std::string& stored) {
  const std::string full = "lt_" + name + "_" + (stored.empty() ? ir::kind_name(kind) : stored);
  if (!fresh(full)) return full;
  const bool integers = kind == Kind::i32 || kind == Kind::i64;
  const PreludePart* row = integers ? prelude_part("K:" + name + ":integers") : nullptr;
  if (!row) row = prelude_part("K:" + name);
  if (!row) throw InternalError("no kernel is called " + name);
  need("integers");
  if (!stored.empty()) need(stored.substr(0, stored.find('_')));
  for (const std::string_view dependency : row->needs) {
    if (!dependency.starts_with("K:")) {
      need(std::string(dependency));
      continue;
    }
    // "1d" a structure, "new1d" a function that makes one, anything else another kernel.
    const std::string_view what = dependency.substr(2);
    if (!what.ends_with("d") || what.size() < 2 || what[what.size() - 2] < '0' ||
        what[what.size() - 2] > '9') {
      kernel(std::string(what), kind, stored);
      continue;
    }
    const int rank = what[what.size() - 2] - '0';
    const std::string function(what.substr(0, what.size() - 2));
    if (function.empty()) {
      tensor(kind, rank);
    } else {
      tensor_function(function, kind, rank);
    }
  }
  const char* const own = target_->prelude_part("K:" + name);
  add(static_cast<Group>(row->group), instantiated(own ? own : row->text, kind, *target_, stored));
  if (row->routine && !own) parts_.back().routine = full;
  return full;
}

std::string Prelude::tensor_type(const std::string& begin, const std::string& element, std::string_view kind, int rank, bool strides) {
  const std::string name = begin + std::string(kind) + "_" + std::to_string(rank) + "d";
  if (!fresh(name)) return name;
  need("integers");
  const std::string sizes = "[" + std::to_string(rank > 0 ? rank : 1) + "];\n";
  add(Group::types, "typedef struct {\n  " + element + "* data;\n  int64_t dim" + sizes +
                        (strides ? "  int64_t stride" + sizes : "") + "} " + name + ";\n");
  return name;
}

std::string Prelude::tensor(Kind kind, int rank, const std::string& stored) {
  if (stored.empty()) return tensor_type("lt_", target_->element(kind), ir::kind_name(kind), rank, false);
  need(stored);
  return tensor_type("lt_", "lt_" + stored, stored, rank, false);
}
std::string Prelude::const_tensor(Kind kind, int rank) {
  return tensor_type("lt_const_", "const " + target_->element(kind), ir::kind_name(kind), rank, false);
}
std::string Prelude::strided_tensor(Kind kind, int rank) {
  return tensor_type("lt_strided_", target_->element(kind), ir::kind_name(kind), rank, true);
}
std::string Prelude::const_strided_tensor(Kind kind, int rank) {
  return tensor_type("lt_const_strided_", "const " + target_->element(kind), ir::kind_name(kind), rank, true);
}

std::string Prelude::tensor_function(const std::string& what, Kind kind, int rank, const std::string& stored) {
  const std::string type = tensor(kind, rank, stored);
  const std::string name = "lt_" + what + type.substr(2);
  if (!fresh(name)) return name;
  const std::string element = stored.empty() ? target_->element(kind) : "lt_" + stored;
  const std::string bytes =
      "(unsigned long)lt_count(ws, t.dim, " + std::to_string(rank) + ") * sizeof(" + element + ")";
  std::string sizes, values, dims;
  for (int r = 0; r < rank; ++r) {
    const std::string d = "d" + std::to_string(r);
    sizes += ", int64_t " + d;
    values += (r ? ", " : "") + d;
    dims += ", x.dim[" + std::to_string(r) + "]";
  }
  if (rank == 0) values = "1";
  if (what == "save" || what == "load") return tensor_on_tape(what, kind, rank, name);
  if (what.starts_with("device_") || what.starts_with("to_")) return device_tensor_function(what, type, element, kind, rank, name);
  std::string text = "static " + type + " " + name + "(lt_workspace* ws";
  if (what == "new") {
    need("count");
    need("allocate");
    text += sizes + ") {\n  " + type + " t = {0, {" + values + "}};\n  t.data = (" + element +
            "*)lt_allocate(ws, lt_count(ws, t.dim, " + std::to_string(rank) + ") * (int64_t)sizeof(" +
            element + "));\n";
  } else if (what == "zeros") {
    const std::string make = tensor_function("new", kind, rank);
    need("memset");
    text += sizes + ") {\n  " + type + " t = " + make + "(ws" + (rank ? ", " + values : "") + ");\n";
    text += "  memset(t.data, 0, " + bytes + ");\n";
  } else if (what == "copy") {
    const std::string make = tensor_function("new", kind, rank);
    need("memcpy");
    text += ", " + type + " x) {\n  " + type + " t = " + make + "(ws" + dims + ");\n";
    text += "  memcpy(t.data, x.data, " + bytes + ");\n";
  } else {
    throw InternalError("no function makes a tensor by " + what);
  }
  add(Group::functions, text + "  return t;\n}\n");
  return name;
}

/// lt_save_f64_1d puts a tensor's elements, then its sizes, on a tape; lt_load_f64_1d takes them off.
/// Elements take multiples of eight bytes.
std::string Prelude::tensor_on_tape(const std::string& what, Kind kind, int rank, const std::string& name) {
  const std::string type = tensor(kind, rank), element = target_->element(kind);
  const std::string dims = "(int64_t)sizeof t.dim";
  const std::string bytes = "  const int64_t bytes = lt_count(ws, t.dim, " + std::to_string(rank) +
                            ") * (int64_t)sizeof(" + element +
                            ");\n  const int64_t room = (bytes + 7) / 8 * 8;\n";
  need("memcpy");
  need("count");
  const std::string tape = "  lt_tape* tape = &ws->tapes[number];\n";
  std::string text;
  if (what == "save") {
    need("grow_tape");
    text = "static void " + name + "(lt_workspace* ws, int64_t number, " + type + " t) {\n" + tape + bytes +
           "  const int64_t used = tape->used + room + " + dims +
           ";\n  if (used > tape->capacity) lt_grow_tape(ws, tape, used);\n"
           "  if (bytes > 0) memcpy(tape->data + tape->used, t.data, (unsigned long)bytes);\n"
           "  memcpy(tape->data + tape->used + room, t.dim, sizeof t.dim);\n  tape->used = used;\n}\n";
  } else {
    need("allocate");
    text = "static " + type + " " + name + "(lt_workspace* ws, int64_t number) {\n" + tape + "  " + type +
           " t;\n  memcpy(t.dim, tape->data + tape->used - " + dims + ", sizeof t.dim);\n" + bytes +
           "  tape->used -= room + " + dims + ";\n  t.data = (" + element +
           "*)lt_allocate(ws, bytes);\n  if (bytes > 0) memcpy(t.data, tape->data + tape->used, (unsigned "
           "long)bytes);\n  return t;\n}\n";
  }
  add(Group::functions, text);
  return name;
}

/// The same for tensors in the memory of a GPU: lt_device_new_f64_2d, ..., and lt_to_host_f64_2d, lt_to_device_f64_2d.
std::string Prelude::device_tensor_function(const std::string& what, const std::string& type, const std::string& element, Kind kind,
                                            int rank, const std::string& name) {
  const auto bytes = [&](const std::string& t) {
    return "lt_count(ws, " + t + ".dim, " + std::to_string(rank) + ") * (int64_t)sizeof(" + element + ")";
  };
  std::string sizes, values, dims;
  for (int r = 0; r < rank; ++r) {
    sizes += ", int64_t d" + std::to_string(r);
    values += (r ? ", d" : "d") + std::to_string(r);
    dims += ", x.dim[" + std::to_string(r) + "]";
  }
  need("count");
  need("gpu");
  need(what == "to_host" ? "allocate" : "device_allocate");
  std::string text;
  if (what == "device_new") {
    text = sizes + ") {\n  " + type + " t = {0, {" + (rank == 0 ? "1" : values) + "}};\n  t.data = (" + element +
           "*)lt_device_allocate(ws, " + bytes("t") + ");\n";
  } else if (what == "device_zeros") {
    const std::string make = tensor_function("device_new", kind, rank);
    text = sizes + ") {\n  " + type + " t = " + make + "(ws" + (rank ? ", " + values : "") + ");\n  const int64_t bytes = " +
           bytes("t") + ";\n  if (bytes > 0) lt_gpu(ws, cudaMemsetAsync(t.data, 0, (size_t)bytes, ws->device->stream));\n";
  } else if (what == "device_copy" || what == "to_device") {
    const std::string make = tensor_function("device_new", kind, rank);
    text = ", " + type + " x) {\n  " + type + " t = " + make + "(ws" + dims + ");\n  lt_gpu_copy(ws, t.data, x.data, " +
           bytes("t") + ");\n";
  } else if (what == "to_host") {
    const std::string make = tensor_function("new", kind, rank);
    text = ", " + type + " x) {\n  " + type + " t = " + make + "(ws" + dims + ");\n  lt_gpu_copy(ws, t.data, x.data, " +
           bytes("t") + ");\n";
  } else {
    need("device_tape");
    const std::string tape = "  lt_tape* tape = &ws->tapes[number];\n";
    if (what == "device_save") {
      need("grow_tape");
      add(Group::functions, "static void " + name + "(lt_workspace* ws, int64_t number, " + type + " t) {\n" + tape +
                                "  const int64_t bytes = " + bytes("t") +
                                ", used = tape->used + (int64_t)sizeof t.dim;\n"
                                "  char* room = lt_device_tape_room(ws, number, bytes);\n"
                                "  lt_gpu_copy(ws, room, t.data, bytes);\n"
                                "  ws->device->tapes[number].used += bytes;\n"
                                "  if (used > tape->capacity) lt_grow_tape(ws, tape, used);\n"
                                "  memcpy(tape->data + tape->used, t.dim, sizeof t.dim);\n  tape->used = used;\n}\n");
      return name;
    }
    if (what != "device_load") throw InternalError("no function makes a tensor by " + what);
    text = ", int64_t number) {\n" + tape + "  " + type +
           " t;\n  tape->used -= (int64_t)sizeof t.dim;\n  memcpy(t.dim, tape->data + tape->used, sizeof t.dim);\n"
           "  const int64_t bytes = " + bytes("t") + ";\n  t.data = (" + element +
           "*)lt_device_allocate(ws, bytes);\n  ws->device->tapes[number].used -= bytes;\n"
           "  lt_gpu_copy(ws, t.data, lt_device_tape_room(ws, number, 0), bytes);\n";
  }
  add(Group::functions, "static " + type + " " + name + "(lt_workspace* ws" + text + "  return t;\n}\n");
  return name;
}

std::string Prelude::tree(const ir::Type& type) {
  std::string name = "lt_tree", fields;
  for (std::size_t i = 0; i < type.parts().size(); ++i) {
    const Kind kind = type.parts()[i].kind();
    name += std::string("_") + ir::kind_name(kind);
    fields += "  const " + target_->element(kind) + "* value" + std::to_string(i) + ";\n";
  }
  if (!fresh(name)) return name;
  need("integers");
  add(Group::types, "typedef struct {\n  const int64_t* left;\n  const int64_t* right;\n" + fields +
                        "  int64_t node;\n} " + name + ";\n");
  return name;
}

std::string Prelude::tape_function(const std::string& what, const std::string& type_name,
                                   const std::string& type, const std::string& slot) {
  const std::string name = "lt_" + what + "_" + type_name;
  if (!fresh(name)) return name;
  need("workspace");
  const std::string tape = "  lt_tape* tape = &ws->tapes[number];\n";
  const auto define = [&](const std::string& result, const std::string& more, const std::string& body) {
    add(Group::functions, "static " + result + " " + name + "(lt_workspace* ws, int64_t number" + more +
                              ") {\n" + tape + body + "}\n");
  };
  const std::string size = "(int64_t)sizeof(" + type + ")", at = "(" + type + "*)(tape->data + tape->used)";
  if (what == "push") {
    need("grow_tape");
    define("void", ", " + type + " value",
           "  if (tape->used + " + slot + " > tape->capacity) lt_grow_tape(ws, tape, tape->used + " + slot +
               ");\n  *" + at + " = value;\n  tape->used += " + slot + ";\n");
  } else if (what == "pop") {
    define(type, "", "  tape->used -= " + slot + ";\n  return *" + at + ";\n");
  } else if (what == "top") {
    define(type + "*", "", "  return " + at + ";\n");
  } else if (what == "end") {
    define(type + "*", "", "  return (" + type + "*)(tape->data + tape->capacity);\n");
  } else if (what == "room") {
    need("grow_tape");
    define(type + "*", ", int64_t first, int64_t last, int64_t each",
           "  if (first < last) {\n"
           "    const unsigned long long iterations = (unsigned long long)last - (unsigned long long)first;\n"
           "    if (iterations > (1ULL << 50) / (unsigned long long)each) ws->fail(ws, \"out of memory\");\n"
           "    const int64_t used = tape->used + (int64_t)iterations * each * " +
               size +
               ";\n"
               "    if (used > tape->capacity) lt_grow_tape(ws, tape, used);\n"
               "  }\n"
               "  return " +
               at + ";\n");
  } else if (what == "record") {
    need("grow_tape");
    define(type + "*", ", int64_t count",
           "  const int64_t bytes = count * " + size +
               ";\n"
               "  if (tape->used + bytes > tape->capacity) lt_grow_tape(ws, tape, tape->used + bytes);\n"
               "  tape->used += bytes;\n"
               "  return " +
               at + " - count;\n");
  } else if (what == "recall") {
    define("const " + type + "*", ", int64_t count",
           "  tape->used -= count * " + size + ";\n  return " + at + ";\n");
  } else {
    need("grow_tape");
    define(type + "*", ", " + type + "* top, int64_t count",
           "  tape->used = (char*)top - tape->data;\n"
           "  lt_grow_tape(ws, tape, tape->used + count * " +
               size +
               ");\n"
               "  return " +
               at + ";\n");
  }
  return name;
}

void Prelude::math(const std::string& name, Kind kind) {
  if (name.starts_with("lt_")) return need(name.substr(3));
  if (!fresh(name)) return;
  const std::string type = target_->scalar(kind);
  // The number of operands decides the prototype; the names are few.
  const std::string_view plain = name.ends_with('f') && kind == Kind::f32
                                     ? std::string_view(name).substr(0, name.size() - 1)
                                     : std::string_view(name);
  const ir::Opcode op = ir::opcode_named(plain);
  const bool two = op != ir::Opcode::count_ && ir::info(op).arity == 2;
  const bool three = name == "fma" || name == "fmaf";
  add(Group::prototypes, type + " " + name + "(" + type + " x" + (two || three ? ", " + type + " y" : "") +
                             (three ? ", " + type + " z" : "") + ");\n");
}

void Prelude::add_type(const std::string& name, const std::string& text) {
  if (fresh(name)) add(Group::types, text);
}

void Prelude::merge(const Prelude& other) {
  std::unordered_set<std::string> here;
  for (const Part& part : parts_) here.insert(part.text);
  for (const Part& part : other.parts_)
    if (here.insert(part.text).second) parts_.push_back(part);
}

template <class Text>
std::string Prelude::joined(Text&& text_of) const {
  std::string s;
  for (const Group group : {Group::basics, Group::prototypes, Group::types, Group::functions}) {
    std::string body;
    for (const Part& part : parts_) {
      if (part.group != group) continue;
      if (!body.empty() && group != Group::prototypes) body += "\n";
      body += text_of(part);
    }
    if (body.empty()) continue;
    if (group == Group::prototypes && target_->is_cpp()) body = "extern \"C\" {\n" + body + "}\n";
    s += body + "\n";
  }
  return s;
}

std::string Prelude::text() const {
  return joined([](const Part& part) -> const std::string& { return part.text; });
}

bool Prelude::has_routines() const {
  return std::ranges::any_of(parts_, [](const Part& part) { return !part.routine.empty(); });
}

std::string Prelude::text(Routines where, const std::string& linkage) const {
  return joined([&](const Part& part) {
    if (part.routine.empty()) return part.text;
    const std::string_view own = "static ";
    const std::size_t at = part.text.find("\n" + std::string(own) + "void " + part.routine + "(") + 1;
    if (at == 0) throw InternalError("the prelude has no routine " + part.routine);
    const std::size_t name = at + own.size(), body = part.text.find(" {\n", at);
    return part.text.substr(0, at) + linkage +
           (where == Routines::here ? part.text.substr(name) : part.text.substr(name, body - name) + ";\n");
  });
}

/// A helper's text with what says that either side may call it.
static std::string for_both(std::string text) {
  for (const std::string start : {"LT_FAILS ", "LT_SELDOM ", ""}) {
    const std::string mark = "\n" + start + "static ", both = "\n" + start + "__host__ __device__ static ";
    text.insert(0, "\n");
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos;) text.replace(at, mark.size(), both);
    text.erase(0, 1);
  }
  return text;
}

Prelude::Sides Prelude::sides(const Prelude& device) const {
  Sides sides;
  std::unordered_set<std::string> seen;
  const auto put = [](std::string& to, const std::string& text) { to += text.empty() ? "" : text + "\n"; };
  for (const Prelude* from : {&device, this})
    for (const Part& part : from->parts_) {
      if (part.group == Group::basics || part.group == Group::prototypes) continue;
      if (!seen.insert(part.text).second) continue;
      if (part.group == Group::types)
        put(sides.types, part.text);
      else if (part.group == Group::kernels)
        put(sides.kernels, part.text);
      else if (from == &device)
        put(sides.both, for_both(part.text));
      else
        put(sides.host, part.text);
    }
  return sides;
}

}  // namespace lantern::codegen
