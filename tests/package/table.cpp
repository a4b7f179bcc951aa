// A function of the project's own, linked with what lanternc makes.
extern "C" double table(double x) { return x + 1.0; }
