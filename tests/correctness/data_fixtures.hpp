// Files as NumPy 2.4 and the safetensors package 0.8 write them, each with the Python that wrote it.
#pragma once

#include <string_view>

namespace fixtures {

using namespace std::string_view_literals;

// np.save(f, np.arange(6, dtype="<f4").reshape(2, 3) / 4)
inline constexpr std::string_view float32 =
    "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }               "
    "                                           \012\000\000\000\000\000\000\200>\000\000\000\077\000"
    "\000@\077\000\000\200\077\000\000\240\077"sv;

// np.save(f, np.array([0.1, -2.5, np.inf], dtype=">f8"))
inline constexpr std::string_view float64_big_endian =
    "\223NUMPY\001\000v\000{'descr': '>f8', 'fortran_order': False, 'shape': (3,), }                 "
    "                                           \012\077\271\231\231\231\231\231\232\300\004\000\000"
    "\000\000\000\000\177\360\000\000\000\000\000\000"sv;

// np.save(f, np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)))
inline constexpr std::string_view int32_columns_first =
    "\223NUMPY\001\000v\000{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3), }                "
    "                                           \012\000\000\000\000\000\000\000\003\000\000\000\001"
    "\000\000\000\004\000\000\000\002\000\000\000\005"sv;

// np.save(f, np.asfortranarray(np.arange(12, dtype="<f8").reshape(2, 3, 2)))
inline constexpr std::string_view float64_columns_first =
    "\223NUMPY\001\000v\000{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3, 2), }             "
    "                                           \012\000\000\000\000\000\000\000\000\000\000\000\000"
    "\000\000\030@\000\000\000\000\000\000\000@\000\000\000\000\000\000 @\000\000\000\000\000\000\020"
    "@\000\000\000\000\000\000$@\000\000\000\000\000\000\360\077\000\000\000\000\000\000\034@\000\000"
    "\000\000\000\000\010@\000\000\000\000\000\000\"@\000\000\000\000\000\000\024@\000\000\000\000"
    "\000\000&@"sv;

// np.save(f, np.array(-2**63))
inline constexpr std::string_view int64_number =
    "\223NUMPY\001\000v\000{'descr': '<i8', 'fortran_order': False, 'shape': (), }                   "
    "                                           \012\000\000\000\000\000\000\000\200"sv;

// np.save(f, np.array([True, False, True]))
inline constexpr std::string_view booleans =
    "\223NUMPY\001\000v\000{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }                 "
    "                                           \012\001\000\001"sv;

// np.save(f, np.array([-128, 127], dtype="i1"))
inline constexpr std::string_view int8 =
    "\223NUMPY\001\000v\000{'descr': '|i1', 'fortran_order': False, 'shape': (2,), }                 "
    "                                           \012\200\177"sv;

// np.save(f, np.array([[0, 255]], dtype="u1"))
inline constexpr std::string_view uint8 =
    "\223NUMPY\001\000v\000{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2), }               "
    "                                           \012\000\377"sv;

// np.save(f, np.array([-32768, 32767], dtype="<i2"))
inline constexpr std::string_view int16 =
    "\223NUMPY\001\000v\000{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }                 "
    "                                           \012\000\200\377\177"sv;

// np.save(f, np.array([0, 65535], dtype=">u2"))
inline constexpr std::string_view uint16 =
    "\223NUMPY\001\000v\000{'descr': '>u2', 'fortran_order': False, 'shape': (2,), }                 "
    "                                           \012\000\000\377\377"sv;

// np.save(f, np.array([0, 2**32 - 1], dtype="<u4"))
inline constexpr std::string_view uint32 =
    "\223NUMPY\001\000v\000{'descr': '<u4', 'fortran_order': False, 'shape': (2,), }                 "
    "                                           \012\000\000\000\000\377\377\377\377"sv;

// np.save(f, np.array([1.5, -2**-24, 65504, -0.0, np.inf, np.nan], dtype="<f2"))
inline constexpr std::string_view float16 =
    "\223NUMPY\001\000v\000{'descr': '<f2', 'fortran_order': False, 'shape': (6,), }                 "
    "                                           \012\000>\001\200\377{\000\200\000|\000~"sv;

// np.save(f, np.zeros((0, 3), dtype="f4"))
inline constexpr std::string_view no_elements =
    "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }               "
    "                                           \012"sv;

// np.lib.format.write_array(f, np.array([7.0]), version=(2, 0))
inline constexpr std::string_view version_2 =
    "\223NUMPY\002\000t\000\000\000{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }         "
    "                                                 \012\000\000\000\000\000\000\034@"sv;

// np.lib.format.write_array(f, np.array([7.0]), version=(3, 0))
inline constexpr std::string_view version_3 =
    "\223NUMPY\003\000t\000\000\000{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }         "
    "                                                 \012\000\000\000\000\000\000\034@"sv;

// np.save(f, np.array([1j]))
inline constexpr std::string_view complex_numbers =
    "\223NUMPY\001\000v\000{'descr': '<c16', 'fortran_order': False, 'shape': (1,), }                "
    "                                           \012\000\000\000\000\000\000\000\000\000\000\000\000"
    "\000\000\360\077"sv;

// np.save(f, np.array([1], dtype="u8"))
inline constexpr std::string_view uint64 =
    "\223NUMPY\001\000v\000{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }                 "
    "                                           \012\001\000\000\000\000\000\000\000"sv;

// np.save(f, np.array(["ab"]))
inline constexpr std::string_view text =
    "\223NUMPY\001\000v\000{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }                 "
    "                                           \012a\000\000\000b\000\000\000"sv;

// np.save(f, np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]))
inline constexpr std::string_view records =
    "\223NUMPY\001\000v\000{'descr': [('a', '<i4'), ('b', '<f8')], 'fortran_order': False, 'shape': ("
    "1,), }                                     \012\001\000\000\000\000\000\000\000\000\000\000@"sv;

// np.save(f, np.array([None]))
inline constexpr std::string_view objects =
    "\223NUMPY\001\000v\000{'descr': '|O', 'fortran_order': False, 'shape': (1,), }                  "
    "                                           \012\200\004\225\212\000\000\000\000\000\000\000\214"
    "\026numpy._core.multiarray\224\214\014_reconstruct\224\223\224\214\005numpy\224\214\007ndarray"
    "\224\223\224K\000\205\224C\001b\224\207\224R\224(K\001K\001\205\224h\003\214\005dtype\224\223"
    "\224\214\002O8\224\211\210\207\224R\224(K\003\214\001|\224NNNJ\377\377\377\377J\377\377\377\377K"
    "\077t\224b\211]\224Nat\224b."sv;

// np.savez(f, w=np.array([[1, 2], [3, 4]], dtype="f4"), step=np.array(7))
inline constexpr std::string_view archive =
    "PK\003\004-\000\000\000\000\000\000\000!\000N\373 u\377\377\377\377\377\377\377\377\005\000\024"
    "\000w.npy\001\000\020\000\220\000\000\000\000\000\000\000\220\000\000\000\000\000\000\000\223NUM"
    "PY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }                      "
    "                                    \012\000\000\200\077\000\000\000@\000\000@@\000\000\200@PK"
    "\003\004-\000\000\000\000\000\000\000!\000#\270\360l\377\377\377\377\377\377\377\377\010\000\024"
    "\000step.npy\001\000\020\000\210\000\000\000\000\000\000\000\210\000\000\000\000\000\000\000\223"
    "NUMPY\001\000v\000{'descr': '<i8', 'fortran_order': False, 'shape': (), }                       "
    "                                       \012\007\000\000\000\000\000\000\000PK\001\002-\003-\000"
    "\000\000\000\000\000\000!\000N\373 u\220\000\000\000\220\000\000\000\005\000\000\000\000\000\000"
    "\000\000\000\000\000\200\001\000\000\000\000w.npyPK\001\002-\003-\000\000\000\000\000\000\000!"
    "\000#\270\360l\210\000\000\000\210\000\000\000\010\000\000\000\000\000\000\000\000\000\000\000"
    "\200\001\307\000\000\000step.npyPK\005\006\000\000\000\000\002\000\002\000i\000\000\000\211\001"
    "\000\000\000\000"sv;

// np.savez_compressed(f, w=np.array([[1, 2], [3, 4]], dtype="f4"), step=np.array(7))
inline constexpr std::string_view archive_deflated =
    "PK\003\004-\000\000\000\010\000\000\000!\000N\373 u\377\377\377\377\377\377\377\377\005\000\024"
    "\000w.npy\001\000\020\000\220\000\000\000\000\000\000\000S\000\000\000\000\000\000\000\233\354"
    "\027\352\033\020\311\310P\306P\255\236\222Z\234\\\244n\245\240n\223f\242\256\243\240\236\226_TR"
    "\224\230\027\237_\224\222\012\022wK\314)N\005\212\027g$\026\244\002\371\032F:\012F\232:\012\265"
    "\012d\003.\006\206\006{\006\006\006\007 \002\342\006\007\000PK\003\004-\000\000\000\010\000\000"
    "\000!\000#\270\360l\377\377\377\377\377\377\377\377\010\000\024\000step.npy\001\000\020\000\210"
    "\000\000\000\000\000\000\000F\000\000\000\000\000\000\000\233\354\027\352\033\020\311\310P\306P"
    "\255\236\222Z\234\\\244n\245\240n\223i\241\256\243\240\236\226_TR\224\230\027\237_\224\222\012"
    "\022wK\314)N\005\212\027g$\026\244\002\371\032\232:\012\265\012\024\001.v\006\010\000\000PK\001"
    "\002-\003-\000\000\000\010\000\000\000!\000N\373 uS\000\000\000\220\000\000\000\005\000\000\000"
    "\000\000\000\000\000\000\000\000\200\001\000\000\000\000w.npyPK\001\002-\003-\000\000\000\010"
    "\000\000\000!\000#\270\360lF\000\000\000\210\000\000\000\010\000\000\000\000\000\000\000\000\000"
    "\000\000\200\001\212\000\000\000step.npyPK\005\006\000\000\000\000\002\000\002\000i\000\000\000"
    "\012\001\000\000\000\000"sv;

// np.savez(f, z=np.array([1j]))
inline constexpr std::string_view archive_complex =
    "PK\003\004-\000\000\000\000\000\000\000!\000\3321\260\325\377\377\377\377\377\377\377\377\005"
    "\000\024\000z.npy\001\000\020\000\220\000\000\000\000\000\000\000\220\000\000\000\000\000\000"
    "\000\223NUMPY\001\000v\000{'descr': '<c16', 'fortran_order': False, 'shape': (1,), }            "
    "                                               \012\000\000\000\000\000\000\000\000\000\000\000"
    "\000\000\000\360\077PK\001\002-\003-\000\000\000\000\000\000\000!\000\3321\260\325\220\000\000"
    "\000\220\000\000\000\005\000\000\000\000\000\000\000\000\000\000\000\200\001\000\000\000\000z.np"
    "yPK\005\006\000\000\000\000\001\000\001\0003\000\000\000\307\000\000\000\000\000"sv;

// safetensors.numpy.save({"w": np.array([[1.5, -2.0]], dtype="f4"), "half": np.array([0.5], dtype="f2"),
//       "brain": np.array([-1.5, 3.0], dtype=ml_dtypes.bfloat16), "step": np.array(-5), "on": np.array([True,
//       False]), "pixel": np.array([255], dtype="u1"), "none": np.zeros((2, 0), dtype="f8")},
//       metadata={"format": "np", "é": "ü"})
inline constexpr std::string_view tensors =
    "\300\001\000\000\000\000\000\000{\"__metadata__\":{\"format\":\"np\",\"\303\251\":\"\303\274\"},"
    "\"step\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},\"none\":{\"dtype\":\"F64\",\"s"
    "hape\":[2,0],\"data_offsets\":[8,8]},\"w\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":["
    "8,16]},\"brain\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[16,20]},\"half\":{\"dtype\""
    ":\"F16\",\"shape\":[1],\"data_offsets\":[20,22]},\"pixel\":{\"dtype\":\"U8\",\"shape\":[1],\"dat"
    "a_offsets\":[22,23]},\"on\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[23,25]}}    \373"
    "\377\377\377\377\377\377\377\000\000\300\077\000\000\000\300\300\277@@\0008\377\001\000"sv;

}  // namespace fixtures
