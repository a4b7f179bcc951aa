// Calls what slope.cpp defines.
#include <cstdio>

double slope(double x);

int main() { std::printf("%g\n", slope(3.0)); }
