#include "transcript.h"
const test_case store_cases[] = {{0}};
