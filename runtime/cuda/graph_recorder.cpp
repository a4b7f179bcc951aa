// Three states: a call is neither captured nor replayed, or one of the two, up to the end of its graph.
#include "lantern/runtime/cuda/graph_recorder.hpp"

#include <algorithm>

namespace lantern::cuda_driver {

namespace {
constexpr int this_thread_alone = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
}

GraphRecorder::Kept* GraphRecorder::find(const Key& key) {
  const auto at = std::ranges::find(*of_program_, key, &Kept::key);
  return at == of_program_->end() ? nullptr : &*at;
}

void GraphRecorder::enter(const GraphFunctions& functions, const void* program, const Key& key, void* stream) {
  abandon();
  launched_ = 0;
  if (!functions.complete() || stream == nullptr) return;
  functions_ = &functions;
  stream_ = stream;
  of_program_ = &programs_[program];
  Key whole = key;
  whole.push_back(reinterpret_cast<std::intptr_t>(stream));
  now_ = find(whole);
  if (now_ == nullptr) {
    if (of_program_->size() == most) {
      const auto oldest = std::ranges::min_element(*of_program_, {}, &Kept::used);
      if (oldest->executable) functions.destroy_executable(oldest->executable);
      of_program_->erase(oldest);
    }
    of_program_->push_back({std::move(whole), nullptr, 0, ++clock_, 0});
    now_ = nullptr;
    return;
  }
  now_->used = ++clock_;
  if (now_->executable) {
    state_ = State::replaying;
    left_ = now_->operations;
  } else if (now_->attempts++ < most_attempts && functions.begin_capture(stream, this_thread_alone) == 0) {
    state_ = State::capturing;
    count_ = 0;
  }
}

bool GraphRecorder::skip() {
  if (state_ == State::capturing) ++count_;
  if (state_ != State::replaying) return false;
  if (--left_ == 0) flush();
  return true;
}

int GraphRecorder::flush() {
  const State before = state_;
  state_ = State::off;
  if (before == State::off) return 0;
  int status = 0;
  if (before == State::capturing) {
    void* graph = nullptr;
    status = functions_->end_capture(stream_, &graph);
    if (status != 0 || count_ == 0) {
      if (graph) functions_->destroy_graph(graph);
      return status;
    }
    status = functions_->instantiate(&now_->executable, graph, 0);
    functions_->destroy_graph(graph);
    if (status != 0) {
      now_->executable = nullptr;
      return status;
    }
    now_->operations = count_;
  }
  ++launched_;
  return functions_->launch(now_->executable, stream_);
}

void GraphRecorder::abandon() {
  if (state_ == State::capturing) {
    void* graph = nullptr;
    functions_->end_capture(stream_, &graph);
    if (graph) functions_->destroy_graph(graph);
  }
  state_ = State::off;
}

void GraphRecorder::clear() {
  abandon();
  for (auto& [program, all] : programs_)
    for (Kept& k : all)
      if (k.executable) functions_->destroy_executable(k.executable);
  programs_.clear();
}

}  // namespace lantern::cuda_driver
