// One function as structured C-like code: statements for operations, expressions for what is used once.
//
// A pure scalar operation that is used once becomes part of the expression that uses it, as long as lines
// stay short and no write to memory lies between. Everything else is a variable. Constants are literals.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/codegen/expression.hpp"
#include "lantern/codegen/statement.hpp"
#include "lantern/codegen/static_tapes.hpp"
#include "lantern/codegen/unit.hpp"
#include "lantern/compiler/passes/analysis/index_ranges.hpp"
#include "lantern/ir/notation.hpp"

namespace lantern::passes {
struct ChannelWindow;
struct Contraction;
}

namespace lantern::codegen {

class StatementPrinter {
 public:
  StatementPrinter(Unit& unit, const ir::Function& function);

  /// The definition, signature included.
  std::string definition();
  /// "static double f(lt_workspace* ws, double x)", without anything after it.
  std::string signature();
  /// What a thread runs to call the function: NAME_run(ws, share); and without the body.
  std::string team_runner();
  std::string team_runner_signature() const;

  /// The kernels that it launches, known after `definition`.
  const std::vector<KernelText>& kernels() const { return kernels_; }

  // What the text turned out to need, for the next round of printing.
  bool used_workspace() const { return used_workspace_; }
  bool allocated() const { return allocations_ > 0; }
  const std::vector<const ir::Function*>& callees() const { return callees_; }

 private:
  /// Where the results of a block go: returned, or assigned to variables ("" where nothing wants the value).
  struct Sink {
    bool returns = false;
    std::vector<std::string> targets;
    std::vector<ir::Type> types;
    std::size_t skip = static_cast<std::size_t>(-1);  ///< a target that is assigned elsewhere
  };

  // ---- statements
  /// A construct that is being built, and what is before it in its block.
  struct Open {
    Statement head;
    Statements before;
    bool otherwise = false;  ///< its `else` is being built
  };
  Statement annotated(const std::string& text);
  void line(const std::string& text) { statements_.push_back(annotated(text)); }
  void open(const std::string& text) { open(annotated(text)); }
  void open(Statement head);
  void otherwise();
  void leave(std::size_t depth);
  void close(const std::string& text = "}");
  std::string ws();
  std::string where(const ir::Op& op) const;

  // ---- sections, places, prints and checks (remark_statements.cpp)
  ir::Part part_of(const ir::Op& op);
  void enter_section(const ir::Op& op);
  ir::Location debug_place(const ir::Location& loc);
  ir::Location head_place() const;
  bool is_named(const ir::Value* v) const;
  void print(const ir::Op& op);
  std::string finite(const ir::Value* v);
  std::string looking(const char* routine, ir::Kind kind);
  void check_value(const ir::Op& op);
  void check_arguments();
  bool checks_sum(const ir::Op& loop, std::size_t state) const;
  std::string sum_failure(const ir::Op& loop, std::size_t state) const;
  void check_sum(const ir::Op& loop, std::size_t state, const std::string& sum, const std::string& finite);

  // ---- values
  struct Binding {
    Expression expression;
    bool pending = false;  ///< an expression to be placed where it is used
    bool pointer = false;  ///< a cell known by its address
    bool device = false;   ///< a number in the memory of the GPU: "*pointer"
  };
  Expression value(const ir::Value* v);
  std::string text(const ir::Value* v) { return value(v).text(); }
  /// As an operand of postfix operators: a name.
  std::string atom(const ir::Value* v);
  const char* name_of(const ir::Value* v) const;
  std::string fresh_name(const ir::Value* v, const char* stem = nullptr);
  void bind(const ir::Value* v, Expression e);
  void bind(const ir::Value* v, const std::string& name) { bind(v, Expression(name)); }
  void bind_same(const ir::Value* v, const ir::Value* other);
  void define(const ir::Op& op, Expression e);
  void define_statement(const ir::Value* v, const Expression& e);
  void materialise(const ir::Value* v);
  void shorten(const ir::Op& op);
  bool foldable(const ir::Op& op, const Expression& e, int epoch) const;
  bool needs_atom(const ir::Op& user, std::size_t operand) const;
  std::string zero(const ir::Type& type);

