// What an evaluation checks.
#include "lantern/compiler/ad/semiring/expression.hpp"

#include "lantern/compiler/staging/operation.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::core::semiring {

Evaluation& Evaluation::of(const Number& a, const Number& b) {
  if (!a.evaluation_ || !b.evaluation_)
    raise("semiring: expected a number, got one that was never given a value");
  return *a.evaluation_;
}

const Opaque& Evaluation::value(const Number& number) const {
  if (number.evaluation_.get() != this)
    raise_at(here(place_),
             "semiring: expected a number of this evaluation, got one of another; an expression sees the "
             "numbers it is "
             "given and no others");
  return number.value_;
}

Number Evaluation::apply(Opaque (Evaluation::*operation)(const Opaque&, const Opaque&), const Number& a,
                         const Number& b) {
  const Opaque &left = value(a), &right = value(b);
  if (ended_)
    raise_at(here(place_),
             "semiring: expected an operation during the evaluation, got one after it ended; an expression "
             "may not keep "
             "its numbers or operations");
  const auto keep = shared_from_this();  // the operation may end the frame that holds the operands
  const Barrier::Opened during(barrier_);
  return number((this->*operation)(left, right));
}

Number Evaluation::run(const Body& body, Opaque zero, Opaque one, Opaque n) {
  struct End {
    bool& ended;
    ~End() { ended = true; }
  } end{ended_};
  const Dictionary<Number> operations{
      number(std::move(zero)), number(std::move(one)),
      [self = shared_from_this()](const Number& a, const Number& b) { return self->add(a, b); },
      [self = shared_from_this()](const Number& a, const Number& b) { return self->mul(a, b); }};
  return barrier_.run([&] { return body(operations, number(std::move(n))); });
}

Number operator+(const Number& a, const Number& b) { return Evaluation::of(a, b).add(a, b); }
Number operator*(const Number& a, const Number& b) { return Evaluation::of(a, b).mul(a, b); }

}  // namespace lantern::core::semiring
