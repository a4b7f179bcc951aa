// Beside the model that includes it.
#pragma once

inline double scale() { return 3.0; }
