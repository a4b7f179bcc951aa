// Strings. They are known by their numbers, so that what moves, compares or chooses numbers does so with
// them; what looks into them needs them while the program is made.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <regex>

#include "lantern/compiler/onnx/rules.hpp"

namespace lantern::onnx::rules {

namespace {

using Texts = std::vector<std::string>;

Value texts_of(const Call& c, std::size_t i) {
  if (c.element(i) != Element::string)
    c.fail("operand " + std::to_string(i + 1) + ": expected strings, got " + name(c.element(i)));
  return c.value(c.term(i), "strings");
}

Term term_of(Texts all, Sizes shape) {
  return onnx::constant(Value::of_texts(std::move(all), std::move(shape)));
}

std::string lowered(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}
std::string raised(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return text;
}

/// The parts between delimiters; of an empty one between runs of white space.
Texts parts_of(const std::string& text, const std::string& delimiter, std::int64_t most) {
  Texts parts;
  std::size_t at = 0;
  const auto blank = [&](std::size_t k) { return std::isspace(static_cast<unsigned char>(text[k])) != 0; };
  if (!delimiter.empty()) {
    for (std::size_t end; most-- != 0 && (end = text.find(delimiter, at)) != std::string::npos;
         at = end + delimiter.size())
      parts.push_back(text.substr(at, end - at));
    if (!text.empty()) parts.push_back(text.substr(at));
    return parts;
  }
  for (;;) {
    while (at < text.size() && blank(at)) ++at;
    if (at == text.size()) return parts;
    std::size_t end = at;
    while (end < text.size() && !blank(end)) ++end;
    if (most-- == 0) end = text.size();
    parts.push_back(text.substr(at, end - at));
    at = end;
  }
}

}  // namespace

Datum from_texts(const Call& c, const Term& t, Element to) {
  const Value v = c.value(t, "strings");
  const bool whole = is_integer(to);
  Value numbers(whole ? Element::int64 : Element::float64, v.shape());
  const Texts all = v.texts();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string text = lowered(all[i]);
    char* end = nullptr;
    const double x = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0')
      c.fail("expected strings that are numbers, got '" + all[i] + "' at element " + std::to_string(i));
    if (!whole) {
      numbers.mutable_elements<double>()[i] = x;
      continue;
    }
    std::int64_t n = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    numbers.mutable_elements<std::int64_t>()[i] = error == std::errc() && *rest == '\0' ? n
                                                  : std::abs(x) < 9.2e18 ? static_cast<std::int64_t>(x)
                                                                         : 0;
  }
  return converted(c, c.datum(onnx::constant(numbers)), numbers.element(), to);
}

Term as_texts(const Call& c, const Term& t) {
  const Value v = c.value(t, "numbers that become strings");
  Texts all;
  for (std::size_t i = 0; i < static_cast<std::size_t>(v.size()); ++i) {
    if (t.element == Element::boolean || !is_float(t.element)) {
      all.push_back(t.element == Element::boolean ? (v.integer_at(i) != 0 ? "1" : "0")
                                                  : std::to_string(v.integer_at(i)));
      continue;
    }
    const double x = v.at(i);
    if (std::isnan(x) || std::isinf(x)) {
      all.emplace_back(std::isnan(x) ? "NaN" : x > 0 ? "INF" : "-INF");
      continue;
    }
    char buffer[64];
    // The shortest text that means the number.
    const auto end = t.element == Element::float64
                         ? std::to_chars(buffer, buffer + sizeof buffer, x)
                         : std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(x));
    all.emplace_back(buffer, end.ptr);
  }
  return term_of(std::move(all), v.shape());
}

