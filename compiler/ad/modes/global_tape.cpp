// Reverse mode with a refunctionalised tape (Lantern paper, Fig. 12): what follows the continuation in Fig. 8
// becomes a function, composed before those of earlier operations. No continuation is captured: all calls of
// k would be tail calls.
#include "lantern/compiler/ad/modes/stateful_reverse.hpp"

namespace lantern::core::ad {

namespace {

class GlobalTape : public StatefulReverse {
 public:
  using StatefulReverse::StatefulReverse;
  const char* name() const override { return "reverse mode with a tape of functions"; }

  //   f(z).d = 1.0
  //   tape()
  // The composition is as deep as the program is long: so are its call and its end.
  void run(const std::function<void()>& program) override {
    run_on_large_stack([&] {
      struct End {
        Tape& tape;
        ~End() { tape = nullptr; }  // it refers to this mode
      } end{tape_};
      tape_ = [] {};
      program();
      tape_();
    });
  }

 private:
  using Tape = std::function<void()>;

  //   val y = new NumB(this.x op that.x, 0.0)
  //   tape = (() => {this.d += dop/dx * y.d; that.d += dop/dx' * y.d}) andThen tape
  //   y
  Datums handle_step(Step b) override {
    const Datums y = props(b);
    tape_ = and_then([this, b = std::move(b), y] { accumulate(b, y); }, std::move(tape_));
    return y;
  }

  template <class F>
  static Tape and_then(F f, Tape tape) {
    return [f = std::move(f), tape = std::move(tape)] {
      f();
      tape();
    };
  }

  Tape tape_;  // var tape = () => ()
};

}  // namespace

std::shared_ptr<EagerReverse> make_global_tape(std::uint64_t tag) {
  return std::make_shared<GlobalTape>(tag);
}

}  // namespace lantern::core::ad
