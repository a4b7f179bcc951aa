// libcudnn for machines without a GPU: descriptors that keep what they are given, and convolutions by their definition.
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <thread>
#include <vector>

/// Of the stand-in for the driver: does it where the stream is, when the host may touch the device's memory.
int stand_in_queue(void* stream, const std::function<int()>& operation);

namespace {

struct Handle {
  void* stream = nullptr;
};
struct Descriptor {
  int kind = 0;
  bool finished = false;
  std::map<int, std::vector<char>> attributes;

  template <class T>
  T get(int attribute, std::size_t i = 0) const {
    T value;
    std::memcpy(&value, attributes.at(attribute).data() + i * sizeof(T), sizeof(T));
    return value;
  }
  const Descriptor& at(int attribute) const { return *get<const Descriptor*>(attribute); }
};

int convolutions = 0, made = 0, of_way[3] = {}, slow = 0;
bool none = false, failing = false;

std::size_t size_of(int type) { return type == 1 || type == 4 || type == 7 || type == 8 || type == 11 ? 4 : 8; }

/// Which attributes a descriptor of a kind must have when it is finished.
const std::map<int, std::vector<int>> needed = {{1, {100, 101, 102, 103, 104, 105, 106}},
                                                {4, {200, 201}},
                                                {5, {401}},
                                                {10, {700, 701, 702, 703, 704, 705}},
                                                {11, {712, 713, 714, 715, 716, 717}},
                                                {12, {706, 707, 708, 709, 710, 711}},
                                                {15, {800, 801}},
                                                {16, {1000, 1001, 1003}},
                                                {17, {900, 901, 902, 903, 906}}};

template <class T>
int run(const Descriptor& operation, std::map<std::int64_t, void*> memory) {
  static const std::map<int, std::vector<int>> kinds = {{10, {700, 704, 703, 705}}, {11, {712, 716, 715, 717}}, {12, {706, 710, 709, 711}}};
  const std::vector<int>& kind = kinds.at(operation.kind);
  const double alpha = static_cast<double>(operation.get<T>(kind[0])), beta = static_cast<double>(operation.get<T>(kind[0] + 1));
  struct Tensor {
    T* data;
    std::int64_t size[4], step[4];
    T& operator()(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
      return data[a * step[0] + b * step[1] + c * step[2] + d * step[3]];
    }
  };
  const auto tensor = [&](const Descriptor& t) {
    Tensor made{static_cast<T*>(memory.at(t.get<std::int64_t>(906))), {}, {}};
    for (std::size_t d = 0; d < 4; ++d) made.size[d] = t.get<std::int64_t>(902, d), made.step[d] = t.get<std::int64_t>(903, d);
    return made;
  };
  const Descriptor& how = operation.at(kind[0] + 2);
  const Tensor x = tensor(operation.at(kind[1])), w = tensor(operation.at(kind[2])), y = tensor(operation.at(kind[3]));
  const std::int64_t stride[] = {how.get<std::int64_t>(103, 0), how.get<std::int64_t>(103, 1)};
  const std::int64_t dilation[] = {how.get<std::int64_t>(102, 0), how.get<std::int64_t>(102, 1)};
  const int computed = operation.kind;
  // Sums in double, then once into the result.
  const Tensor& result = computed == 10 ? y : computed == 11 ? w : x;
  const std::int64_t* const sizes = result.size;
  std::vector<double> sums(static_cast<std::size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3]));
  const auto sum = [&](std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) -> double& {
    return sums[static_cast<std::size_t>(((a * sizes[1] + b) * sizes[2] + c) * sizes[3] + d)];
  };
  const std::int64_t outputs = w.size[0] / (x.size[1] / w.size[1]);  // of a group
  for (std::int64_t n = 0; n < y.size[0]; ++n)
    for (std::int64_t o = 0; o < w.size[0]; ++o)
      for (std::int64_t c = 0; c < w.size[1]; ++c)
        for (std::int64_t i = 0; i < y.size[2]; ++i)
          for (std::int64_t j = 0; j < y.size[3]; ++j)
            for (std::int64_t p = 0; p < w.size[2]; ++p)
              for (std::int64_t q = 0; q < w.size[3]; ++q) {
                const std::int64_t a = i * stride[0] + p * dilation[0], b = j * stride[1] + q * dilation[1];
                const std::int64_t channel = o / outputs * w.size[1] + c;
                const auto value = [&](const T& v) { return static_cast<double>(v); };
                if (computed == 10) sum(n, o, i, j) += value(x(n, channel, a, b)) * value(w(o, c, p, q));
                else if (computed == 11) sum(o, c, p, q) += value(x(n, channel, a, b)) * value(y(n, o, i, j));
                else sum(n, channel, a, b) += value(y(n, o, i, j)) * value(w(o, c, p, q));
              }
  for (std::int64_t a = 0; a < sizes[0]; ++a)
    for (std::int64_t b = 0; b < sizes[1]; ++b)
      for (std::int64_t c = 0; c < sizes[2]; ++c)
        for (std::int64_t d = 0; d < sizes[3]; ++d) {
          T& to = result(a, b, c, d);
          to = static_cast<T>(alpha * sum(a, b, c, d) + (beta == 0 ? 0 : beta * static_cast<double>(to)));
        }
  return 0;
}