Terms string_concat(const Call& c) {
  c.require_operands(2, 2);
  const Value x = texts_of(c, 0), y = texts_of(c, 1);
  Sizes shape(std::max(x.shape().size(), y.shape().size()), 1);
  for (const Value* v : {&x, &y})
    for (std::size_t k = 0; k < v->shape().size(); ++k) {
      const std::int64_t own = v->shape()[v->shape().size() - 1 - k];
      std::int64_t& d = shape[shape.size() - 1 - k];
      if (d != own && own != 1 && d != 1)
        c.fail("expected shapes that broadcast, got " + shape_text(x.shape()) + " and " +
               shape_text(y.shape()));
      if (d == 1) d = own;
    }
  std::int64_t count = 1;
  for (const std::int64_t d : shape) count *= d;
  const auto at = [&](const Value& v, std::int64_t i) {
    std::int64_t from = 0, step = 1;
    for (std::size_t k = 0; k < shape.size(); ++k) {
      const std::int64_t size = shape[shape.size() - 1 - k], place = i % size;
      i /= size;
      if (k >= v.shape().size()) continue;
      const std::int64_t own = v.shape()[v.shape().size() - 1 - k];
      from += own == 1 ? 0 : place * step;
      step *= own;
    }
    return static_cast<std::size_t>(from);
  };
  const Texts first = x.texts(), second = y.texts();
  Texts all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(first[at(x, i)] + second[at(y, i)]);
  return {term_of(std::move(all), shape)};
}

// Results: the parts, with "" where there are fewer, and how many there are.
Terms string_split(const Call& c) {
  c.require_operands(1, 1);
  const Value v = texts_of(c, 0);
  const std::string delimiter = c.attribute("delimiter", std::string());
  const std::int64_t most = c.has_attribute("maxsplit") ? c.attribute("maxsplit") : -1;
  std::vector<Texts> parts;
  std::size_t longest = 0;
  for (const std::string& text : v.texts()) {
    parts.push_back(parts_of(text, delimiter, most));
    longest = std::max(longest, parts.back().size());
  }
  Texts all;
  Value counts(Element::int64, v.shape());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    counts.mutable_elements<std::int64_t>()[i] = static_cast<std::int64_t>(parts[i].size());
    parts[i].resize(longest);
    all.insert(all.end(), parts[i].begin(), parts[i].end());
  }
  Sizes shape = v.shape();
  shape.push_back(static_cast<std::int64_t>(longest));
  return {term_of(std::move(all), shape), onnx::constant(counts)};
}

Terms string_normalizer(const Call& c) {
  c.require_operands(1, 1);
  const Value v = texts_of(c, 0);
  if (v.shape().size() > 2 || v.shape().empty() || (v.shape().size() == 2 && v.shape()[0] != 1))
    c.fail("expected strings of shape [n] or [1,n], got " + v.describe());
  const std::string change = c.attribute("case_change_action", std::string("NONE"));
  if (change != "NONE" && change != "LOWER" && change != "UPPER")
    c.fail("attribute 'case_change_action': expected LOWER, UPPER or NONE, got '" + change + "'");
  const bool exact = c.attribute("is_case_sensitive", std::int64_t{0}) != 0;
  Texts stop = c.text_attributes("stopwords");
  if (!exact) std::ranges::transform(stop, stop.begin(), lowered);
  Texts all;
  for (const std::string& text : v.texts())
    if (std::ranges::find(stop, exact ? text : lowered(text)) == stop.end())
      all.push_back(change == "LOWER" ? lowered(text) : change == "UPPER" ? raised(text) : text);
  if (all.empty()) all.emplace_back();
  const auto n = static_cast<std::int64_t>(all.size());
  return {term_of(std::move(all), v.shape().size() == 1 ? Sizes{n} : Sizes{1, n})};
}

Terms regex_full_match(const Call& c) {
  c.require_operands(1, 1);
  const Value v = texts_of(c, 0);
  const std::string pattern = c.attribute("pattern", std::string());
  Value out(Element::boolean, v.shape());
  constexpr std::size_t longest = 1000;  // the library's matcher needs stack for each letter
  try {
    if (pattern.size() > longest)
      c.unsupported("patterns of more than " + std::to_string(longest) + " letters");
    const std::regex expression(pattern, std::regex::ECMAScript);
    const Texts all = v.texts();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].size() > longest)
        c.unsupported("strings of more than " + std::to_string(longest) + " letters");
      out.mutable_elements<bool>()[i] = std::regex_match(all[i], expression);
    }
  } catch (const std::regex_error& e) {
    c.fail("attribute 'pattern': expected a regular expression, got '" + pattern + "': " + e.what());
  }
  return {onnx::constant(out)};
}

