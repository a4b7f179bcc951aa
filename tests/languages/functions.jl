# functions.cpp for Julia, compiled by lanternc VERSION. Generated code: change the C++ source instead. Needs the standard library, nothing else.
module functions

export wave_gradient, energy, energy_gradient, energy_gradient!, product, product!, quadratic_gradient, quadratic_gradient!, at, twice, twice!, series, series!, count, half_squares, half_squares!, step, recursion

module _Lantern

import Base64, Libdl
using LinearAlgebra: Adjoint, Transpose

"""
A call failed: an index out of range, shapes that do not fit, no memory.
"""
struct Error <: Exception
    name::String
    message::String
end

Base.showerror(io::IO, e::Error) = print(io, e.name, ": ", e.message)

# Throws: the code is for another processor.
function require(features...)
    isfile("/proc/cpuinfo") || return
    for line in eachline("/proc/cpuinfo")
        startswith(line, "flags") || continue
        missing_ = setdiff(features, split(line))
        isempty(missing_) && return
        error("the code was compiled for processors with ", join(missing_, ", "),
              ", which this one lacks; compile it with lanternc --cpu=x86-64-v2 or another name of LLVM's")
    end
end

# The library, loaded from memory where the system can, otherwise from a temporary file.
function load(code::String)
    bytes = Base64.base64decode(code)
    if Sys.islinux()
        # The descriptor stays open: the loader knows libraries by their paths.
        descriptor = ccall(:memfd_create, Cint, (Cstring, Cuint), "lantern", 0)
        if descriptor >= 0
            path = "/proc/self/fd/$descriptor"
            try
                write(path, bytes)
                return Libdl.dlopen(path)
            catch
            end
        end
    end
    path = tempname() * ".so"
    write(path, bytes)
    library = Libdl.dlopen(path)
    rm(path)
    return library
end

# A tensor of the C interface: its elements in row-major order, then its sizes. A tensor of no dimension has the size 1.
struct Tensor{T,N}
    data::Ptr{T}
    dim::NTuple{N,Int64}
end

const Strided = Union{StridedArray,PermutedDimsArray{<:Any,<:Any,<:Any,<:Any,<:StridedArray}}

permuted(a::AbstractArray) = a
permuted(a::Union{Transpose{<:Real,<:StridedMatrix},Adjoint{<:Real,<:StridedMatrix}}) = PermutedDimsArray(parent(a), (2, 1))

reversed(::Val{N}) where {N} = ntuple(d -> N + 1 - d, Val(N))

# The array whose elements lie in row-major order in the memory of `a`.
in_order(a::AbstractArray{<:Any,0}) = a
in_order(a::AbstractVector) = a
in_order(a::AbstractMatrix) = transpose(a)
in_order(a::AbstractArray{<:Any,N}) where {N} = PermutedDimsArray(a, reversed(Val(N)))

# Whether the elements lie in row-major order, without gaps.
function is_packed(a::AbstractArray)
    a isa Strided || return false
    step = 1
    for d = ndims(a):-1:1
        size(a, d) == 1 || stride(a, d) == step || return false
        step *= size(a, d)
    end
    return true
end

# An argument as an array whose elements lie in row-major order: the same memory where they do.
function operand(::Type{T}, a::AbstractArray{<:Real,N}) where {T,N}
    b = permuted(a)
    eltype(b) === T && is_packed(b) && return b
    return N < 2 ? Array{T,N}(b) : PermutedDimsArray(Array{T,N}(permutedims(b, reversed(Val(N)))), reversed(Val(N)))
end

tensor(a::AbstractArray{T,N}) where {T,N} = Tensor{T,max(N, 1)}(pointer(a), N == 0 ? (1,) : size(a))

# Memory of the caller's for a result; without an address where there is none, or its elements lie in another order.
target(::Type{T}, ::Val{N}, ::Nothing) where {T,N} = Tensor{T,max(N, 1)}(C_NULL, ntuple(d -> 0, Val(max(N, 1))))
function target(::Type{T}, rank::Val{N}, out::AbstractArray{<:Any,N}) where {T,N}
    memory = permuted(out)
    return eltype(memory) === T && is_packed(memory) ? tensor(memory) : target(T, rank, nothing)