/// As cuDNN refuses what does not fit.
bool fits(const Descriptor& operation) {
  const int first = operation.kind == 10 ? 700 : operation.kind == 11 ? 712 : 706;
  static const std::map<int, std::vector<int>> tensors = {{10, {704, 703, 705}}, {11, {716, 715, 717}}, {12, {710, 709, 711}}};
  const std::vector<int>& t = tensors.at(operation.kind);
  const Descriptor &how = operation.at(first + 2), &x = operation.at(t[0]), &w = operation.at(t[1]), &y = operation.at(t[2]);
  const auto size = [](const Descriptor& d, std::size_t k) { return d.get<std::int64_t>(902, k); };
  if (how.get<int>(101) != 1 || how.get<std::int64_t>(106) != 2) return false;
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t window = how.get<std::int64_t>(102, d) * (size(w, 2 + d) - 1) + 1;
    const std::int64_t places = (size(x, 2 + d) + how.get<std::int64_t>(104, d) + how.get<std::int64_t>(105, d) - window) / how.get<std::int64_t>(103, d) + 1;
    if (places != size(y, 2 + d)) return false;
  }
  return size(x, 0) == size(y, 0) && size(x, 1) % size(w, 1) == 0 && size(w, 0) % (size(x, 1) / size(w, 1)) == 0 && size(w, 0) == size(y, 1);
}

}  // namespace

extern "C" {

std::size_t cudnnGetVersion() { return 91900; }
int cudnnCreate(void** handle) { return *handle = new Handle, 0; }
int cudnnDestroy(void* handle) { return delete static_cast<Handle*>(handle), 0; }
int cudnnSetStream(void* handle, void* stream) { return static_cast<Handle*>(handle)->stream = stream, 0; }
int cudnnBackendCreateDescriptor(int kind, void** d) { return ++made, *d = new Descriptor{kind, false, {}}, 0; }
int cudnnBackendDestroyDescriptor(void* d) { return --made, delete static_cast<Descriptor*>(d), 0; }
int cudnnBackendSetAttribute(void* d, int attribute, int type, std::int64_t count, const void* elements) {
  Descriptor* descriptor = static_cast<Descriptor*>(d);
  if (descriptor->finished) return 3000;
  const char* from = static_cast<const char*>(elements);
  descriptor->attributes[attribute].assign(from, from + static_cast<std::size_t>(count) * size_of(type));
  return 0;
}
int cudnnBackendFinalize(void* d) {
  Descriptor* descriptor = static_cast<Descriptor*>(d);
  if (const auto wanted = needed.find(descriptor->kind); wanted != needed.end())
    for (const int attribute : wanted->second)
      if (!descriptor->attributes.contains(attribute)) return 2000;
  if (descriptor->kind >= 10 && descriptor->kind <= 12 && !fits(*descriptor)) return 2000;
  descriptor->finished = true;
  return 0;
}
/// Three ways to compute: the first rounds factors, the other two do not. A plan needs a kilobyte.
int cudnnBackendGetAttribute(void* d, int attribute, int, std::int64_t asked, std::int64_t* count, void* elements) {
  Descriptor* descriptor = static_cast<Descriptor*>(d);
  if (attribute == 202) {  // configurations
    *count = none || asked < 3 ? 0 : 3;
    for (std::int64_t i = 0; i < *count; ++i) {
      Descriptor* one = static_cast<Descriptor**>(elements)[i];
      one->attributes[-1] = descriptor->attributes.at(201);
      one->attributes[-2] = {static_cast<char>(i)};
      one->finished = true;
    }
  } else if (attribute == 300) {  // its engine
    Descriptor* engine = *static_cast<Descriptor**>(elements);
    engine->attributes[-2] = descriptor->attributes.at(-2);
    *count = 1;
  } else if (attribute == 1303) {  // what is to be known of it
    *count = descriptor->attributes.at(-2)[0] == 0 ? 1 : 0;
    if (*count == 1) *static_cast<int*>(elements) = 1;  // factors are rounded
  } else if (attribute == 402) {
    *static_cast<std::int64_t*>(elements) = 1024;
    *count = 1;
  } else {
    return 2000;
  }
  return 0;
}
int cudnnBackendExecute(void* handle, void* plan, void* pack) {
  const Descriptor &way = *static_cast<Descriptor*>(plan), &call = *static_cast<Descriptor*>(pack);
  if (!way.finished || !call.finished) return 2000;
  if (failing) return 5000;
  const Descriptor& configuration = way.at(401);
  const Descriptor& operation = configuration.at(-1).at(801);
  const int number = configuration.attributes.at(-2)[0];
  ++of_way[number];
  std::map<std::int64_t, void*> memory;
  for (std::size_t i = 0; i < 3; ++i) memory[call.get<std::int64_t>(1000, i)] = call.get<void*>(1001, i);
  ++convolutions;
  const int type = operation.at(operation.kind == 10 ? 704 : operation.kind == 11 ? 716 : 710).get<int>(901);
  return stand_in_queue(static_cast<Handle*>(handle)->stream, [=, &operation] {
    if (number == slow) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return type == 1 ? run<double>(operation, memory) : run<float>(operation, memory);
  });
}

/// Convolutions so far, those by one of the ways, and descriptors that have not been destroyed.
int stand_in_convolutions() { return convolutions; }
int stand_in_convolutions_by(int way) { return of_way[way]; }
int stand_in_descriptors() { return made; }
/// Which way takes 20 ms more than others.
void stand_in_slow_way(int way) { slow = way; }
/// From now on it has no way to compute anything, or what it computes fails.
void stand_in_without_ways(int yes) { none = yes != 0; }
void stand_in_failing(int yes) { failing = yes != 0; }

}  // extern "C"