// How often each of some sequences of items is in the operand, with up to so many items left out between two.
Terms tf_idf_vectorizer(const Call& c) {
  c.require_operands(1, 1);
  const bool texts = c.element() == Element::string;
  const std::string mode = c.attribute("mode", std::string());
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    c.fail("attribute 'mode': expected TF, IDF or TFIDF, got '" + mode + "'");
  Sizes pool = c.attributes("pool_int64s");
  if (texts)
    for (const std::string& text : c.text_attributes("pool_strings")) pool.push_back(number_of_text(text));
  const Sizes starts = c.attributes("ngram_counts"), columns = c.attributes("ngram_indexes");
  const std::vector<double> weights = c.real_attributes("weights");
  const std::int64_t shortest = c.attribute("min_gram_length"), longest = c.attribute("max_gram_length"),
                     skips = c.attribute("max_skip_count");
  if (shortest < 1 || longest < shortest || skips < 0 ||
      (!weights.empty() && weights.size() != columns.size()) || (texts && c.has_attribute("pool_int64s")))
    c.fail("expected a pool of the operand's type, lengths from 1 on, and a weight for each sequence");
  std::int64_t width = 0;
  for (const std::int64_t k : columns) {
    if (k < 0 || k > 1 << 24)
      c.fail("attribute 'ngram_indexes': expected numbers of columns, got " + std::to_string(k));
    width = std::max(width, k + 1);
  }
  const Datum x = c.cast(c[0], ir::Kind::i64);
  const int rank = c.rank();
  if (rank != 1 && rank != 2) c.fail("expected an operand of one or two dimensions, got " + x.type().str());
  const Datum n = c.b.size(x, rank - 1), zero = c.integer(0);
  const Indices rows = rank == 1 ? Indices{c.integer(1)} : Indices{c.b.size(x, 0)};
  const Datum none = Datum::number(0, ir::F32), one = Datum::number(1, ir::F32);
  Datum y = c.b.fill(none, {rows[0], c.integer(width)});
  std::size_t sequence = 0;
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const auto length = static_cast<std::int64_t>(k) + 1,
               end = k + 1 < starts.size() ? starts[k + 1] : static_cast<std::int64_t>(pool.size());
    if (starts[k] < 0 || end < starts[k] || end > static_cast<std::int64_t>(pool.size()) ||
        (end - starts[k]) % length != 0)
      c.fail("attribute 'ngram_counts': expected places in the pool, ascending, of whole sequences");
    for (std::int64_t first = starts[k]; first < end; first += length, ++sequence) {
      if (sequence >= columns.size())
        c.fail("attribute 'ngram_indexes': expected a column for each sequence");
      if (length < shortest || length > longest) continue;
      const double weight = mode == "TF" || weights.empty() ? 1 : weights[sequence];
      const Datum column = c.integer(columns[sequence]);
      y = c.b.points(rows, {y}, [&](const Indices& row, const Datums& now) {
        Datum count = none;
        for (std::int64_t skip = 0; skip <= (length == 1 ? 0 : skips); ++skip) {
          const std::int64_t step = skip + 1, reach = (length - 1) * step;
          count = c.b.loop(zero, c.b.sub(n, c.integer(reach)), {count}, [&](const Datum& i, const Datums& s) {
            Datum all;
            for (std::int64_t j = 0; j < length; ++j) {
              const Datum at = c.b.add(i, c.integer(j * step));
              const Datum item = rank == 1 ? c.b.get(x, {at}) : c.b.get(x, {row[0], at});
              const Datum same =
                  c.op(Opcode::eq_, item, c.integer(pool[static_cast<std::size_t>(first + j)]));
              all = all.empty() ? same : c.op(Opcode::land_, all, same);
            }
            return Datums{c.b.add(s[0], c.b.select(all, one, none))};
          })[0];
        }
        if (mode == "IDF") count = c.op(Opcode::min_, count, one);
        return Datums{c.b.set(now[0], {row[0], column}, c.b.mul(count, Datum::number(weight, ir::F32)))};
      })[0];
    }
  }
  return {c.result(rank == 1 ? c.b.reshape(y, {c.integer(width)}) : y, Element::float32)};
}

}  // namespace lantern::onnx::rules
