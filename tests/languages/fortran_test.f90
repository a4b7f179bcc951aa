! Calls the module that lanternc has made of functions.cpp: values and derivatives against formulas and central differences,
! shapes, failures. Prints what is wrong and how many checks passed.
program fortran_test
  use, intrinsic :: iso_c_binding
  use functions
  implicit none
  integer, parameter :: d = c_double, i8 = c_int64_t
  integer :: checks = 0, failures = 0, stat, i, j
  character(:), allocatable :: errmsg
  real(d) :: v, gx, gy, h, slope
  real(d) :: w(2, 3), v3(3), cube(2, 3, 4)
  real(d), allocatable :: x(:), g(:), gw(:, :), y(:), t(:, :, :)
  real(c_float), allocatable :: halves(:)
  integer(i8) :: n
  logical(c_bool) :: any_larger

  call wave_gradient(0.3_d, 0.7_d, v, gx, gy)
  call check(close(v, sin(0.3_d) * exp(0.7_d) + 0.3_d**2 * 0.7_d), "wave")
  call check(close(gx, cos(0.3_d) * exp(0.7_d) + 2 * 0.3_d * 0.7_d), "slope of wave by x")
  call check(close(gy, sin(0.3_d) * exp(0.7_d) + 0.3_d**2), "slope of wave by y")

  x = [(sin(real(i, d)), i = 1, 9)]
  v = energy(x, 1.3_d)
  call check(close(v, 1.3_d * sum((x(2:) - x(:8))**2) + 0.1_d * sum(cos(x(2:)))), "energy")
  call check(close(energy(x(1:9:2), 1.3_d), energy([x(1), x(3), x(5), x(7), x(9)], 1.3_d)), "energy of a section")
  call check(energy(x(1:0), 1.3_d) == 0, "energy of nothing")
  call energy_gradient(x, 1.3_d, g, slope)
  call check(size(g) == 9 .and. close(slope, sum((x(2:) - x(:8))**2)), "slope by stiffness")
  h = 1e-5_d
  do i = 1, 9
    y = x
    y(i) = x(i) + h
    v = energy(y, 1.3_d)
    y(i) = x(i) - h
    call check(abs((v - energy(y, 1.3_d)) / (2 * h) - g(i)) < 1e-7_d, "difference of energy")
  end do

  ! a(i, j) is the element that C++ calls a(i - 1, j - 1).
  w = reshape([1, 2, 3, 4, 5, 6], [2, 3])
  v3 = [1.0_d, -1.0_d, 2.0_d]
  y = product(w, v3)
  call check(size(y) == 2 .and. all(abs(y - matmul(w, v3)) < 1e-12_d), "product")
  call quadratic_gradient(matmul(transpose(w), w), v3, gw, g)
  call check(all(shape(gw) == [3, 3]) .and. close(gw(1, 3), 2.0_d) .and. close(gw(3, 2), -2.0_d), "slope by a matrix")
  call check(all(abs(g - 2 * matmul(matmul(transpose(w), w), v3)) < 1e-12_d), "slope by a vector")
  cube = reshape([(real(i, d), i = 1, 24)], [2, 3, 4])
  call check(at(cube, 1_i8, 0_i8, 3_i8) == cube(2, 1, 4), "an element of three dimensions")
  t = twice(cube)
  call check(all(shape(t) == [2, 3, 4]) .and. all(t == 2 * cube), "three dimensions")
  t = twice(cube(:, 2:3, ::2))
  call check(all(shape(t) == [2, 2, 2]) .and. all(t == 2 * cube(:, 2:3, ::2)), "a section of three dimensions")
  y = series(2.0_d, 5_i8)
  call check(all(y == [1, 2, 4, 8, 16]) .and. size(series(2.0_d, 0_i8)) == 0, "series")
  call count(x, 0.5_d, n, any_larger)
  call check(n == 4 .and. any_larger, "count")
  call count(x, 2.0_d, n, any_larger)
  call check(n == 0 .and. .not. any_larger, "count of none")
  halves = half_squares([1.0, 2.0])
  call check(all(halves == [0.5, 2.0]), "single precision")
  call check(step(5_c_int32_t, .true._c_bool) == 6 .and. step(5_c_int32_t, .false._c_bool) == 4, "step")

  call check(close(recursion(1.0_d, 3_i8), 1.875_d), "recursion")

  v = at(cube, 0_i8, 3_i8, 0_i8, stat, errmsg)
  call check(stat == 1 .and. index(errmsg, "at: index 3 is outside 0..2") == 1, "an index: " // errmsg)
  v = at(cube, 1_i8, 2_i8, 0_i8, stat, errmsg)
  call check(stat == 0 .and. errmsg == "" .and. v == cube(2, 3, 1), "the next call")
  y = product(w, x, stat, errmsg)
  call check(stat /= 0 .and. size(y) == 0, "shapes: " // errmsg)

  do j = 1, 20000  ! what a call takes it gives back
    t = twice(cube)
  end do
  if (failures /= 0) error stop
  print "(i0, a)", checks, " checks passed"
  if (command_argument_count() > 0) v = at(cube, 7_i8, 0_i8, 0_i8)

contains

  logical function close(a, b)
    real(d), intent(in) :: a, b
    close = abs(a - b) <= 1e-12_d * max(abs(a), abs(b), 1.0_d)
  end function

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    checks = checks + 1
    if (condition) return
    failures = failures + 1
    print "(2a)", "wrong: ", what
  end subroutine
end program