end

# The result in the caller's memory, or in an array of its own.
function result(name, ::Val{N}, ::Nothing, given, t::Tensor{T}) where {T,N}
    a = Array{T,N}(undef, N == 0 ? () : reverse(t.dim))
    isempty(a) || GC.@preserve a unsafe_copyto!(pointer(a), t.data, length(a))
    return in_order(a)
end
function result(name, rank::Val{N}, out::AbstractArray, given::Tensor, t::Tensor) where {N}
    sizes = N == 0 ? () : t.dim
    size(out) == sizes || throw(DimensionMismatch("$name: expected an array of size $sizes for a result, got $(size(out))"))
    return given.data == C_NULL ? copyto!(out, result(name, rank, nothing, given, t)) : out
end

# A status of 2 says that a result does not fit the caller's memory, which `result` reports.
check(name, status, message) = status == 1 && throw(Error(name, unsafe_string(message[])))

end

const Error = _Lantern.Error

const _c_wave_gradient = Base.Ref{Ptr{Base.Cvoid}}()

"""
    wave_gradient(x, y)

The compiled function is `value_and_grad(wave)`.

# Arguments
- `x`: Float64
- `y`: Float64

# Returns
- Float64
- Float64
- Float64
"""
function wave_gradient(x::Base.Real, y::Base.Real)
    lt_r1 = Base.Ref{Float64}()
    lt_r2 = Base.Ref{Float64}()
    lt_r3 = Base.Ref{Float64}()
    lt_message = Base.Ref{Ptr{Base.UInt8}}(Base.C_NULL)
    lt_status = ccall(
        _c_wave_gradient[], Base.Cint,
        (Float64, Float64, Base.Ref{Float64}, Base.Ref{Float64}, Base.Ref{Float64}, Base.Ref{Ptr{Base.UInt8}}),
        x, y, lt_r1, lt_r2, lt_r3, lt_message)
    _Lantern.check("wave_gradient", lt_status, lt_message)
    return (lt_r1[], lt_r2[], lt_r3[])
end

const _c_energy = Base.Ref{Ptr{Base.Cvoid}}()

"""
    energy(x, stiffness)

The energy of a chain of springs.

The compiled function is `chain`.

# Arguments
- `x`: array of Float64, size (?,)
- `stiffness`: Float64

# Returns
- Float64
"""
function energy(x::Base.AbstractVector{<:Base.Real}, stiffness::Base.Real)
    lt_x1 = _Lantern.operand(Float64, x)
    lt_r1 = Base.Ref{Float64}()
    lt_message = Base.Ref{Ptr{Base.UInt8}}(Base.C_NULL)
    lt_status = Base.GC.@preserve lt_x1 ccall(
        _c_energy[], Base.Cint,
        (_Lantern.Tensor{Float64,1}, Float64, Base.Ref{Float64}, Base.Ref{Ptr{Base.UInt8}}),
        _Lantern.tensor(lt_x1), stiffness, lt_r1, lt_message)
    _Lantern.check("energy", lt_status, lt_message)
    return lt_r1[]
end

const _c_energy_gradient = Base.Ref{Ptr{Base.Cvoid}}()

"""
    energy_gradient(x, stiffness)

The energy of a chain of springs.

The compiled function is `grad(chain)`.

# Arguments
- `x`: array of Float64, size (?,)
- `stiffness`: Float64

# Returns
- array of Float64, size (?,)
- Float64
"""
function energy_gradient(x::Base.AbstractVector{<:Base.Real}, stiffness::Base.Real)
    return energy_gradient!(nothing, x, stiffness)
end

