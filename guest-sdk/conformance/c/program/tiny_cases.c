#include "transcript.h"
const test_case tiny_cases[] = {{0}};
