// The test runner shared by all test files.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