"""
    energy_gradient!(lt_out, x, stiffness)

As `energy_gradient`, with its arrays in memory of the caller's: in place where that is in row-major order.

# Arguments
- `lt_out`: memory for an array of Float64, size (?,), or `nothing`
- `x`: array of Float64, size (?,)
- `stiffness`: Float64

# Returns
- array of Float64, size (?,)
- Float64
"""
function energy_gradient!(lt_out::Base.Union{Base.AbstractArray,Base.Nothing}, x::Base.AbstractVector{<:Base.Real}, stiffness::Base.Real)
    lt_x1 = _Lantern.operand(Float64, x)
    lt_t1 = _Lantern.target(Float64, Base.Val(1), lt_out)
    lt_r1 = Base.Ref(lt_t1)
    lt_r2 = Base.Ref{Float64}()
    lt_message = Base.Ref{Ptr{Base.UInt8}}(Base.C_NULL)
    lt_status = Base.GC.@preserve lt_x1 lt_out ccall(
        _c_energy_gradient[], Base.Cint,
        (_Lantern.Tensor{Float64,1}, Float64, Base.Ref{_Lantern.Tensor{Float64,1}}, Base.Ref{Float64}, Base.Ref{Ptr{Base.UInt8}}),
        _Lantern.tensor(lt_x1), stiffness, lt_r1, lt_r2, lt_message)
    _Lantern.check("energy_gradient", lt_status, lt_message)
    return (_Lantern.result("energy_gradient", Base.Val(1), lt_out, lt_t1, lt_r1[]), lt_r2[])
end

const _c_product = Base.Ref{Ptr{Base.Cvoid}}()

"""
    product(w, x)

The compiled function is `times`.

# Arguments
- `w`: array of Float64, size (?, ?)
- `x`: array of Float64, size (?,)

# Returns
- array of Float64, size (?,)
"""
function product(w::Base.AbstractMatrix{<:Base.Real}, x::Base.AbstractVector{<:Base.Real})
    return product!(nothing, w, x)
end

"""
    product!(lt_out, w, x)

As `product`, with its arrays in memory of the caller's: in place where that is in row-major order.

# Arguments
- `lt_out`: memory for an array of Float64, size (?,), or `nothing`
- `w`: array of Float64, size (?, ?)
- `x`: array of Float64, size (?,)

# Returns
- array of Float64, size (?,)
"""
function product!(lt_out::Base.Union{Base.AbstractArray,Base.Nothing}, w::Base.AbstractMatrix{<:Base.Real}, x::Base.AbstractVector{<:Base.Real})
    lt_x1 = _Lantern.operand(Float64, w)
    lt_x2 = _Lantern.operand(Float64, x)
    lt_t1 = _Lantern.target(Float64, Base.Val(1), lt_out)
    lt_r1 = Base.Ref(lt_t1)
    lt_message = Base.Ref{Ptr{Base.UInt8}}(Base.C_NULL)
    lt_status = Base.GC.@preserve lt_x1 lt_x2 lt_out ccall(
        _c_product[], Base.Cint,
        (_Lantern.Tensor{Float64,2}, _Lantern.Tensor{Float64,1}, Base.Ref{_Lantern.Tensor{Float64,1}}, Base.Ref{Ptr{Base.UInt8}}),
        _Lantern.tensor(lt_x1), _Lantern.tensor(lt_x2), lt_r1, lt_message)
    _Lantern.check("product", lt_status, lt_message)
    return _Lantern.result("product", Base.Val(1), lt_out, lt_t1, lt_r1[])
end

const _c_quadratic_gradient = Base.Ref{Ptr{Base.Cvoid}}()

"""
    quadratic_gradient(w, x)

The compiled function is `grad(quadratic)`.

# Arguments
- `w`: array of Float64, size (?, ?)
- `x`: array of Float64, size (?,)

# Returns
- array of Float64, size (?, ?)
- array of Float64, size (?,)
"""
function quadratic_gradient(w::Base.AbstractMatrix{<:Base.Real}, x::Base.AbstractVector{<:Base.Real})
    return quadratic_gradient!(nothing, nothing, w, x)
end

