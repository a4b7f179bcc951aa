// What every module of --emit=julia has before its functions.
#pragma once

namespace lantern::tool {

inline constexpr const char* julia_helpers = R"jl(module _Lantern

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
)jl";

}  // namespace lantern::tool