  // ---- structure
  void block(const ir::Block* block, const Sink& sink);
  void finish(const ir::Op& yield, const Sink& sink);
  void copies(const std::vector<const ir::Value*>& values, const Sink& sink);
  void operation(const ir::Op& op);
  void statement(const ir::Op& op);
  void branch(const ir::Op& op, const Sink* forwarded);
  void loop(const ir::Op& op);
  std::string keep_state(const ir::Op& loop, const Sink& sink, const std::string& mark);
  void call(const ir::Op& op);
  void external(const ir::Op& op);
  void queued_exchange(const ir::Op& op);
  bool made_for(const ir::Op& call, const ir::Value* v) const;
  std::string changed_by(const ir::Op& call, const ir::Value* operand, const ir::Value* result);
  std::string call_arguments(const ir::Op& op, const ir::Function* callee, std::size_t first_pointer_result);
  void scalar(const ir::Op& op);
  void division(const ir::Op& op);
  void cast(const ir::Op& op);
  Expression converted(const Expression& x, ir::Kind from, ir::Kind to);
  bool may_wrap(const ir::Op& op, ir::Kind kind) const;
  Expression applied(const ir::Op& op, const std::vector<Expression>& operands);
  const ir::Op* next_of_compared(const ir::Op& loop, std::size_t operand, ir::Opcode by) const;
  std::size_t counter(const ir::Op& loop) const;
  std::size_t falling(const ir::Op& loop) const;
  bool shares_name(const ir::Op& loop, std::size_t state);
  std::optional<std::string> in_halves(const ir::Type& type);
  /// From where to before where a loop counts by ones, as expressions.
  struct Iterations {
    Expression first, last;
  };
  std::optional<Iterations> iterations(const ir::Op& loop, std::size_t counter);
  std::string parameters();
  void bind_parameters();
  Statements from_frame();
  Statements from_captured();
  void check_argument_sizes();

  // ---- calls in threads (team_statements.cpp)
  bool can_fork(const ir::Op& first) const;
  void team(const ir::Op& first);

  // ---- kernels (kernel_statements.cpp)
  /// Where statements run, and with whose memory.
  enum class Place {
    plain,   ///< a processor with memory of its own: all of a program without kernels
    host,    ///< the host of a GPU, whose tensors lie in the GPU's memory
    thread,  ///< a thread of a kernel
    block,   ///< all threads of a block, the same statements
  };
  struct Launch;
  void kernel(const ir::Op& loop, const Kernel& kernel);
  void share(const Kernel& kernel, Launch& launch);
  const ir::Value* key_of(const Kernel& kernel) const;
  std::string key_function(const Kernel& kernel, const ir::Value* key, const Expression& first);
  std::string row_length(const Kernel& kernel);
  void capture(const Kernel& kernel, Launch& launch);
  void kernel_text(const Kernel& kernel, Launch& launch);
  void iteration(const Kernel& kernel, Launch& launch);
  Expression combining(ir::Combine combine, const ir::Type& type, const Expression& x, const Expression& y);
  Expression reduced(ir::Combine combine, const ir::Type& type, const Expression& x);
  class HostChecks;
  void checks_on_host(const Kernel& kernel, Launch& launch);
  struct Member;
  bool members(const ir::Op& first);
  Statements chain_of(std::vector<Member>& sides, std::size_t from, const std::string& row, const std::string& own);
  Statements by_kind(std::vector<Member>& sides, const std::vector<std::vector<std::size_t>>& kinds, const std::string& row, const std::string& own);
  void pass_tables(Launch& launch);
  void finish_reductions(const Kernel& kernel, const Launch& launch);
  void shared_loop(const ir::Op& loop);
  void barrier();
  bool in_block(const ir::Op& op);
  void show_arguments();
  void bind_device(const ir::Value* v, const std::string& pointer);
  void read_numbers(const ir::Value* wanted);
  bool asked_on_host(const ir::Value* v) const;
  void on_host(const ir::Op& op);
  /// "lt_mark", or "lt_device_mark" where tensors lie in the GPU's memory; the prelude brings it.
  std::string memory(const std::string& what);