"""
    quadratic_gradient!(lt_out1, lt_out2, w, x)

As `quadratic_gradient`, with its arrays in memory of the caller's: in place where that is in row-major order.

# Arguments
- `lt_out1`: memory for an array of Float64, size (?, ?), or `nothing`
- `lt_out2`: memory for an array of Float64, size (?,), or `nothing`
- `w`: array of Float64, size (?, ?)
- `x`: array of Float64, size (?,)

# Returns
- array of Float64, size (?, ?)
- array of Float64, size (?,)
"""
function quadratic_gradient!(lt_out1::Base.Union{Base.AbstractArray,Base.Nothing}, lt_out2::Base.Union{Base.AbstractArray,Base.Nothing}, w::Base.AbstractMatrix{<:Base.Real}, x::Base.AbstractVector{<:Base.Real})
    lt_x1 = _Lantern.operand(Float64, w)
    lt_x2 = _Lantern.operand(Float64, x)
    lt_t1 = _Lantern.target(Float64, Base.Val(2), lt_out1)
    lt_r1 = Base.Ref(lt_t1)
    lt_t2 = _Lantern.target(Float64, Base.Val(1), lt_out2)
    lt_r2 = Base.Ref(lt_t2)
    lt_message = Base.Ref{Ptr{Base.UInt8}}(Base.C_NULL)
    lt_status = Base.GC.@preserve lt_x1 lt_x2 lt_out1 lt_out2 ccall(
        _c_quadratic_gradient[], Base.Cint,
        (_Lantern.Tensor{Float64,2}, _Lantern.Tensor{Float64,1}, Base.Ref{_Lantern.Tensor{Float64,2}}, Base.Ref{_Lantern.Tensor{Float64,1}}, Base.Ref{Ptr{Base.UInt8}}),
        _Lantern.tensor(lt_x1), _Lantern.tensor(lt_x2), lt_r1, lt_r2, lt_message)
    _Lantern.check("quadratic_gradient", lt_status, lt_message)
    return (_Lantern.result("quadratic_gradient", Base.Val(2), lt_out1, lt_t1, lt_r1[]), _Lantern.result("quadratic_gradient", Base.Val(1), lt_out2, lt_t2, lt_r2[]))
end

const _c_at = Base.Ref{Ptr{Base.Cvoid}}()

"""
    at(t, i, j, k)

The compiled function is `element`.

# Arguments
- `t`: array of Float64, size (?, ?, ?)
- `i`: Int64
- `j`: Int64
- `k`: Int64

# Returns
- Float64
"""
function at(t::Base.AbstractArray{<:Base.Real,3}, i::Base.Integer, j::Base.Integer, k::Base.Integer)
    lt_x1 = _Lantern.operand(Float64, t)
    lt_r1 = Base.Ref{Float64}()
    lt_message = Base.Ref{Ptr{Base.UInt8}}(Base.C_NULL)
    lt_status = Base.GC.@preserve lt_x1 ccall(
        _c_at[], Base.Cint,
        (_Lantern.Tensor{Float64,3}, Int64, Int64, Int64, Base.Ref{Float64}, Base.Ref{Ptr{Base.UInt8}}),
        _Lantern.tensor(lt_x1), i, j, k, lt_r1, lt_message)
    _Lantern.check("at", lt_status, lt_message)
    return lt_r1[]
end

const _c_twice = Base.Ref{Ptr{Base.Cvoid}}()

"""
    twice(t)

The compiled function is `doubled`.

# Arguments
- `t`: array of Float64, size (?, ?, ?)

# Returns
- array of Float64, size (?, ?, ?)
"""
function twice(t::Base.AbstractArray{<:Base.Real,3})
    return twice!(nothing, t)
end

