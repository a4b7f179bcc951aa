// Tensors of the GPU for and from others: DLPack, streams, products by cuBLAS. With stand-ins, as device_test.cpp.
#include <dlfcn.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "lantern/cuda.hpp"
#include "lantern/lantern.hpp"
#include "lantern/runtime/cuda/dlpack.hpp"
#include "lantern/tensor.hpp"

using namespace lantern;
using Row = Rep<Tensor<float, dyn>>;
using Matrix = Rep<Tensor<float, dyn, dyn>>;
using Matrix64 = Rep<Tensor<double, dyn, dyn>>;

namespace {

template <class F>
F* stand_in(const char* library, const char* name) {
  static void* const driver = dlopen(std::getenv("LANTERN_CUDA_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  void* const other = library ? dlopen(library, RTLD_NOW) : driver;
  F* const f = reinterpret_cast<F*>(dlsym(other, name));
  REQUIRE(f);
  return f;
}

template <class T>
TensorValue<T> numbers(std::vector<std::int64_t> shape) {
  TensorValue<T> t(std::move(shape));
  for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = static_cast<T>(std::sin(1.7 * static_cast<double>(i) + 0.4));
  return t;
}

/// A variable of the environment has another value for a while.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* was = std::getenv(name)) before_ = was;
    ::setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    if (before_) ::setenv(name_, before_->c_str(), 1);
    else ::unsetenv(name_);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// A tensor as another library describes it.
struct Foreign {
  std::vector<std::int64_t> shape, strides;
  DLTensor t{};
  Foreign(void* data, std::vector<std::int64_t> sizes) : shape(std::move(sizes)) {
    t.data = data;
    t.device = {kDLCUDA, 0};
    t.ndim = static_cast<int>(shape.size());
    t.dtype = {kDLFloat, 32, 1};
    t.shape = shape.data();
  }
};

}  // namespace

TEST_CASE("a tensor of another library is used where it is", "[cuda]") {
  REQUIRE(cuda::available());
  const auto gpu = compile([](Row x) { return x * 2.0f; }, {.target = Target::cuda});
  const cuda::Stream stream, theirs;
  auto memory = cuda::to_device(numbers<float>({8}));
  const Foreign x(memory.data(), {8});
  stream.follow(theirs);
  const auto doubled = cuda::to_host(gpu.on(stream)(cuda::from_dlpack<const float>(x.t)), stream);
  for (std::size_t i = 0; i < 8; ++i) CHECK(doubled.data[i] == 2 * numbers<float>({8}).data[i]);
  // In place, behind the first two elements.
  Foreign part(memory.data(), {4});
  part.t.byte_offset = 8;
  gpu.on(stream).into(cuda::from_dlpack<float>(part.t), cuda::from_dlpack<const float>(part.t));
  const auto after = cuda::to_host(memory, stream);
  for (std::size_t i = 0; i < 8; ++i) CHECK(after.data[i] == (i >= 2 && i < 6 ? 2 : 1) * numbers<float>({8}).data[i]);

  DlpackVersioned versioned{};
  versioned.version = {1, 0};
  versioned.dl_tensor = x.t;
  CHECK(cuda::from_dlpack<float>(versioned).data() == memory.data());
  versioned.flags = dlpack_read_only;
  CHECK(cuda::from_dlpack<const float>(versioned).data() == memory.data());
  CHECK_THROWS_WITH(cuda::from_dlpack<float>(versioned), Catch::Contains("ask for a DeviceView of const elements"));
  versioned.version = {2, 0};
  CHECK_THROWS_WITH(cuda::from_dlpack<float>(versioned), Catch::Contains("expected a tensor of DLPack 1.x, got one of 2.0"));
}

TEST_CASE("a tensor of another library that cannot be used", "[cuda]") {
  auto memory = cuda::to_device(numbers<float>({6}));
  Foreign x(memory.data(), {2, 3});
  x.t.device = {kDLCPU, 0};
  CHECK_THROWS_WITH(cuda::from_dlpack<float>(x.t), Catch::Contains("expected a tensor in CUDA's memory, got one of device type 1 (CPU)"));
  x.t.device = {kDLCUDA, 1};
  CHECK_THROWS_WITH(cuda::from_dlpack<float>(x.t), Catch::Contains("expected a tensor on GPU 0, got one on GPU 1"));
  x.t.device = {kDLCUDA, 0};
  CHECK_THROWS_WITH(cuda::from_dlpack<double>(x.t), Catch::Contains("expected elements of code 2 with 64 bits, got code 2 with 32 bits"));
  CHECK_THROWS_WITH(cuda::from_dlpack<std::int32_t>(x.t), Catch::Contains("expected elements of code 0 with 32 bits"));
  x.strides = {1, 2};
  x.t.strides = x.strides.data();
  CHECK_THROWS_WITH(cuda::from_dlpack<float>(x.t), Catch::Contains("expected contiguous elements, got strides"));
  x.strides = {3, 1};
  CHECK(cuda::from_dlpack<float>(x.t).shape() == std::vector<std::int64_t>{2, 3});
  memory = {};
  CHECK_THROWS_WITH(cuda::from_dlpack<float>(x.t), Catch::Contains("it has been freed"));
  const auto gpu = compile([](Row v) { return v * 2.0f; }, {.target = Target::cuda});
  auto other = cuda::to_device(numbers<float>({6}));
  stand_in<void(void*, int)>(nullptr, "stand_in_move")(other.data(), 1);
  CHECK_THROWS_WITH(gpu.on(cuda::Stream())(other), Catch::Contains("argument 1 lies on GPU 1, and the call runs on GPU 0"));
  stand_in<void(void*, int)>(nullptr, "stand_in_move")(other.data(), 0);
}

TEST_CASE("a tensor is handed over on the consumer's stream", "[cuda]") {
  const auto allocated = stand_in<int()>(nullptr, "stand_in_allocations"), followed = stand_in<int()>(nullptr, "stand_in_followed");
  const cuda::Stream stream, theirs;
  const int before = allocated(), orders = followed();
  DLManagedTensor* const m = cuda::to_dlpack(cuda::to_device(numbers<float>({2, 3})), stream, reinterpret_cast<std::intptr_t>(theirs.get()));
  CHECK(followed() == orders + 1);
  CHECK(m->dl_tensor.device.device_type == kDLCUDA);
  CHECK(m->dl_tensor.ndim == 2);
  CHECK(cuda::to_host(cuda::from_dlpack<const float>(m->dl_tensor)).data == numbers<float>({2, 3}).data);
  CHECK(allocated() == before + 1);
  m->deleter(m);
  CHECK(allocated() == before);
  DlpackVersioned* const v = cuda::to_dlpack_versioned(cuda::to_device(TensorValue<std::int64_t>({3})), stream, 1);
  CHECK(v->version.major == 1);
  CHECK(cuda::from_dlpack<std::int64_t>(*v).size() == 3);
  v->deleter(v);
  CHECK(followed() == orders + 2);
  DLManagedTensor* const loose = cuda::to_dlpack(cuda::to_device(numbers<float>({2})), stream, -1);
  CHECK(followed() == orders + 2);
  loose->deleter(loose);
  CHECK_THROWS_WITH(cuda::to_dlpack(cuda::to_device(numbers<float>({2})), stream, 0), Catch::Contains("expected the consumer's stream"));
  CHECK_THROWS_WITH(cuda::to_dlpack(cuda::to_device(numbers<float>({2})), stream, 0x1230),
                    Catch::Contains("streams that follow each other: invalid resource handle"));
}

TEST_CASE("products of matrices are cuBLAS's", "[cuda]") {
  const auto products = stand_in<int()>("libcublas.so.13", "stand_in_products");
  const auto agree = [&](auto f, double tolerance, int calls, const auto&... args) {
    const int before = products();
    const auto there = compile(f, {.target = Target::cuda})(args...), here = compile(f, {.target = Target::c})(args...);
    CHECK(products() == before + calls);
    REQUIRE(there.shape == here.shape);
    for (std::size_t i = 0; i < here.data.size(); ++i)
      CHECK(static_cast<double>(there.data[i]) == Approx(static_cast<double>(here.data[i])).epsilon(tolerance).margin(tolerance));
  };
  agree([](Matrix a, Matrix b) { return matmul(a, b); }, 1e-5, 1, numbers<float>({17, 33}), numbers<float>({33, 9}));
  agree([](Matrix64 a, Matrix64 b) { return matmul(a, transpose(b)); }, 1e-12, 1, numbers<double>({17, 33}), numbers<double>({9, 33}));
  agree([](Matrix a, Matrix b) { return matmul(transpose(a), b); }, 1e-5, 1, numbers<float>({33, 17}), numbers<float>({33, 9}));
  agree([](Matrix a, Matrix b) { return transpose(matmul(a, b)); }, 1e-5, 1, numbers<float>({17, 33}), numbers<float>({33, 9}));
  using Batch = Rep<Tensor<float, dyn, dyn, dyn>>;
  agree([](Batch a, Batch b) { return einsum<"bij,bjk->bik">(a, b); }, 1e-5, 1, numbers<float>({4, 5, 6}), numbers<float>({4, 6, 7}));
  agree([](Batch a, Batch b) { return einsum<"bij,bkj->bik">(a, b); }, 1e-5, 1, numbers<float>({4, 5, 6}), numbers<float>({4, 7, 6}));
  // Of heads of attention: a call for each head or each of the batch, whichever are fewer. And what is too little for that.
  using Heads = Rep<Tensor<float, dyn, dyn, dyn, dyn>>;
  const auto scores = [](Heads q, Heads k) { return einsum<"bqhd,bkhd->bhqk">(q, k); };
  agree(scores, 1e-5, 2, numbers<float>({3, 64, 2, 32}), numbers<float>({3, 50, 2, 32}));
  agree(scores, 1e-5, 2, numbers<float>({2, 64, 3, 32}), numbers<float>({2, 50, 3, 32}));
  agree(scores, 1e-5, 0, numbers<float>({3, 8, 2, 4}), numbers<float>({3, 5, 2, 4}));
  agree(scores, 1e-5, 1, numbers<float>({1, 8, 2, 4}), numbers<float>({1, 5, 2, 4}));
  agree([](Heads p, Heads v) { return einsum<"bhqk,bkhd->bqhd">(p, v); }, 1e-5, 2, numbers<float>({3, 2, 64, 50}), numbers<float>({3, 50, 2, 32}));
  // Of factors of 16 bits, with a result of 16 bits or of float.
  const auto twice = [](Matrix a, Matrix b) { return matmul(Matrix(tanh(matmul(a, b))), b); };
  const auto a = numbers<float>({17, 9}), b = numbers<float>({9, 9}), here = compile(twice, {.target = Target::c})(a, b);
  for (const char* storage : {"f16", "bf16"}) {
    const int before = products();
    const auto there = compile(twice, {.target = Target::cuda, .storage = storage})(a, b);
    CHECK(products() == before + 2);
    for (std::size_t i = 0; i < here.data.size(); ++i) CHECK(there.data[i] == Approx(here.data[i]).margin(storage[0] == 'b' ? 3e-2 : 4e-3));
  }
}

TEST_CASE("convolutions are cuDNN's", "[cuda]") {
  using Images = Rep<Tensor<float, dyn, dyn, dyn, dyn>>;
  using Images64 = Rep<Tensor<double, dyn, dyn, dyn, dyn>>;
  const auto convolutions = stand_in<int()>("libcudnn.so.9", "stand_in_convolutions");
  const auto by = stand_in<int(int)>("libcudnn.so.9", "stand_in_convolutions_by");
  const auto exact = [by] { return by(1) + by(2); };
  const Environment first("LANTERN_CUDNN", "first");  // nothing is timed
  const auto same = [](const auto& there, const auto& here, double tolerance) {
    REQUIRE(there.shape == here.shape);
    for (std::size_t i = 0; i < here.data.size(); ++i)
      CHECK(static_cast<double>(there.data[i]) == Approx(static_cast<double>(here.data[i])).epsilon(tolerance).margin(tolerance));
  };
  // Of each: forward, and both derivatives of a sum of squares, then again and again as a graph.
  const auto agree = [&]<class T>(auto f, double tolerance, std::type_identity<T>) {
    using I = std::conditional_t<std::is_same_v<T, float>, Images, Images64>;
    const auto g = [f](I a, I b) {
      const auto [dx, dw] = grad<0, 1>([f](I c, I d) {
        const I y = f(c, d);
        return sum(y * y);
      })(a, b);
      return std::tuple(I(f(a, b)), dx, dw);
    };
    return [=, &same, gpu = compile(g, {.target = Target::cuda}), cpu = compile(g, {.target = Target::c})](
               int calls, std::vector<std::int64_t> shape, std::vector<std::int64_t> window) {
      const auto x = numbers<T>(shape), w = numbers<T>(window);
      const int before = convolutions(), before_exact = exact();
      const auto [y, dx, dw] = gpu(x, w);
      CHECK(convolutions() == before + calls);
      CHECK(exact() == before_exact + calls);  // the first way rounds factors
      const auto [y2, dx2, dw2] = cpu(x, w);
      same(y, y2, tolerance);
      same(dx, dx2, tolerance);
      same(dw, dw2, tolerance);
      const cuda::Stream s;
      const auto there_x = cuda::to_device(x), there_w = cuda::to_device(w);
      for (int i = 0; i < 3; ++i) {
        const auto [y3, dx3, dw3] = gpu.on(s)(there_x, there_w);
        CHECK(cuda::last_call().graphs == (i > 0 ? 1 : 0));
        same(cuda::to_host(dx3, s), dx2, tolerance);
        same(cuda::to_host(dw3, s), dw2, tolerance);
        CHECK(cuda::to_host(y3, s).shape == y2.shape);
      }
    };
  };
  const auto padded = agree([](auto a, auto b) { return conv(a, b, {.stride = 2, .padding = 1}); }, 1e-5, std::type_identity<float>());
  padded(3, {2, 3, 8, 7}, {4, 3, 3, 3});
  padded(3, {1, 1, 3, 4}, {2, 1, 1, 2});
  const auto wide = agree([](auto a, auto b) { return conv(a, b, {.stride = 3, .dilation = 2, .groups = 2}); }, 1e-12,
                          std::type_identity<double>());
  wide(3, {2, 4, 11, 12}, {6, 2, 3, 3});
  wide(3, {1, 2, 8, 5}, {2, 1, 3, 2});
  // Nothing to compute, and nothing that cuDNN computes: as without it.
  padded(0, {0, 3, 4, 4}, {5, 3, 2, 2});
  const auto without_ways = stand_in<void(int)>("libcudnn.so.9", "stand_in_without_ways");
  without_ways(1);
  padded(0, {2, 3, 9, 6}, {4, 3, 3, 2});
  without_ways(0);
  const auto failing = stand_in<void(int)>("libcudnn.so.9", "stand_in_failing");
  failing(1);
  padded(0, {2, 3, 6, 9}, {4, 3, 3, 3});
  failing(0);
  // Where that is allowed factors are rounded, in that program alone, and a thread gives back what it had.
  const auto descriptors = stand_in<int()>("libcudnn.so.9", "stand_in_descriptors");
  const int kept = descriptors(), before_exact = exact(), before = convolutions();
  std::thread([&] {
    for (const char* products : {"tf32", "f32", "tf32"})
      compile([](Images a, Images b) { return conv(a, b); }, {.target = Target::cuda, .products = products})(
          numbers<float>({1, 3, 5, 5}), numbers<float>({2, 3, 3, 3}));
    CHECK(descriptors() > kept);
  }).join();
  CHECK(descriptors() == kept);
  CHECK(convolutions() == before + 3);
  CHECK(exact() == before_exact + 1);
}

TEST_CASE("the fastest of cuDNN's ways is looked for once, and kept", "[cuda]") {
  using Images = Rep<Tensor<float, dyn, dyn, dyn, dyn>>;
  const auto by = stand_in<int(int)>("libcudnn.so.9", "stand_in_convolutions_by");
  const auto slow = stand_in<void(int)>("libcudnn.so.9", "stand_in_slow_way");
  const auto f = grad<0>([](Images a, Images b) {
    const Images y = conv(a, b);
    return sum(y * y);
  });
  const auto gpu = compile(f, {.target = Target::cuda}), cpu = compile(f, {.target = Target::c});
  const std::filesystem::path cache = std::filesystem::temp_directory_path() / ("lantern-dnn-" + std::to_string(::getpid()));
  std::filesystem::remove_all(cache);
  const Environment there("XDG_CACHE_HOME", cache.string());
  const auto x = numbers<float>({2, 3, 5, 5}), w = numbers<float>({2, 3, 3, 3});
  const auto expected = cpu(x, w);
  // A thread has no plans when it begins, as a process. How often each of the ways has computed in it.
  const auto used = [&] {
    const int one = by(1), two = by(2);
    std::thread([&] {
      for (int i = 0; i < 2; ++i) {
        const auto got = gpu(x, w);
        for (std::size_t k = 0; k < expected.data.size(); ++k) CHECK(got.data[k] == Approx(expected.data[k]).epsilon(1e-5).margin(1e-4));
      }
    }).join();
    return std::pair(by(1) - one, by(2) - two);
  };
  const int calls = 2 * 2, timed = 2 * 4;  // forward, and the derivative, which adds to its result
  slow(1);
  CHECK(used() == std::pair(timed, timed + calls));
  slow(2);
  CHECK(used() == std::pair(0, calls));
  const std::filesystem::path file = cache / "lantern" / "convolutions";
  const auto lines = [&] {
    std::vector<std::string> all;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  };
  REQUIRE(lines().size() == 2);
  CHECK_THAT(lines()[0], Catch::Contains("cuDNN 91900: 4 0 1 ") && Catch::EndsWith(" = 1"));
  // Others are not taken for it, the first of two counts, and what is no number of a way is none.
  const std::string kept = lines()[0];
  std::ofstream(file) << "x" << kept << '\n' << kept.substr(0, kept.size() - 1) << "9\n" << kept.substr(0, kept.size() - 1) << "0\n" << kept << '\n';
  slow(1);
  CHECK(used() == std::pair(timed / 2 + calls / 2, timed / 2 + calls / 2));  // of the derivative nothing was known
  {
    const Environment first("LANTERN_CUDNN", "first");
    CHECK(used() == std::pair(calls, 0));
  }
  {
    const Environment nowhere("XDG_CACHE_HOME", "/proc/none");
    CHECK(used() == std::pair(calls, 0));
  }
  slow(0);
  std::filesystem::remove_all(cache);
}