  // ---- tensors (tensor_statements.cpp)
  using Dims = std::vector<std::int64_t>;
  void tensor(const ir::Op& op);
  void forget(const ir::Op& op);
  void choice(const ir::Op& op);
  void telling_check(const ir::Op& op, const std::string& failed);
  void element_access(const ir::Op& op);
  void rows(const ir::Op& op);
  void creation(const ir::Op& op);
  void check_size(const ir::Op& op, const ir::Value* n);
  void check_size_is(const Expression& size, std::int64_t expected, const char* what, std::size_t dimension, const ir::Op& op);
  void argmax(const ir::Op& op);
  bool shares_out() const;
  std::string on_gpu(const std::string& routine) const;
  std::string filling(ir::Kind kind, const std::string& stored = {});
  /// A product's routine, with its factors as it takes them.
  struct Factors {
    std::string routine, kind, x, y, mark;
  };
  Factors factors(const ir::Op& op, const std::string& routine, std::size_t x, std::size_t y);
  bool sums_from_zeros(const ir::Value* base) const;
  void matrix_product(const ir::Op& op);
  void contraction(const ir::Op& op, const ir::Notation& n);
  bool zeroed_by_library(const ir::Op& op) const;
  std::string by_library(const ir::Op& op, const ir::Notation& n, const passes::Contraction& contraction, const Expression& to);
  void windows(const ir::Op& op, const ir::Notation& n, const passes::ChannelWindow& w);
  void product_of_parts(const ir::Op& op);
  void reshaping(const ir::Op& op);
  void tree(const ir::Op& op);
  void accumulate(ir::Opcode code, const Expression& to, const ir::Op& op);
  Expression updated(const ir::Op& op);
  void partial_copy(const ir::Op& op);
  Expression field(const ir::Value* t, const char* name);
  Expression dim(const ir::Value* t, std::size_t i);
  std::string sizes(const ir::Value* t, std::size_t from = 0);
  Expression elements(const ir::Value* t, std::size_t from = 0);
  Expression bytes(const ir::Value* t, const std::string& element);
  Expression offset(const ir::Value* t, const std::vector<const ir::Value*>& indices);
  const Dims& dims(const ir::Value* t);
  void set_dims(const ir::Value* t, const Dims& d);
  std::int64_t size_of(const ir::Value* n);
  void check_index(const ir::Op& op, std::size_t operand, const ir::Value* t, std::size_t dimension);
  void checks_before(const ir::Op& loop);
  bool checked_before(const ir::Op& access, const passes::KnownRange& known) const;
  bool checks_indices() const;
  std::optional<Expression> sum(const passes::IndexForm& form, bool wraps = false);
  std::optional<Expression> known_number(const ir::Value* v);
  std::optional<Expression> known_size(const ir::Value* t, int dimension);
  void check_dims(const ir::Op& op, const ir::Value* a, std::size_t a_from, const ir::Value* b,
                  std::size_t b_from, std::size_t n);
  void check_fits(const ir::Value* v, const ir::Type& type, const char* what, const ir::Op& op);
  Expression new_tensor(const ir::Value* result, const char* how, const std::string& size_list);
  void find_placed();
  void place_result(const ir::Value* tensor, const std::string& name);
  bool known_tree(const ir::Op& op) const;

  // ---- vectors (vector_statements.cpp)
  void vector(const ir::Op& op);
  Expression dot(const ir::Op& product);
  void lanes_access(const ir::Op& op);
  Expression as_mask(const Expression& comparison, ir::Kind kind, int lanes);
  struct LaneSteps {
    Expression start, step;
  };
  std::optional<LaneSteps> lane_steps(const ir::Value* index);
  /// Writes to elements beside each other, printed together: what is stored or added, and how far from the
  /// first one.
  struct JoinedWrite {
    Expression value;
    std::int64_t place = 0;
    bool adds = false;
  };
  /// The elements that a vector is written to: how far from lane to lane, and the address of the first one.
  struct WrittenLanes {
    std::int64_t step = 0;  ///< 0: there is no function for several writes
    Expression first;
    bool adds_every = false;  ///< additions have a function of their own
  };
  std::optional<std::int64_t> distance_to_next(const ir::Op& write, std::size_t index,
                                               const std::vector<JoinedWrite>& so_far,
                                               std::int64_t step) const;
  void joined_writes(const ir::Op& last, const std::vector<JoinedWrite>& writes, const WrittenLanes& lanes);

