// Calls that leave tensors on the GPU: compiled.on(stream)(x, y), compiled.on(stream).into(result, x, y).
#pragma once

#include <cstring>

#include "lantern/compiler/driver/compile.hpp"
#include "lantern/runtime/cuda/device_tensor.hpp"

namespace lantern::core {

namespace driver {
/// Queues a call on the stream; numbers among the results are waited for. `entry`: Code::device_entry.
/// `key`: what tells the call from others, for graphs (graph_recorder.hpp); empty: none.
void run_on_gpu(void* entry, CallFacts facts, const void* const* in, void* const* out, lt_target* targets, void* stream,
                std::vector<std::int64_t> key);
}  // namespace driver

namespace detail {

/// What a program's results become where they stay on the GPU.
struct LeavingOnGpu {
  template <class R>
  struct Of {
    using type = typename Host<R>::out;
  };
  template <class T>
  struct Of<Rep<Array<T>>> {
    using type = cuda::DeviceTensor<T>;
  };
  template <class T, std::int64_t... D>
  struct Of<Rep<Tensor<T, D...>>> {
    using type = cuda::DeviceTensor<T>;
  };
  template <class R>
  using apply = typename Of<R>::type;
};

/// What a leaf of a program is on the host.
template <class T>
using host_leaf = typename Host<Rep<T>>::out;

/// Raises: the memory of an argument is not what the call needs.
inline void check_place(const void* data, std::int64_t size, std::size_t argument) {
  if (size > 0 && data == nullptr)
    throw Error("argument " + std::to_string(argument + 1) + " is a tensor of the GPU that was moved from or never made");
  int number = 0;
  if (size > 0 && !cuda_driver::on_device(data, &number))
    throw Error("argument " + std::to_string(argument + 1) +
                " is a DeviceView of memory that is not the GPU's; pass memory of the host as a TensorView");
  if (size > 0 && number != cuda_driver::current_gpu())
    throw Error("argument " + std::to_string(argument + 1) + " lies on GPU " + std::to_string(number) +
                ", and the call runs on GPU " + std::to_string(cuda_driver::current_gpu()) + "; copy it there first");
}

/// Descriptors of arguments in either memory.
class GpuArguments {
 public:
  template <class T, class H>
  void add(std::type_identity<T>, const H& value) {
    if constexpr (ScalarElement<T>) {
      in_.push_back(&value);
      static_assert(sizeof value <= sizeof(std::int64_t));
      key_.push_back(0);
      std::memcpy(&key_.back(), &value, sizeof value);
    } else {
      using E = typename Traits<T>::element;
      if constexpr (requires { value.shape(); }) {
        if constexpr (requires { value.contiguous(); }) {
          if (!value.contiguous())
            throw Error("argument " + std::to_string(in_.size() + 1) + " has strides; a GPU takes contiguous tensors");
        } else {
          check_place(value.data(), value.size(), in_.size());
        }
        put(static_cast<const E*>(value.data()), value.shape());
      } else if constexpr (requires { value.shape; }) {
        put(static_cast<const E*>(value.data.data()), value.shape);
      } else {
        put(static_cast<const E*>(value.data()), {static_cast<std::int64_t>(value.size())});
      }
      if constexpr (requires { Declared<T>::fits(shapes_.back()); })
        if (!std::same_as<T, Tensor<E>> && !Declared<T>::fits(shapes_.back()))
          fail_shape(shapes_.back(), TypeOf<T>::get(), in_.size() - 1);
    }
  }
  const void* const* data() const { return in_.data(); }
  /// Numbers, pointers and sizes.
  const std::vector<std::int64_t>& key() const { return key_; }
  /// Whether the bytes are an argument's too.
  bool shares(const void* data, std::int64_t bytes) const {
    const char* from = static_cast<const char*>(data);
    for (const auto& [first, size] : memory_)
      if (from < first + size && first < from + bytes) return true;
    return false;
  }

