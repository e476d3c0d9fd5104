#include "transcript.h"
const test_case steered_cases[] = {{0}};