"""
    twice!(lt_out, t)

As `twice`, with its arrays in memory of the caller's: in place where that is in row-major order.

# Arguments
- `lt_out`: memory for an array of Float64, size (?, ?, ?), or `nothing`
- `t`: array of Float64, size (?, ?, ?)

# Returns
- array of Float64, size (?, ?, ?)
"""
function twice!(lt_out::Base.Union{Base.AbstractArray,Base.Nothing}, t::Base.AbstractArray{<:Base.Real,3})
    lt_x1 = _Lantern.operand(Float64, t)
    lt_t1 = _Lantern.target(Float64, Base.Val(3), lt_out)
    lt_r1 = Base.Ref(lt_t1)
    lt_message = Base.Ref{Ptr{Base.UInt8}}(Base.C_NULL)
    lt_status = Base.GC.@preserve lt_x1 lt_out ccall(
        _c_twice[], Base.Cint,
        (_Lantern.Tensor{Float64,3}, Base.Ref{_Lantern.Tensor{Float64,3}}, Base.Ref{Ptr{Base.UInt8}}),
        _Lantern.tensor(lt_x1), lt_r1, lt_message)
    _Lantern.check("twice", lt_status, lt_message)
    return _Lantern.result("twice", Base.Val(3), lt_out, lt_t1, lt_r1[])
end

const _c_series = Base.Ref{Ptr{Base.Cvoid}}()

"""
    series(x, n)

The compiled function is `powers`.

# Arguments
- `x`: Float64
- `n`: Int64

# Returns
- array of Float64, size (?,)
"""
function series(x::Base.Real, n::Base.Integer)
    return series!(nothing, x, n)
end

"""
    series!(lt_out, x, n)

As `series`, with its arrays in memory of the caller's: in place where that is in row-major order.

# Arguments
- `lt_out`: memory for an array of Float64, size (?,), or `nothing`
- `x`: Float64
- `n`: Int64

# Returns
- array of Float64, size (?,)
"""
function series!(lt_out::Base.Union{Base.AbstractArray,Base.Nothing}, x::Base.Real, n::Base.Integer)
    lt_t1 = _Lantern.target(Float64, Base.Val(1), lt_out)
    lt_r1 = Base.Ref(lt_t1)
    lt_message = Base.Ref{Ptr{Base.UInt8}}(Base.C_NULL)
    lt_status = Base.GC.@preserve lt_out ccall(
        _c_series[], Base.Cint,
        (Float64, Int64, Base.Ref{_Lantern.Tensor{Float64,1}}, Base.Ref{Ptr{Base.UInt8}}),
        x, n, lt_r1, lt_message)
    _Lantern.check("series", lt_status, lt_message)
    return _Lantern.result("series", Base.Val(1), lt_out, lt_t1, lt_r1[])
end

const _c_count = Base.Ref{Ptr{Base.Cvoid}}()

"""
    count(x, bound)

The compiled function is `larger`.

# Arguments
- `x`: array of Float64, size (?,)
- `bound`: Float64

# Returns
- Int64
- Bool
"""
function count(x::Base.AbstractVector{<:Base.Real}, bound::Base.Real)
    lt_x1 = _Lantern.operand(Float64, x)
    lt_r1 = Base.Ref{Int64}()
    lt_r2 = Base.Ref{Bool}()
    lt_message = Base.Ref{Ptr{Base.UInt8}}(Base.C_NULL)
    lt_status = Base.GC.@preserve lt_x1 ccall(
        _c_count[], Base.Cint,
        (_Lantern.Tensor{Float64,1}, Float64, Base.Ref{Int64}, Base.Ref{Bool}, Base.Ref{Ptr{Base.UInt8}}),
        _Lantern.tensor(lt_x1), bound, lt_r1, lt_r2, lt_message)
    _Lantern.check("count", lt_status, lt_message)
    return (lt_r1[], lt_r2[])
end

const _c_half_squares = Base.Ref{Ptr{Base.Cvoid}}()

"""
    half_squares(x)

The compiled function is `halves`.

# Arguments
- `x`: array of Float32, size (?,)

# Returns
- array of Float32, size (?,)
"""
function half_squares(x::Base.AbstractVector{<:Base.Real})
    return half_squares!(nothing, x)
end