  // ---- cells, continuations (cell_statements.cpp)
  void cell(const ir::Op& op);
  Expression place(const ir::Value* cell);
  std::string address(const ir::Value* cell);
  void fun(const ir::Op& op);
  void closure(const ir::Op& op);
  void jump(const ir::Op& op);
  std::string argument(const ir::Value* v);

  // ---- tapes (tape_statements.cpp)
  /// The top of a tape in a variable, and the end of its memory where that has to be watched.
  struct TapeTop {
    std::string name, end, suffix;
  };
  void tape(const ir::Op& op);
  void tape(const ir::Op& op, const TapeTop& top);
  void tape_elements(const ir::Op& op);
  void tape_record(const ir::Op& op);
  void fetch_below(const ir::Op& pop, const std::string& record);
  void elements(const std::vector<ir::Value*>& values, const std::string& record);
  std::string plain_tape(const ir::Op& op);
  std::string tape_suffix(const ir::Op& op);
  std::string taped_text(const ir::Value* v, const std::string& text);
  std::string untaped_text(const ir::Value* v, const std::string& text);
  std::vector<std::int64_t> open_tapes(const ir::Op& loop, const std::optional<Iterations>& iterations);
  void close_tapes(const std::vector<std::int64_t>& opened);
  void open_static_tapes(const ir::Block* block);
  void close_static_tapes(const ir::Block* block);

  Unit& unit_;
  const ir::Function& function_;
  const FunctionInfo& info_;
  LiveUses uses_;
  std::optional<passes::IndexRanges> ranges_;                           ///< where indices are checked
  std::unordered_map<const ir::Op*, std::unordered_set<int>> checked_;  ///< before which loop, which
  NameScope names_;
  Statements statements_;   ///< of the block that is being built
  std::vector<Open> open_;  ///< the constructs around it, outermost first
  std::vector<KernelText> kernels_;
  int kernel_count_ = 0;
  Place place_ = Place::plain;
  const Kernel* kernel_ = nullptr;  ///< whose text is printed
  Launch* launch_ = nullptr;        ///< of that kernel
  /// Since the last barrier: whether all threads of the block have read what some change, or one has written.
  struct Touched {
    bool read = false, written = false;
  };
  Touched touched_;
  /// A number of the GPU, whose pointer is known in so many constructs; or the place where the host has read it.
  struct Known {
    const ir::Value* value;
    std::string pointer;
    std::size_t depth;
  };
  std::vector<Known> device_numbers_, read_;
  const ir::Op* current_ = nullptr;
  const char* last_file_ = nullptr;
  std::uint32_t last_line_ = 0;
  ir::Location debug_place_;  ///< of the last statement that has one
  ir::Part section_ = ir::Part::plain, shown_section_ = ir::Part::plain;
  std::unordered_map<const ir::Op*, ir::Part> parts_;  ///< of constructs
  std::unordered_map<const ir::Value*, Binding> bindings_;
  std::unordered_map<const ir::Value*, Dims> dims_;
  std::unordered_map<const ir::Value*, std::int64_t> sizes_;
  std::int64_t symbols_ = 0;
  /// Those that end with an operation which is still to be printed.
  std::unordered_map<const ir::Op*, std::vector<JoinedWrite>> joined_;
  std::unordered_map<const ir::Value*, std::size_t> placed_;  ///< tensors that become a result of the entry
  std::vector<std::string> parameter_names_, result_names_;
  std::string frame_;  ///< the parameter that holds them all, where they are many
  std::unordered_map<std::int64_t, TapeTop> tape_tops_;  ///< of the loops around, and of static tapes
  std::unordered_map<const ir::Block*, std::vector<StaticTape>> static_tapes_;
  bool used_workspace_ = false;
  int allocations_ = 0;
  std::vector<const ir::Function*> callees_;
  std::unordered_set<const ir::Op*> in_header_;  ///< printed with the header of their loop
  std::unordered_set<const ir::Op*> in_team_;  ///< calls that have been printed with the first of their team
  std::string mark_;                           ///< to be released before the function returns
};

}  // namespace lantern::codegen
