#include "transcript.h"
const test_case run_cases[] = {{0}};