"""
    half_squares!(lt_out, x)

As `half_squares`, with its arrays in memory of the caller's: in place where that is in row-major order.

# Arguments
- `lt_out`: memory for an array of Float32, size (?,), or `nothing`
- `x`: array of Float32, size (?,)

# Returns
- array of Float32, size (?,)
"""
function half_squares!(lt_out::Base.Union{Base.AbstractArray,Base.Nothing}, x::Base.AbstractVector{<:Base.Real})
    lt_x1 = _Lantern.operand(Float32, x)
    lt_t1 = _Lantern.target(Float32, Base.Val(1), lt_out)
    lt_r1 = Base.Ref(lt_t1)
    lt_message = Base.Ref{Ptr{Base.UInt8}}(Base.C_NULL)
    lt_status = Base.GC.@preserve lt_x1 lt_out ccall(
        _c_half_squares[], Base.Cint,
        (_Lantern.Tensor{Float32,1}, Base.Ref{_Lantern.Tensor{Float32,1}}, Base.Ref{Ptr{Base.UInt8}}),
        _Lantern.tensor(lt_x1), lt_r1, lt_message)
    _Lantern.check("half_squares", lt_status, lt_message)
    return _Lantern.result("half_squares", Base.Val(1), lt_out, lt_t1, lt_r1[])
end

const _c_step = Base.Ref{Ptr{Base.Cvoid}}()

"""
    step(n, up)

The compiled function is `next`.

# Arguments
- `n`: Int32
- `up`: Bool

# Returns
- Int32
"""
function step(n::Base.Integer, up::Bool)
    lt_r1 = Base.Ref{Int32}()
    lt_message = Base.Ref{Ptr{Base.UInt8}}(Base.C_NULL)
    lt_status = ccall(
        _c_step[], Base.Cint,
        (Int32, Bool, Base.Ref{Int32}, Base.Ref{Ptr{Base.UInt8}}),
        n, up, lt_r1, lt_message)
    _Lantern.check("step", lt_status, lt_message)
    return lt_r1[]
end

const _c_recursion = Base.Ref{Ptr{Base.Cvoid}}()

"""
    recursion(x, n)

Deep in the stack.

The compiled function is `down`.

# Arguments
- `x`: Float64
- `n`: Int64

# Returns
- Float64
"""
function recursion(x::Base.Real, n::Base.Integer)
    lt_r1 = Base.Ref{Float64}()
    lt_message = Base.Ref{Ptr{Base.UInt8}}(Base.C_NULL)
    lt_status = ccall(
        _c_recursion[], Base.Cint,
        (Float64, Int64, Base.Ref{Float64}, Base.Ref{Ptr{Base.UInt8}}),
        x, n, lt_r1, lt_message)
    _Lantern.check("recursion", lt_status, lt_message)
    return lt_r1[]
end

function __init__()
    _Lantern.require("avx2", "fma")
    lt_library = _Lantern.load(_Lantern_code)
    _c_wave_gradient[] = _Lantern.Libdl.dlsym(lt_library, :wave_gradient_try)
    _c_energy[] = _Lantern.Libdl.dlsym(lt_library, :energy_try)
    _c_energy_gradient[] = _Lantern.Libdl.dlsym(lt_library, :energy_gradient_try)
    _c_product[] = _Lantern.Libdl.dlsym(lt_library, :product_try)
    _c_quadratic_gradient[] = _Lantern.Libdl.dlsym(lt_library, :quadratic_gradient_try)
    _c_at[] = _Lantern.Libdl.dlsym(lt_library, :at__try)
    _c_twice[] = _Lantern.Libdl.dlsym(lt_library, :twice_try)
    _c_series[] = _Lantern.Libdl.dlsym(lt_library, :series_try)
    _c_count[] = _Lantern.Libdl.dlsym(lt_library, :count_try)
    _c_half_squares[] = _Lantern.Libdl.dlsym(lt_library, :half_squares_try)
    _c_step[] = _Lantern.Libdl.dlsym(lt_library, :step_try)
    _c_recursion[] = _Lantern.Libdl.dlsym(lt_library, :recursion_try)
end

const _Lantern_code = "..."

end
