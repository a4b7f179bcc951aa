// What a rank has called on a communicator. All its ranks call the same: where they do not, their logs say
// who called what.
//
// Operations carry no check of their own. Each rank keeps a hash of all that it has called; ranks compare
// their hashes now and then, and always before what a compiled function has computed is used (agreement.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace lantern::distributed {

/// An operation, without what differs between ranks.
struct Entry {
  std::uint64_t what;  ///< operation, element type, reduction and roles (kernels.h), root
  std::int64_t n;
  const char* place;

  static Entry of(std::int64_t operation, std::int64_t reduction, std::int64_t kind, std::int64_t root,
                  std::int64_t n, const char* place) {
    return {static_cast<std::uint64_t>(operation) | static_cast<std::uint64_t>(kind) << 8U |
                static_cast<std::uint64_t>(reduction) << 16U | static_cast<std::uint64_t>(root + 1) << 32U,
            n, place};
  }
  std::int64_t operation() const { return static_cast<std::int64_t>(what & 0xffU); }
  std::int64_t kind() const { return static_cast<std::int64_t>(what >> 8U & 0xffU); }
  std::int64_t reduction() const { return static_cast<std::int64_t>(what >> 16U & 3U); }
  /// What it is for in derivatives.
  std::int64_t roles() const { return static_cast<std::int64_t>(what >> 18U & 0x3fffU); }
  /// Of a message between two ranks: its element type and roles, in which both agree.
  int tag() const { return static_cast<int>((what >> 8U & 7U) | (what >> 15U & 0x1fff8U)); }
  static std::int64_t kind_of_tag(int tag) { return tag & 7; }
  std::int64_t root() const { return static_cast<std::int64_t>(what >> 32U) - 1; }
};

/// The same as another rank sends it.
struct RemoteEntry {
  std::uint64_t what = 0;
  std::int64_t n = 0;
  std::string place;
  bool same(const RemoteEntry& o) const { return what == o.what && n == o.n; }
};
struct RemoteLog {
  std::uint64_t first = 0;  ///< the number of entries[0]; 0: nothing was heard
  std::vector<RemoteEntry> entries;
};

/// The last operations of this rank. They are numbered from 1.
struct Log {
  static constexpr std::uint64_t kept = 512,
                                 period =
                                     256;  ///< ranks compare after so many operations: none is further ahead
  std::array<Entry, kept> entries{};
  std::uint64_t count = 0, compared = 0;
  /// Operations and comparisons, from 1 on; how many were begun and have not ended.
  std::uint64_t steps = 0, unfinished = 0;
  std::uint64_t hash = 0;

  void add(const Entry& e) {
    Entry& own = entries[++count % kept];
    own.what = e.what, own.n = e.n, own.place = e.place;
    constexpr std::uint64_t a = 0xff51afd7ed558ccdU, b = 0xc4ceb9fe1a85ec53U;
    hash = (hash ^ e.what) * a + static_cast<std::uint64_t>(e.n);
    hash = (hash ^ hash >> 29U) * b;
  }
  bool is_due() const { return count - compared >= period; }
};

/// Messages between two ranks, which the others have no part in: the last ones that were sent, and how many.
struct Messages {
  static constexpr std::uint64_t kept = 64;
  struct Sent {
    int to;
    std::uint64_t number;  ///< to that rank
    Entry entry;
  };
  std::array<Sent, kept> last{};
  std::uint64_t count = 0, placed = 0;  ///< placed: how many have places that stay
  std::vector<std::uint64_t> to, from;  ///< how many, by rank
  RemoteEntry answer;                   ///< what another rank says that it has sent
  bool answered = false;
};

/// The same text in memory that stays.
const char* lasting(const char* place);
/// Before code goes that has sent: the last messages keep their places.
void keep_places(Messages& all);

/// Entries as bytes.
void put_entry(std::vector<char>& bytes, const RemoteEntry& e);
RemoteEntry get_entry(const std::vector<char>& bytes, std::size_t& at);
/// Text of an operation: "all_reduce(sum) of 3 double at model.cpp:12".
std::string text_of(const RemoteEntry& e);
/// An entry with a copy of its place, which may have gone with its code.
RemoteEntry with_place(const Entry& e);

}  // namespace lantern::distributed
