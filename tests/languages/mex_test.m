% Calls the MEX file that lanternc has made of functions.cpp: values and derivatives against formulas and central differences,
% shapes, classes, failures. The first check that fails ends the script with an error.
1;
function check(condition, what)
  global checks
  checks += 1;
  if !condition
    error("wrong: %s", what);
  end
end
function raises(text, varargin)
  try
    model(varargin{:});
  catch e
    message = e.message(numel("model: ") + 1:end);  % Octave puts the file's name before what the function says
    check(strncmp(message, text, numel(text)), sprintf("expected %s, got %s", text, message));
    return
  end
  error("expected the error %s", text);
end
function yes = close(a, b)
  yes = isequal(size(a), size(b)) && all(abs(a(:) - b(:)) <= 1e-12 * max(1, abs(b(:))));
end
global checks = 0;

[v, gx, gy] = model("wave_gradient", 0.3, 0.7);
check(close(v, sin(0.3) * exp(0.7) + 0.3^2 * 0.7), "wave");
check(close(gx, cos(0.3) * exp(0.7) + 2 * 0.3 * 0.7) && close(gy, sin(0.3) * exp(0.7) + 0.3^2), "slopes of wave");

x = sin(1:9)';
energy = @(x) 1.3 * sum(diff(x).^2) + 0.1 * sum(cos(x(2:end)));
check(close(model("energy", x, 1.3), energy(x)) && close(model("energy", x', 1.3), energy(x)), "energy");
check(model("energy", [], 1.3) == 0, "energy of nothing");
[g, slope] = model("energy_gradient", x, 1.3);
check(isequal(size(g), [9, 1]) && close(slope, sum(diff(x).^2)), "slope by stiffness");
h = 1e-5;
for i = 1:9
  e = h * ((1:9)' == i);
  check(abs((energy(x + e) - energy(x - e)) / (2 * h) - g(i)) < 1e-7, "difference of energy");
end

% x(i, j) is the element that C++ calls x(i - 1, j - 1).
w = [1 3 5; 2 4 6];
u = [1; -1; 2];
check(close(model("product", w, u), w * u), "product");
[gw, g] = model("quadratic_gradient", w' * w, u);
check(close(gw, u * u') && close(g, 2 * (w' * w) * u), "slopes by a matrix and a vector");
cube = reshape(1:24, 2, 3, 4);
check(model("at", cube, 1, 0, 3) == cube(2, 1, 4) && model("at", w, 1, 2, 0) == w(2, 3), "an element");
check(isequal(model("twice", cube), 2 * cube) && isequal(size(model("twice", zeros(2, 0, 4))), [2, 0, 4]), "three dimensions");
check(isequal(model("series", 2, 5), [1; 2; 4; 8; 16]) && isequal(size(model("series", 2, 0)), [0, 1]), "series");
[n, any_larger] = model("count", x, 0.5);
check(n == 4 && isa(n, "int64") && any_larger && islogical(any_larger), "count");
[n, any_larger] = model("count", x, 2);
check(n == 0 && !any_larger, "count of none");
halves = model("half_squares", single([1, 2]));
check(isequal(halves, single([0.5; 2])) && isa(halves, "single") && isequal(model("half_squares", [1, 2]), halves), "single");
check(model("step", int32(5), true) == 6 && model("step", 5, false) == 4, "step");

check(model("recursion", 1, 3) == 1.875, "recursion");
raises("at: index 3 is outside 0..2", "at", cube, 0, 3, 0);
raises("at: j: expected a whole number of 64 bits, got 0.5", "at", cube, 0, 0.5, 0);
raises("step: n: expected a whole number of 32 bits, got 3000000000", "step", 3e9, true);
raises("step: n: expected int32 or double, real and full, got int8", "step", int8(3), true);
raises("energy: stiffness: expected a number, got an array of 2 dimensions with 2 elements", "energy", x, [1, 2]);
raises("energy: x: expected a row or a column, got an array of 2 dimensions with 6 elements", "energy", w, 1);
raises("product: w: expected a matrix, got an array of 3 dimensions with 24 elements", "product", cube, u);
raises("energy: x: expected double, real and full, got complex double", "energy", x * 1i, 1);
raises("energy: x: expected double, real and full, got sparse double", "energy", sparse(x), 1);
raises("recursion: the recursion of 'recursion' does not end, or needs more stack than it may have", "recursion", 1, 1e8);
raises("energy: expected 2 arguments, got 1", "energy", x);
raises("model: expected wave_gradient, energy, ", "wave");
raises("model: expected the name of a function first: wave_gradient, ", 3);
try
  [a, b] = model("energy", x, 1);
  error("expected an error");
catch e
  check(strcmp(e.message, "model: energy: it has 1 result, not 2"), e.message);
end
check(model("at", cube, 1, 2, 0) == cube(2, 3, 1), "the next call");
usage = evalc("model()");
check(!isempty(strfind(usage, "[double] = model('energy', double vector x, double stiffness)\n    The energy of a chain of springs.")), usage);
printf("%d checks passed\n", checks);
