// A function in C that takes and gives arrays of Octave's, for each function, and one that finds it by its name.
#include "mex.hpp"

#include <algorithm>
#include <filesystem>

#include "differentiable.hpp"
#include "doc_comment.hpp"
#include "lantern/codegen/target.hpp"
#include "lantern/ir/error.hpp"
#include "mex_text.hpp"
#include "python_parts.hpp"

namespace lantern::tool {

using namespace core;
using ir::Kind;

namespace {

struct Class {
  std::string id, name;
};

Class class_of(Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return {"mxLOGICAL_CLASS", "logical"};
    case Kind::i32:
      return {"mxINT32_CLASS", "int32"};
    case Kind::i64:
      return {"mxINT64_CLASS", "int64"};
    case Kind::f32:
      return {"mxSINGLE_CLASS", "single"};
    default:
      return {"mxDOUBLE_CLASS", "double"};
  }
}

std::string mex_element(Kind kind) { return kind == Kind::boolean ? "bool" : codegen::CTarget().element(kind); }

std::string mex_tensor(const ir::Type& t, bool constant) {
  return std::string("lt_") + (constant ? "const_" : "") + ir::kind_name(t.element()) + "_" + std::to_string(t.rank()) + "d";
}

/// "double matrix w", for the list of functions.
std::string mex_description(const ir::Type& t) {
  const int rank = rank_of(t);
  const std::string name = class_of(kind_of(t)).name;
  return rank == 0 ? name : name + (rank == 1 ? " vector" : rank == 2 ? " matrix" : " array of " + std::to_string(rank) + " dimensions");
}

/// "[double, double vector] = model('name', double vector x)", as a string of C's.
std::string usage(const ir::Function& f, const std::string& name, const std::string& module) {
  const std::vector<std::string> parameters = parameter_names(f);
  std::string results, arguments = "'" + name + "'";
  for (const ir::Type& t : f.result_types) results += (results.empty() ? "" : ", ") + mex_description(t);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    arguments += ", " + mex_description(f.body->params[i]->type) + " " + parameters[i];
  return "[" + results + "] = " + module + "(" + arguments + ")";
}

std::string wrapper(const ir::Function& f, const std::string& name, const std::string& symbol) {
  const std::vector<std::string> parameters = parameter_names(f);
  std::string before, call, after;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ir::Type& t = f.body->params[i]->type;
    const std::string n = std::to_string(i), type = mex_element(kind_of(t));
    const Class of = class_of(kind_of(t));
    before += "  int64_t d" + n + "[" + std::to_string(std::max(rank_of(t), 1)) + "] = {1};\n";
    before += "  const " + type + "* a" + n + " = (const " + type + "*)lt_mex_argument((lt_mex_place){\"" + name + "\", \"" +
              parameters[i] + "\"}, in[" + n + "],\n      " + of.id + ", \"" + of.name + "\", sizeof(" + type + "), " +
              std::to_string(rank_of(t)) + ", d" + n + ");\n";
    if (!t.is_tensor()) {
      call += "*a" + n + ", ";
      continue;
    }
    call += "(" + mex_tensor(t, true) + "){(const void*)a" + n + ", {";
    for (int r = 0; r < std::max(t.rank(), 1); ++r) call += (r ? ", d" : "d") + n + "[" + std::to_string(r) + "]";
    call += "}}, ";
  }
  for (std::size_t i = 0; i < f.result_types.size(); ++i) {
    const ir::Type& t = f.result_types[i];
    const std::string n = std::to_string(i), type = mex_element(kind_of(t));
    before += "  " + (t.is_tensor() ? mex_tensor(t, false) + " r" + n + " = {0}" : type + " r" + n) + ";\n";
    call += "&r" + n + ", ";
    after += (i == 0 ? "  " : "  if (nlhs > " + n + ") ") + std::string("out[") + n + "] = lt_mex_result(" + class_of(kind_of(t)).id +
             ", sizeof(" + type + "), " + std::to_string(rank_of(t)) + ", " +
             (t.is_tensor() ? "r" + n + ".dim, r" + n + ".data" : "0, &r" + n) + ");\n";
  }
  return "\nstatic void lt_mex_" + symbol + "(int nlhs, mxArray** out, int nrhs, const mxArray** in) {\n  lt_mex_require_counts(\"" +
         name + "\", nlhs, " + std::to_string(f.result_types.size()) + ", nrhs, " + std::to_string(parameters.size()) + ");\n" +
         "  const char* message = 0;\n" + before + "  if (" + symbol + "(" + call + "&message) != 0) mexErrMsgIdAndTxt(\"lantern:failure\", \"" +
         name + ": %s\", message);\n" + after + (f.result_types.empty() ? "  (void)out;\n" : "") +
         (parameters.empty() ? "  (void)in;\n" : "") + "}\n";
}

}  // namespace

std::string mex_source(const std::vector<StagedFunction>& functions, const std::vector<std::string>& symbols,
                       const std::string& code, const Options& options) {
  refuse_trees(functions, "mex", "Octave");
  const std::string module =
      std::filesystem::path(options.output.empty() ? options.sources.front() : options.output).stem().string();
  std::string wrappers, cases, list, names;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const ir::Function& f = *functions[i].module->entry;
    const std::string& name = functions[i].name;
    wrappers += wrapper(f, name, symbols[i]);
    const Documentation said = documentation(functions[i].loc);
    std::string comment = said.comment;
    std::ranges::replace(comment, '\n', ' ');
    list += "    mexPrintf(\"%s\\n\", \"" + in_docstring(usage(f, name, module)) + "\");\n";
    if (!comment.empty()) list += "    mexPrintf(\"    %s\\n\", \"" + in_docstring(comment) + "\");\n";
    cases += "  if (strcmp(name, \"" + name + "\") == 0) {\n    lt_mex_" + symbols[i] + "(nlhs, plhs, nrhs - 1, prhs + 1);\n    return;\n  }\n";
    names += (names.empty() ? "" : i + 1 == functions.size() ? " or " : ", ") + name;
  }
  return "/* A MEX file of " + std::filesystem::path(options.sources.front()).filename().string() +
         " for Octave (mkoctfile --mex) and MATLAB (mex):\n * the functions are called by their names, and " + module +
         "() lists them. */\n" + code + mex_helpers + wrappers +
         "\nvoid mexFunction(int nlhs, mxArray* plhs[], int nrhs, const mxArray* prhs[]) {\n"
         "  char name[128];\n  if (nrhs == 0) {\n" +
         list + "    return;\n  }\n  if (!mxIsChar(prhs[0]) || mxGetString(prhs[0], name, sizeof name) != 0)\n"
         "    mexErrMsgIdAndTxt(\"lantern:argument\", \"" +
         module + ": expected the name of a function first: " + names + "\");\n" + cases +
         "  mexErrMsgIdAndTxt(\"lantern:argument\", \"" + module + ": expected " + names + ", got '%s'\", name);\n}\n";
}

}  // namespace lantern::tool
