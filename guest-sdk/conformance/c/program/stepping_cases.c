#include "transcript.h"
const test_case stepping_cases[] = {{0}};
