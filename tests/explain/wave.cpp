// A wave equation in a time loop: a graph of 550 operations, which the page shows folded.
#include <lantern/lantern.hpp>

using namespace lantern;
using D = Rep<double>;
using I = Rep<int64_t>;
using A = Rep<Array<double>>;
D misfit(A c2, A wavelet, A data, I nz, I nx) {
  A up = fill(D(0.0), nz * nx), u = fill(D(0.0), nz * nx);
  D loss = 0.0;
  for (I t = 0; t < wavelet.size(); ++t) {
    A un = u;
    for (I i = 1; i < nz - 1; ++i) {
      I q = i * nx;
      for (I j = 1; j < nx - 1; ++j) {
        D lap = u[q + j - 1] + u[q + j + 1] + u[q + j - nx] + u[q + j + nx] - 4.0 * u[q + j];
        un[q + j] = 2.0 * u[q + j] - up[q + j] + c2[q + j] * lap;
      }
    }
    I src = 5 * nx + nx / 2;
    un[src] = un[src] + wavelet[t];
    for (I r = 0; r < nx; ++r) {
      D d = un[2 * nx + r] - data[t * nx + r];
      loss += d * d;
    }
    up = u;
    u = un;
  }
  return 0.5 * loss;
}
LANTERN_FUNCTION(gradient, value_and_grad<0>(misfit))
int main() {}
