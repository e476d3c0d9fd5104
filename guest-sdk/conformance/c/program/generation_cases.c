#include "transcript.h"
const test_case generation_cases[] = {{0}};
