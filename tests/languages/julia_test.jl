# Calls the module that lanternc has made of functions.cpp: values and derivatives against formulas and central differences,
# shapes, memory that is not copied, failures, tasks and threads. usage: julia_test.jl FOLDER
using LinearAlgebra, Test

include(joinpath(ARGS[1], "functions.jl"))
const m = functions

@testset "functions" begin
    v, gx, gy = m.wave_gradient(0.3, 0.7)
    @test v ≈ sin(0.3) * exp(0.7) + 0.3^2 * 0.7
    @test gx ≈ cos(0.3) * exp(0.7) + 2 * 0.3 * 0.7 && gy ≈ sin(0.3) * exp(0.7) + 0.3^2

    chain(x, k) = k * sum(diff(x) .^ 2) + 0.1 * sum(cos.(x[2:end]))
    x = sin.(1:9)
    @test m.energy(x, 1.3) ≈ chain(x, 1.3)
    @test m.energy(view(x, 1:2:9), 1.3) ≈ chain(x[1:2:9], 1.3)
    @test m.energy(view(x, 2:5), 1.3) ≈ chain(x[2:5], 1.3)
    @test m.energy(1:4, 2) ≈ chain(Float64.(1:4), 2)
    @test m.energy(Float64[], 1.3) == 0
    g, slope = m.energy_gradient(x, 1.3)
    @test g isa Vector{Float64} && length(g) == 9 && slope ≈ sum(diff(x) .^ 2)
    h = 1e-5
    for i = 1:9
        e = h * (1:9 .== i)
        @test abs((m.energy(x + e, 1.3) - m.energy(x - e, 1.3)) / 2h - g[i]) < 1e-7
    end

    # a[i, j] is the element that C++ calls a(i - 1, j - 1).
    w, u = [1.0 3.0 5.0; 2.0 4.0 6.0], [1.0, -1.0, 2.0]
    @test m.product(w, u) ≈ w * u
    @test m.product(Matrix(w')', u) ≈ w * u
    @test m.product(view(w, :, 2:3), u[2:3]) ≈ w[:, 2:3] * u[2:3]
    gw, g = m.quadratic_gradient(w' * w, u)
    @test gw isa AbstractMatrix{Float64} && gw ≈ u * u' && g ≈ 2 * (w' * w) * u
    @test m.product(gw, u) ≈ (u * u') * u
    cube = reshape(collect(1.0:24.0), 2, 3, 4)
    @test m.at(cube, 1, 0, 3) == cube[2, 1, 4]
    t = m.twice(cube)
    @test size(t) == (2, 3, 4) && t == 2 * cube && m.twice(t) == 4 * cube
    @test m.twice(view(cube, :, 2:3, 1:2:4)) == 2 * cube[:, 2:3, 1:2:4]
    @test size(m.twice(zeros(2, 0, 4))) == (2, 0, 4)
    @test m.series(2.0, 5) == [1, 2, 4, 8, 16] && isempty(m.series(2.0, 0))
    @test m.count(x, 0.5) === (Int64(4), true) && m.count(x, 2.0) === (Int64(0), false)
    @test m.half_squares(Float32[1, 2]) == Float32[0.5, 2] && eltype(m.half_squares([1, 2])) == Float32
    @test m.step(5, true) === Int32(6) && m.step(5, false) === Int32(4)
    @test m.recursion(1.0, 3) == 1.875

    @testset "memory" begin
        # What lies in row-major order is read and written in place.
        rows = transpose(copy(transpose(w)))
        @test pointer(functions._Lantern.operand(Float64, x)) == pointer(x)
        @test pointer(functions._Lantern.operand(Float64, rows)) == pointer(parent(rows))
        @test pointer(functions._Lantern.operand(Float64, gw)) == pointer(parent(gw))
        out, expected = zeros(9), m.energy_gradient(x, 1.3)
        result = m.energy_gradient!(out, x, 1.3)
        @test result[1] === out && out == expected[1] && result[2] == expected[2]
        in_order = PermutedDimsArray(zeros(4, 3, 2), (3, 2, 1))
        @test m.twice!(in_order, cube) === in_order && in_order == 2 * cube
        columns = zeros(2, 3, 4)
        @test m.twice!(columns, cube) === columns && columns == 2 * cube
        part = view(zeros(18), 1:2:18)
        @test m.energy_gradient!(part, x, 1.3)[1] == expected[1]
        @test m.energy_gradient!(nothing, x, 1.3) == expected
        @test_throws DimensionMismatch m.energy_gradient!(zeros(8), x, 1.3)
        @test_throws DimensionMismatch m.twice!(zeros(2, 3, 5), cube)
        m.energy_gradient!(out, x, 1.3)
        @test (@allocated m.energy_gradient!(out, x, 1.3)) < 400
    end

    @testset "failures" begin
        failure(f) = try
            f()
            ""
        catch e
            sprint(showerror, e)
        end
        @test startswith(failure(() -> m.at(cube, 0, 3, 0)), "at: index 3 is outside 0..2")
        @test_throws m.Error m.at(cube, 0, 3, 0)
        @test m.at(cube, 1, 2, 0) == cube[2, 3, 1]
        @test_throws InexactError m.at(cube, 0, big(2)^63, 0)
        @test_throws InexactError m.step(3_000_000_000, true)
        @test_throws MethodError m.at(cube, 0, 0.5, 0)
        @test_throws MethodError m.energy(w, 1.0)
        @test_throws MethodError m.energy(x * im, 1.0)
        @test occursin("product: ", failure(() -> m.product(w, x)))
        @test occursin("the recursion of 'recursion' does not end", failure(() -> m.recursion(1.0, 10^8)))
    end

    @testset "tasks and threads" begin
        # A task has a stack of its own.
        @test fetch(@async m.recursion(1.0, 1000)) == m.recursion(1.0, 1000)
        results = zeros(64)
        Threads.@threads for i = 1:64
            a = fill(Float64(i), 100)
            for _ = 1:50
                results[i] = sum(m.energy_gradient(a, 1.3)[1])
            end
        end
        @test results ≈ [sum(m.energy_gradient(fill(Float64(i), 100), 1.3)[1]) for i = 1:64]
    end

    said = string(@doc functions.energy)
    @test occursin("energy(x, stiffness)", said) && occursin("The energy of a chain of springs.", said)
    @test occursin("array of Float64, size (?,)", said)
end