 private:
  template <class E>
  void put(const E* data, const std::vector<std::int64_t>& shape) {
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    words_.push_back(std::make_unique<std::int64_t[]>(shape.size() + 1));
    words_.back()[0] = reinterpret_cast<std::int64_t>(data);
    std::copy(shape.begin(), shape.end(), words_.back().get() + 1);
    in_.push_back(words_.back().get());
    key_.insert(key_.end(), words_.back().get(), words_.back().get() + shape.size() + 1);
    memory_.emplace_back(reinterpret_cast<const char*>(data), n * static_cast<std::int64_t>(sizeof(E)));
    shapes_.push_back(shape);
  }

  std::vector<const void*> in_;
  std::vector<std::int64_t> key_;
  std::vector<std::unique_ptr<std::int64_t[]>> words_;
  std::vector<std::pair<const char*, std::int64_t>> memory_;
  std::vector<std::vector<std::int64_t>> shapes_;
};

/// A compiled function on a stream; see Compiled::on.
template <class Self, class R, class Params>
class OnGpu;
template <class Self, class R, class... P>
class OnGpu<Self, R, std::tuple<P...>> {
  using Parts = std::conditional_t<TupleType<R>, R, std::tuple<R>>;
  static constexpr std::size_t count = leaf_count<R>();

 public:
  using ProgramResult = R;
  using ProgramParameters = std::tuple<P...>;
  using Result = mapped_t<R, LeavingOnGpu>;
  static constexpr bool on_gpu = true;

  OnGpu(Self f, cuda::Stream stream) : f_(std::move(f)), stream_(std::move(stream)) {}

  /// Arguments are tensors of the GPU (DeviceTensor, DeviceView), which are used where they are, or of the host, which
  /// are copied. Tensors among the results are new ones of the GPU; the call returns when its work is queued, or, where
  /// a result is a number, when that is known.
  template <class... A>
  Result operator()(const A&... args) const {
    static_assert(sizeof...(A) == sizeof...(P), "a call takes as many arguments as the program has parameters");
    GpuArguments in;
    (for_each_leaf<P>(args, [&](auto type, const auto& h) { in.add(type, h); }), ...);
    const driver::Code& code = f_.gpu_code();
    Results<count> results(code.results());
    driver::run_on_gpu(code.device_entry(), code.facts(), in.data(), results.data(), nullptr, stream_.get(), in.key());
    Result out{};
    std::size_t i = 0;
    for_each_leaf<R>(out, [&](auto type, auto& to) { take(results, code, i++, type, to); });
    return out;
  }

  /// Writes the results where the caller has them: into(out..., in...), tensors of the GPU of the results' shapes
  /// (DeviceTensor&, DeviceView) and numbers. A target may be an argument, too: a step of a model in place.
  template <class... A>
  void into(A&&... outs_then_ins) const {
    constexpr std::size_t outs = std::tuple_size_v<Parts>;
    static_assert(sizeof...(A) == outs + sizeof...(P), "into takes one target per result, then the arguments");
    write(std::forward_as_tuple(outs_then_ins...), std::make_index_sequence<outs>{}, std::index_sequence_for<P...>{});
  }

 private:
  template <class T, class H>
  void take(const Results<count>& results, const driver::Code& code, std::size_t i, std::type_identity<T> type, H& to) const {
    const auto from = results.elements(i, type);
    if constexpr (ScalarElement<T>) {
      to = from[0];
    } else {
      using E = typename Traits<T>::element;
      const std::int64_t* sizes = static_cast<const std::int64_t*>(results.data()[i]) + 1;
      to = cuda::DeviceTensor<E>(std::vector<std::int64_t>(sizes, sizes + code.results()[i].rank()));
      cuda_driver::copy(to.data(), from.data(), static_cast<std::int64_t>(from.size_bytes()), stream_.get());
    }
  }

