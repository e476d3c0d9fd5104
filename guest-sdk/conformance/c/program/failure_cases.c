#include "transcript.h"
const test_case failure_cases[] = {{0}};