  template <class All, std::size_t... O, std::size_t... I>
  void write(All all, std::index_sequence<O...>, std::index_sequence<I...>) const {
    GpuArguments in;
    (for_each_leaf<P>(std::get<sizeof...(O) + I>(all), [&](auto type, const auto& h) { in.add(type, h); }), ...);
    const driver::Code& code = f_.gpu_code();
    Results<count> results(code.results());
    std::array<lt_target, count> targets;
    std::size_t i = 0;
    const auto place = [&]<class T>(std::type_identity<T>, auto& to) {
      targets[i] = {nullptr, -1};
      if constexpr (!ScalarElement<T>) {
        const std::int64_t bytes = to.size() * static_cast<std::int64_t>(sizeof(typename Traits<T>::element));
        if (!in.shares(to.data(), bytes)) targets[i] = {to.data(), bytes};
      }
      ++i;
    };
    (for_each_leaf<std::tuple_element_t<O, Parts>>(std::get<O>(all), place), ...);
    std::vector<std::int64_t> key = in.key();
    for (const lt_target& t : targets) key.insert(key.end(), {reinterpret_cast<std::intptr_t>(t.data), t.bytes});
    driver::run_on_gpu(code.device_entry(), code.facts(), in.data(), results.data(), targets.data(), stream_.get(),
                       std::move(key));
    i = 0;
    const auto store = [&]<class T>(std::type_identity<T> type, auto& to) {
      const auto from = results.elements(i, type);
      if constexpr (ScalarElement<T>) {
        to = from[0];
      } else {
        if (to.size() != static_cast<std::int64_t>(from.size()))
          throw Error("into: expected room for " + std::to_string(from.size()) + " elements, got " + std::to_string(to.size()));
        if (static_cast<const void*>(from.data()) != static_cast<const void*>(to.data()))
          cuda_driver::copy(to.data(), from.data(), static_cast<std::int64_t>(from.size_bytes()), stream_.get());
      }
      ++i;
    };
    (for_each_leaf<std::tuple_element_t<O, Parts>>(std::get<O>(all), store), ...);
  }

  Self f_;
  cuda::Stream stream_;
};

}  // namespace detail
}  // namespace lantern::core

namespace lantern::cuda {

/// A product of Reps on the GPU, such as a model or an optimiser's state: tensors are DeviceTensors, numbers stay numbers. A
/// struct is the tuple of its members, unless its template has an instance with these.
template <class P>
using OnDevice = core::detail::mapped_t<P, core::detail::LeavingOnGpu>;

/// Copies of all tensors of a struct or tuple on the GPU: to_device<Model>(model), of the type that the program has for it.
/// Errors: no GPU, no memory.
template <class P, class H>
  requires(core::detail::StructType<P> || core::detail::TupleType<P> || core::detail::SequenceType<P>)
OnDevice<P> to_device(const H& host, const Stream& stream = Stream::standard()) {
  std::vector<const void*> leaves;
  core::detail::for_each_leaf<P>(host, [&]<class T, class L>(std::type_identity<T>, const L& leaf) {
    static_assert(std::same_as<L, core::detail::host_leaf<T>>, "to_device: expected the host's values of the program's type");
    leaves.push_back(&leaf);
  });
  OnDevice<P> there{};
  std::size_t i = 0;
  core::detail::for_each_leaf<P>(there, [&]<class T, class L>(std::type_identity<T>, L& to) {
    const auto& from = *static_cast<const core::detail::host_leaf<T>*>(leaves[i++]);
    if constexpr (core::ScalarElement<T>) to = from;
    else to = to_device(from, stream);
  });
  return there;
}

/// The copy back: to_host<Model>(there, stream), once the stream has done what it was given.
template <class P, class D>
  requires(core::detail::StructType<P> || core::detail::TupleType<P> || core::detail::SequenceType<P>)
core::detail::host_out<P> to_host(const D& there, const Stream& stream = Stream::standard()) {
  std::vector<const void*> leaves;
  core::detail::for_each_leaf<P>(there, [&](auto, const auto& leaf) { leaves.push_back(&leaf); });
  core::detail::host_out<P> host{};
  std::size_t i = 0;
  core::detail::for_each_leaf<P>(host, [&]<class T, class L>(std::type_identity<T>, L& to) {
    if constexpr (core::ScalarElement<T>) {
      to = *static_cast<const T*>(leaves[i++]);
    } else {
      using E = typename core::detail::Traits<T>::element;
      TensorValue<E> from = to_host(*static_cast<const DeviceTensor<E>*>(leaves[i++]), stream);
      if constexpr (requires { to.shape; }) to = std::move(from);
      else to = std::move(from.data);
    }
  });
  return host;
}

}  // namespace lantern::cuda
